import { useEffect, useState } from 'react';
import type { GatewayClient } from '../api/gateway/gateway-client.ts';
import { Problem } from '../api/gateway/problem.ts';
import type { Session } from '../api/gateway/session.ts';
import { Broken, Loading } from '../widgets/page/page-state.tsx';

interface SignedOutPageProps {
  client: GatewayClient;
  session: Session | 'absent' | Problem | undefined;
  /** Of every browser and device; asked first. */
  everywhere: boolean;
  loginUrl: string;
}

export function SignedOutPage({ client, session, everywhere, loginUrl }: SignedOutPageProps) {
  const [sure, setSure] = useState(!everywhere);
  const [done, setDone] = useState<true | Problem>();
  const [turn, setTurn] = useState(0);
  const known = session !== undefined;
  const absent = session === 'absent';
  useEffect(() => {
    if (!known || !sure || done === true) return;
    if (absent) return setDone(true);
    client.signOut({ everywhere }).then(
      () => setDone(true),
      error => {
        const problem = Problem.of(error);
        setDone(problem.status === 401 ? true : problem);
      },
    );
    // biome-ignore lint/correctness/useExhaustiveDependencies: `done` is what this effect sets
  }, [client, known, sure, absent, everywhere, turn]);

  return (
    <main className="alone">
      {!sure && !absent ? (
        <AskFirst yes={() => setSure(true)} />
      ) : done === undefined ? (
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
          <p>
            {everywhere ? 'Every session of yours is closed, in this browser and in all others.' : 'The session of this browser is closed.'}
          </p>
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

function AskFirst({ yes }: { yes: () => void }) {
  return (
    <div className="state">
      <h1>Sign out everywhere?</h1>
      <p>You are signed out in every browser and on every device, and sign in again with your password.</p>
      <p className="actions">
        <button type="button" className="btn primary" onClick={yes}>
          Sign out everywhere
        </button>{' '}
        <a className="btn" href="#/">
          Stay signed in
        </a>
      </p>
    </div>
  );
}
