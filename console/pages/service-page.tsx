import { useCallback, useEffect, useMemo, useState } from 'react';
import type { Query } from '../api/gateway/gateway-client.ts';
import type { Action, Link, PageDef, Source } from '../api/page-def.ts';
import type { ServiceEntry } from '../api/registry-api.ts';
import type { Target } from '../api/gateway/target.ts';
import { useConsole } from '../shell/console-context.ts';
import { coalesced } from '../shell/loading/coalesced.ts';
import { isElsewhere, needsEnvironment } from '../shell/navigation/place.ts';
import { hrefOf } from '../shell/navigation/route.ts';
import { useLoaded } from '../shell/loading/use-loaded.ts';
import { type PageHost, PageHostState } from '../widgets/page/page-host.ts';
import { PageFrame } from '../widgets/page/page-frame.tsx';
import { Empty, Loading, LoadedView } from '../widgets/page/page-state.tsx';
import { SectionList } from '../widgets/page/section-view.tsx';
import { actionBody, fillPath, fillText, type TemplateScope } from '../widgets/page/template.ts';
import { NotFoundPage } from './not-found-page.tsx';

interface ServicePageProps {
  service: ServiceEntry;
  page: string;
  props: Readonly<Record<string, string>>;
}

const encodedPage = (page: string) => page.split('/').map(encodeURIComponent).join('/');

/** Any page of any service. */
export function ServicePage(props: ServicePageProps) {
  const { service, page } = props;
  const { place, bootstrap } = useConsole();
  if (isElsewhere(service, page, place, bootstrap)) return <PlatformPage service={service} page={page} />;
  if (!needsEnvironment(service, page, place)) return <DeclaredPage {...props} />;
  const title = service.nav.find(item => item.page === page)?.label ?? service.label;
  return (
    <PageFrame title={title} above={service.label}>
      <ChooseEnvironment service={service} title={title} page={page} />
    </PageFrame>
  );
}

/** A page of the platform was opened inside a tenant: what it does reaches everybody, so it is shown where that is plain (F-57). */
function PlatformPage({ service, page }: { service: ServiceEntry; page: string }) {
  const { config } = useConsole();
  const title = service.nav.find(item => item.page === page)?.label ?? service.label;
  return (
    <PageFrame title={title} above={service.label}>
      <Empty title="This page belongs to the platform">
        <p>What is done on it counts for every organization.</p>
        <a className="btn" href={hrefOf(`${service.service}/${encodedPage(page)}`, { env: config.system.env_id })}>
          Open it for the platform
        </a>
      </Empty>
    </PageFrame>
  );
}

/** A page from its definition. */
function DeclaredPage({ service, page, props }: ServicePageProps) {
  const { client, place, config } = useConsole();
  const target: Target = place.env ? { env: place.env } : place.org ? { org: place.org } : { env: config.system.env_id };
  const loaded = useLoaded(JSON.stringify([service.service, page, props['type'], target]), signal =>
    client.call<PageDef>(service.service, `/v1/admin/ui/${encodedPage(page)}`, { query: { type: props['type'] }, target, signal }),
  );
  if (loaded.problem?.absent) return <NotFoundPage />;
  if (!loaded.data) {
    return (
      <PageFrame title={service.nav.find(item => item.page === page)?.label ?? service.label} above={service.label}>
        <LoadedView of={loaded}>{() => <Loading />}</LoadedView>
      </PageFrame>
    );
  }
  return <DefinedPage service={service} def={loaded.data} params={props} />;
}

function DefinedPage({ service, def, params }: { service: ServiceEntry; def: PageDef; params: Readonly<Record<string, string>> }) {
  const { client, live, place, config, session, bootstrap, notify } = useConsole();
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn(before => before + 1), []);
  const target = targetOf(def, place, config.system.env_id);

  // A definition that was read again and says the same is no reason to listen anew.
  const liveTypes = JSON.stringify(def.live_types ?? []);
  useEffect(() => {
    const types = JSON.parse(liveTypes) as string[];
    if (types.length > 0)
      return live.subscribe(
        types,
        coalesced(async () => reload(), 250),
      );
  }, [liveTypes, live, reload]);
  useEffect(() => {
    if (!def.refresh_s) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), def.refresh_s * 1000);
    return () => clearInterval(timer);
  }, [def.refresh_s, reload]);

  const host = useMemo<PageHost>(() => {
    const where = def.scope === 'org' ? { org: place.org } : { env: place.env, org: place.org };
    const href = (link: Link, scope: TemplateScope) => {
      const filled = Object.entries(link.params ?? {}).map(([name, value]) => [name, fillText(value, { ...scope, params })] as const);
      return hrefOf(`${link.service ?? service.service}/${encodedPage(link.page)}`, {
        ...(where.env ? { env: where.env } : { org: where.org }),
        ...Object.fromEntries(filled),
      });
    };
    return {
      def,
      params,
      turn,
      href,
      read: (source: Source, more: Query = {}, signal) => {
        const query = Object.entries(source.query ?? {}).map(([name, value]) => [name, fillText(value, { params })] as const);
        return client.call(service.service, `/v1/admin/${fillPath(source.resource, { params })}`, {
          query: { ...Object.fromEntries(query), ...more },
          target,
          signal,
        });
      },
      run: async (action: Action, scope) => {
        client.beginAction();
        return client.call(service.service, `/v1/admin/${fillPath(action.resource, { ...scope, params })}`, {
          method: 'POST',
          body: actionBody(action.body, { ...scope, params }),
          target,
        });
      },
      settle: ({ then = 'reload', label }, scope, text) => {
        notify(text ?? `${label}: done`);
        if (typeof then === 'object') location.hash = href(then, scope);
        else if (then !== 'toast') reload();
      },
      // The session's scopes say nothing about another environment; there the service decides.
      may: ({ requires }) =>
        !requires ||
        bootstrap?.platform_admin === true ||
        target.env !== session.env_id ||
        session.scopes.some(scope => scope === requires || scope.endsWith(`:${requires}`)),
    };
  }, [def, params, turn, client, service, target.env, target.org, place.env, place.org, session, bootstrap, notify, reload]);

  const missing = def.params?.find(({ name, required }) => required && !params[name]);
  return (
    <PageFrame title={def.title} above={service.label} description={def.description}>
      {!target.env && !target.org ? (
        <ChooseEnvironment service={service} title={def.title} page={def.page} />
      ) : missing ? (
        <p className="notice" data-tone="warn">
          This page needs <code>{missing.name}</code> in its address. Open it from a list.
        </p>
      ) : (
        <PageHostState value={host}>
          <SectionList sections={def.sections} />
        </PageHostState>
      )}
    </PageFrame>
  );
}

/** A page of an environment was opened while the operator stood at its organization. */
function ChooseEnvironment({ service, title, page }: { service: ServiceEntry; title: string; page: string }) {
  const { bootstrap, place } = useConsole();
  const envs = bootstrap?.orgs.filter(({ org_id }) => !place.org || org_id === place.org).flatMap(org => org.envs) ?? [];
  return (
    <Empty title="Choose an environment">
      <p>{title} belongs to an environment.</p>
      <ul className="chips">
        {envs.map(env => (
          <li key={env.env_id}>
            <a className="chip" href={hrefOf(`${service.service}/${encodedPage(page)}`, { env: env.env_id })}>
              {env.display_name}
            </a>
          </li>
        ))}
      </ul>
    </Empty>
  );
}

function targetOf(def: PageDef, place: { org: string | undefined; env: string | undefined }, systemEnv: string): Target {
  if (def.scope === 'env') return { env: place.env };
  return def.scope === 'org' ? { org: place.org } : { env: systemEnv };
}
