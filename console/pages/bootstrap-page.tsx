import { useState } from 'react';
import { Problem } from '../api/problem.ts';
import { useConsole } from '../shell/console-context.ts';
import { hrefOf, type Route } from '../shell/route.ts';
import { Card } from '../widgets/card.tsx';
import { FormAlert } from '../widgets/form-alert.tsx';
import { PageFrame } from '../widgets/page-frame.tsx';

type BootstrapRoute = Extract<Route, { name: 'bootstrap' }>;

/** What the operator can reach; also where the link of an invitation leads. */
export function BootstrapPage({ route, settle }: { route: BootstrapRoute; settle?: () => Promise<void> }) {
  const { registry, client, bootstrap, session, refresh, notify } = useConsole();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const { org, invitation } = route;

  const accept = async () => {
    if (!org || !invitation) return;
    client.beginAction();
    setBusy(true);
    setProblem(undefined);
    try {
      await registry.acceptInvitation(org, invitation);
      await refresh();
      notify('Invitation accepted');
      location.hash = hrefOf('home', { org });
    } catch (error) {
      setProblem(Problem.of(error));
      setBusy(false);
    }
  };

  if (org && invitation) {
    return (
      <PageFrame title="Invitation">
        <Card title="Join the organization" note={`Accepting as ${session.user.email}`}>
          <div className="stack">
            {problem && <FormAlert problem={problem} />}
            <div className="row">
              <button type="button" className="btn primary" disabled={busy} onClick={accept}>
                {busy ? 'Working…' : 'Accept invitation'}
              </button>
              <a className="btn" href="#/">
                Not now
              </a>
            </div>
          </div>
        </Card>
      </PageFrame>
    );
  }
  return (
    <PageFrame
      title="Access"
      description="What this account can reach, as the registry says it now."
      actions={
        <button type="button" className="btn" onClick={settle ?? refresh}>
          Check again
        </button>
      }
    >
      <Card title="Account">
        <dl className="detail">
          <div>
            <dt>Account</dt>
            <dd>{session.user.email}</dd>
          </div>
          <div>
            <dt>Platform administrator</dt>
            <dd>{bootstrap?.platform_admin ? 'Yes' : 'No'}</dd>
          </div>
          <div>
            <dt>Organizations</dt>
            <dd>{bootstrap?.orgs.length ?? 0}</dd>
          </div>
          <div>
            <dt>Environments</dt>
            <dd>{bootstrap?.orgs.reduce((sum, { envs }) => sum + envs.length, 0) ?? 0}</dd>
          </div>
          <div>
            <dt>Feature version</dt>
            <dd>
              <code>{bootstrap?.feature_version ?? '–'}</code>
            </dd>
          </div>
        </dl>
      </Card>
    </PageFrame>
  );
}
