import { useConsole } from '../shell/console-context.ts';
import { Card } from '../widgets/card.tsx';
import { PageFrame } from '../widgets/page/page-frame.tsx';

/** What the operator can reach. */
export function BootstrapPage({ settle }: { settle?: () => Promise<void> }) {
  const { bootstrap, session, refresh } = useConsole();
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
