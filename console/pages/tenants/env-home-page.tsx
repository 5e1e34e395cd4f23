import { useState } from 'react';
import type { Env } from '../../api/registry-api.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { BrandingPreview } from '../../widgets/branding-preview.tsx';
import { Card } from '../../widgets/card.tsx';
import { ConfirmDialog } from '../../widgets/dialog/confirm-dialog.tsx';
import { CopyableCode } from '../../widgets/value/copyable-code.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { Empty, LoadedView } from '../../widgets/page/page-state.tsx';
import { StatusBadge } from '../../widgets/value/status-badge.tsx';
import { Switch } from '../../widgets/form/switch.tsx';
import { Value } from '../../widgets/value/value.tsx';

export function EnvHomePage({ id, env }: { id: string; env: Env | undefined }) {
  const { bootstrap, place } = useConsole();
  const org = bootstrap?.orgs.find(({ org_id }) => org_id === (env?.org_id ?? place.org));
  return (
    <PageFrame
      title={env?.display_name ?? 'Environment'}
      above={org ? <a href={hrefOf('home', { org: org.org_id })}>{org.display_name}</a> : <a href="#/">Organizations</a>}
      actions={
        <>
          <a className="btn" href={hrefOf('audit', { env: id })}>
            Audit
          </a>
          <a className="btn" href={hrefOf('settings', { env: id })}>
            Settings
          </a>
        </>
      }
    >
      <Services env={id} name={env?.display_name ?? 'this environment'} />
      {env && (
        <Card title="Environment">
          <dl className="detail">
            <div>
              <dt>Slug</dt>
              <dd>
                <code>{env.slug}</code>
              </dd>
            </div>
            <div>
              <dt>Sign-in domain</dt>
              <dd>
                <Value value={env.auth_domain} />
              </dd>
            </div>
            <div>
              <dt>Status</dt>
              <dd>
                <StatusBadge status={env.status} />
              </dd>
            </div>
            <div>
              <dt>Created</dt>
              <dd>
                <Value value={env.created_at} format="datetime" />
              </dd>
            </div>
            <div>
              <dt>Id</dt>
              <dd>
                <CopyableCode text={env.env_id} label="environment id" />
              </dd>
            </div>
          </dl>
        </Card>
      )}
      <Look env={id} />
    </PageFrame>
  );
}

/** What people meet when they sign in here, as the registry merges it. */
function Look({ env }: { env: string }) {
  const { registry } = useConsole();
  const loaded = useLoaded(`look ${env}`, signal => registry.mergedBranding(env, signal));
  return (
    <Card
      title="Sign-in look"
      note={
        <>
          What people of this environment meet. <a href={hrefOf('branding', { env })}>Change it</a>
        </>
      }
    >
      <LoadedView of={loaded} optional>
        {branding => <BrandingPreview branding={branding} />}
      </LoadedView>
    </Card>
  );
}

/** What is enabled here, beside what the registered services say about themselves. */
function Services({ env, name }: { env: string; name: string }) {
  const { registry, client, services = [], refresh, notify } = useConsole();
  const loaded = useLoaded(`services ${env}`, signal => registry.enablement(env, signal));
  const [leaving, setLeaving] = useState<{ service: string; label: string }>();
  const turn = async (service: string, label: string, enabled: boolean) => {
    client.beginAction();
    await registry.enable(env, service, enabled);
    notify(`${label} ${enabled ? 'enabled' : 'disabled'}`);
    loaded.reload();
    await refresh();
  };
  // Off asks first; on is done at once.
  const set = async (service: string, label: string, enabled: boolean) => {
    if (!enabled) return setLeaving({ service, label });
    try {
      await turn(service, label, true);
    } catch (error) {
      const problem = Problem.of(error);
      notify(`${label}: ${problem.denied ? 'not permitted' : problem.message} (${problem.correlationId})`, 'bad');
    }
  };
  return (
    <Card title="Services" note="Disabling a service closes its screens and its calls in this environment." flush>
      <LoadedView of={loaded} optional>
        {({ services: rows }) =>
          rows.length === 0 ? (
            <Empty title="No services registered" />
          ) : (
            <ul className="rows">
              {rows.map(({ service, enabled, essential }) => {
                const entry = services.find(each => each.service === service);
                const label = entry?.label ?? service;
                const page = entry?.nav[0]?.page;
                return (
                  <li key={service}>
                    <span className="grow">
                      {enabled && page ? <a href={hrefOf(`${service}/${page}`, { env })}>{label}</a> : label}
                      <span className="sub"> {essential ? 'always on: the platform needs it' : (entry?.vertical ?? '')}</span>
                    </span>
                    {entry?.health && <StatusBadge status={entry.health} />}
                    <Switch label={`${label} enabled`} on={enabled} fixed={essential} change={on => set(service, label, on)} />
                  </li>
                );
              })}
            </ul>
          )
        }
      </LoadedView>
      {leaving && (
        <ConfirmDialog
          title={`Turn ${leaving.label} off in ${name}?`}
          text={`Its pages close and its calls are refused for everybody in ${name}, at once. Its data stay, and you can turn it on again here.`}
          label={`Turn ${leaving.label} off`}
          tone="bad"
          close={() => setLeaving(undefined)}
          run={() => turn(leaving.service, leaving.label, false)}
        />
      )}
    </Card>
  );
}
