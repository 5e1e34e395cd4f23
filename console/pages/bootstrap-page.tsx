import { useConsole } from '../shell/console-context.ts';
import { useLoaded } from '../shell/loading/use-loaded.ts';
import { Card } from '../widgets/card.tsx';
import { PageFrame } from '../widgets/page/page-frame.tsx';
import { LoadedView } from '../widgets/page/page-state.tsx';
import { StatusBadge } from '../widgets/value/status-badge.tsx';

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
      <Rights />
      <RegistryState />
    </PageFrame>
  );
}

/** What this session was given, by the names that services give their rights. */
function Rights() {
  const { registry, session } = useConsole();
  const loaded = useLoaded('scopes', signal => registry.scopeCatalog(signal));
  return (
    <Card title="What you may do" note="Rights of this sign-in. An organization or an environment may give more, or take some away.">
      <LoadedView of={loaded}>
        {catalog => {
          const held = new Set(session.scopes.map(scope => scope.replace(/^platform:/, '')));
          const known = catalog.filter(({ scope }) => held.has(scope.replace(/^platform:/, '')));
          if (known.length === 0) return <p>This account holds no right of its own. What it may do comes from its organizations.</p>;
          return (
            <ul className="rights">
              {known.map(({ scope, title }) => (
                <li key={scope}>
                  {title} <code>{scope}</code>
                </li>
              ))}
            </ul>
          );
        }}
      </LoadedView>
    </Card>
  );
}

/** Whether what this page rests on can do its work. */
function RegistryState() {
  const { registry } = useConsole();
  const loaded = useLoaded('registry', async signal => ({
    health: await registry.health(signal),
    readiness: await registry.readiness(signal),
  }));
  return (
    <Card title="Registry">
      <LoadedView of={loaded}>
        {({ health, readiness }) => (
          <dl className="detail">
            <div>
              <dt>State</dt>
              <dd>
                <StatusBadge status={readiness.status === 'ready' ? 'up' : 'down'} />
              </dd>
            </div>
            {health.version && (
              <div>
                <dt>Version</dt>
                <dd>
                  <code>{health.version}</code>
                </dd>
              </div>
            )}
            {Object.entries(readiness.checks)
              .filter(([, { ok }]) => !ok)
              .map(([name, { detail }]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{detail ?? 'does not answer'}</dd>
                </div>
              ))}
          </dl>
        )}
      </LoadedView>
    </Card>
  );
}
