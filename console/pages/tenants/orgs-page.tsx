import { useEffect, useMemo } from 'react';
import type { Org, ReachableOrg } from '../../api/registry-api.ts';
import { coalesced } from '../../shell/loading/coalesced.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { Icon, monogram } from '../../widgets/icon.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { Empty, LoadedView } from '../../widgets/page/page-state.tsx';
import { StatusBadge } from '../../widgets/value/status-badge.tsx';

export function OrgsPage() {
  const { registry, live, config, bootstrap } = useConsole();
  const loaded = useLoaded('orgs', async signal => {
    const items: Org[] = [];
    let cursor: string | undefined;
    do {
      const page = await registry.orgs(cursor, signal);
      items.push(...page.items);
      cursor = page.next_cursor ?? undefined;
    } while (cursor && items.length < 1000);
    return items;
  });
  const { reload } = loaded;
  useEffect(
    () =>
      live.subscribe(
        config.live_types,
        coalesced(async () => reload(), 300),
      ),
    [live, config, reload],
  );

  const reachable = useMemo(() => new Map(bootstrap?.orgs.map(org => [org.org_id, org])), [bootstrap]);
  return (
    <PageFrame
      title="Organizations"
      description="Every organization you can reach, with its environments."
      actions={
        <a className="btn primary" href={hrefOf('org/create')}>
          <Icon name="plus" />
          Create organization
        </a>
      }
    >
      <LoadedView of={loaded}>
        {orgs =>
          orgs.length === 0 ? (
            <Empty title="No organizations yet">
              <p>An organization holds environments, members and branding.</p>
            </Empty>
          ) : (
            <ul className="tiles">
              {orgs.map(org => (
                <OrgTile key={org.org_id} org={org} reach={reachable.get(org.org_id)} />
              ))}
            </ul>
          )
        }
      </LoadedView>
    </PageFrame>
  );
}

function OrgTile({ org, reach }: { org: Org; reach: ReachableOrg | undefined }) {
  return (
    <li className="tile">
      <div className="tile-head">
        <span className="mono-mark" aria-hidden="true">
          {monogram(org.display_name)}
        </span>
        <div className="grow">
          <h2>
            <a href={hrefOf('home', { org: org.org_id })}>{org.display_name}</a>
          </h2>
          <p className="sub">{org.org_domain}</p>
        </div>
        {org.status !== 'active' ? (
          <StatusBadge status={org.status} />
        ) : (
          reach?.access && (
            <span className="badge" data-tone="muted">
              {reach.access}
            </span>
          )
        )}
      </div>
      <ul className="chips" aria-label={`Environments of ${org.display_name}`}>
        {reach?.envs
          .filter(({ status }) => status !== 'archived')
          .map(env => (
            <li key={env.env_id}>
              <a className="chip" href={hrefOf('home', { env: env.env_id })}>
                <Icon name="layers" />
                {env.display_name}
              </a>
            </li>
          ))}
        <li>
          <a
            className="chip ghost"
            href={hrefOf('env/create', { org: org.org_id })}
            aria-label={`Create environment in ${org.display_name}`}
          >
            <Icon name="plus" />
            Environment
          </a>
        </li>
      </ul>
    </li>
  );
}
