import { useState } from 'react';
import { Problem } from '../api/gateway/problem.ts';
import { useConsole } from '../shell/console-context.ts';
import { hrefOf } from '../shell/navigation/route.ts';
import { useLoaded } from '../shell/loading/use-loaded.ts';
import { Card } from '../widgets/card.tsx';
import { FormAlert } from '../widgets/form/form-alert.tsx';
import { PageFrame } from '../widgets/page/page-frame.tsx';
import { invitationRefusal } from './invitation-refusal.ts';

const BECOMES = {
  owner: 'You become one of its owners.',
  admin: 'You become one of its administrators.',
  viewer: 'You become a member.',
} as const;

/** Where the link of an invitation leads. It shows; only the button consumes, so a mail scanner joins nothing (H-08). */
export function InvitationPage({ org, token }: { org: string; token: string }) {
  const { members, client, session, refresh, notify } = useConsole();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const shown = useLoaded(`invitation ${token}`, signal => members.shown(token, signal)).data;
  const name = shown?.org_name ?? 'the organization';
  const refusal = problem && invitationRefusal(problem.code);

  const accept = async () => {
    client.beginAction();
    setBusy(true);
    setProblem(undefined);
    try {
      await members.accept(org, token);
      await refresh();
      notify('Invitation accepted');
      location.hash = hrefOf('home', { org });
    } catch (error) {
      setProblem(Problem.of(error));
      setBusy(false);
    }
  };
  const open = async () => {
    await refresh();
    location.hash = hrefOf('home', { org });
  };

  const again = !refusal || refusal.offer === 'again';
  return (
    <PageFrame title="Invitation">
      <Card
        title={`Join ${name}`}
        note={`${shown?.inviter ? `${shown.inviter} invites you. ` : ''}You are signed in as ${session.user.email}.`}
      >
        <div className="stack">
          {refusal ? (
            <div className="notice" data-tone="warn" role="alert">
              <strong>{refusal.title}</strong>
              <p>{refusal.text}</p>
            </div>
          ) : (
            problem && <FormAlert problem={problem} />
          )}
          {!problem && <p>{BECOMES[shown?.access ?? 'viewer']}</p>}
          <div className="row">
            {again && (
              <button type="button" className="btn primary" disabled={busy} onClick={accept}>
                {busy ? 'Working…' : problem ? 'Try again' : 'Accept invitation'}
              </button>
            )}
            {refusal?.offer === 'open' && (
              <button type="button" className="btn primary" onClick={open}>
                Open the organization
              </button>
            )}
            {refusal?.offer === 'sign-out' && (
              <a className="btn primary" href="#/sign-out">
                Sign out
              </a>
            )}
            <a className="btn" href="#/">
              {refusal ? 'To your organizations' : 'Not now'}
            </a>
          </div>
        </div>
      </Card>
    </PageFrame>
  );
}
