import { useEffect, useState } from 'react';
import type { GatewayClient } from '../api/gateway-client.ts';
import { Problem } from '../api/problem.ts';
import type { Session } from '../api/session.ts';
import { Broken, Loading } from '../widgets/page-state.tsx';

interface SignedOutPageProps {
  client: GatewayClient;
  session: Session | 'absent' | Problem | undefined;
  loginUrl: string;
}

export function SignedOutPage({ client, session, loginUrl }: SignedOutPageProps) {
  const [done, setDone] = useState<true | Problem>();
  const [turn, setTurn] = useState(0);
  const known = session !== undefined;
  const absent = session === 'absent';
  useEffect(() => {
    if (!known || done === true) return;
    if (absent) return setDone(true);
    client.signOut().then(
      () => setDone(true),
      error => {
        const problem = Problem.of(error);
        setDone(problem.status === 401 ? true : problem);
      },
    );
    // biome-ignore lint/correctness/useExhaustiveDependencies: `done` is what this effect sets
  }, [client, known, absent, turn]);

  return (
    <main className="alone">
      {done === undefined ? (
        <Loading label="Signing out…" />
      ) : done instanceof Problem ? (
        <Broken
          problem={done}
          retry={() => {
            setDone(undefined);
            setTurn(turn + 1);
          }}
        />
      ) : (
        <div className="state">
          <h1>You are signed out</h1>
          <p>The session of this browser is closed.</p>
          <p>
            <a className="btn primary" href={loginUrl}>
              Sign in
            </a>
          </p>
        </div>
      )}
    </main>
  );
}
