import { useEffect } from 'react';
import type { Org } from '../../api/registry-api.ts';
import { coalesced } from '../../shell/loading/coalesced.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { Card } from '../../widgets/card.tsx';
import { CopyableCode } from '../../widgets/value/copyable-code.tsx';
import { Icon } from '../../widgets/icon.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { Absent, Empty, LoadedView } from '../../widgets/page/page-state.tsx';
import { StatusBadge } from '../../widgets/value/status-badge.tsx';
import { Value } from '../../widgets/value/value.tsx';

export function OrgHomePage({ org }: { org: string }) {
  const { registry, live, config, bootstrap } = useConsole();
  const known = bootstrap?.orgs.find(({ org_id }) => org_id === org);
  const record = useLoaded(`org ${org}`, signal => registry.read<Org>({ kind: 'org', id: org }, signal));
  const envs = useLoaded(`envs ${org}`, signal => registry.envs(org, signal));
  const { reload: reloadRecord } = record;
  const { reload: reloadEnvs } = envs;
  useEffect(
    () =>
      live.subscribe(
        config.live_types,
        coalesced(async () => {
          reloadRecord();
          reloadEnvs();
        }, 300),
      ),
    [live, config, reloadRecord, reloadEnvs],
  );
  if (record.problem?.absent) return <Absent what="This organization" />;

  return (
    <PageFrame
      title={record.data?.display_name ?? known?.display_name ?? 'Organization'}
      above={<a href="#/">Organizations</a>}
      actions={
        <>
          <a className="btn" href={hrefOf('members', { org })}>
            Members
          </a>
          <a className="btn" href={hrefOf('settings', { org })}>
            Settings
          </a>
          <a className="btn primary" href={hrefOf('env/create', { org })}>
            <Icon name="plus" />
            Create environment
          </a>
        </>
      }
    >
      <Card title="Environments" flush>
        <LoadedView of={envs}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No environments yet">
                <p>Services, users and data live in an environment.</p>
              </Empty>
            ) : (
              <div className="table-wrap">
                <table className="table">
                  <caption className="hidden">Environments</caption>
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Slug</th>
                      <th scope="col">Sign-in domain</th>
                      <th scope="col">Status</th>
                      <th scope="col">Created</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map(env => (
                      <tr key={env.env_id}>
                        <td data-label="Name">
                          <a href={hrefOf('home', { env: env.env_id })}>{env.display_name}</a>
                        </td>
                        <td data-label="Slug">
                          <code>{env.slug}</code>
                        </td>
                        <td data-label="Sign-in domain">
                          <Value value={env.auth_domain} />
                        </td>
                        <td data-label="Status">
                          <StatusBadge status={env.status} />
                        </td>
                        <td data-label="Created">
                          <Value value={env.created_at} format="datetime" />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </LoadedView>
      </Card>
      <Card title="Organization">
        <LoadedView of={record}>
          {data => (
            <dl className="detail">
              <div>
                <dt>Slug</dt>
                <dd>
                  <code>{data.slug}</code>
                </dd>
              </div>
              <div>
                <dt>Domain</dt>
                <dd>{data.org_domain}</dd>
              </div>
              <div>
                <dt>Status</dt>
                <dd>
                  <StatusBadge status={data.status} />
                </dd>
              </div>
              <div>
                <dt>Created</dt>
                <dd>
                  <Value value={data.created_at} format="datetime" />
                </dd>
              </div>
              <div>
                <dt>Id</dt>
                <dd>
                  <CopyableCode text={data.org_id} label="organization id" />
                </dd>
              </div>
            </dl>
          )}
        </LoadedView>
      </Card>
    </PageFrame>
  );
}
