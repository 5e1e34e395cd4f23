import type { Bootstrap, NavEntry, ServiceEntry } from '../../api/registry-api.ts';
import type { Route } from './route.ts';

/** Where the operator stands: an org, and an environment of it unless the org itself is looked at. */
export interface Place {
  readonly org: string | undefined;
  readonly env: string | undefined;
}

/** Whether an environment must be chosen before a page can be asked for (F-55): what is about one needs one. */
export function needsEnvironment({ nav }: Pick<ServiceEntry, 'nav'>, page: string, place: Place): boolean {
  return !place.env && (nav.find(item => item.page === page)?.scope ?? 'env') === 'env';
}

/** Whether a page is about the whole system: about neither an organization nor an environment. */
export const isWhole = (entry: NavEntry | undefined): boolean => entry?.scope !== undefined && !['env', 'org'].includes(entry.scope);

/** Whether a page of the platform was asked for while the operator stands in a tenant (F-57). */
export function isElsewhere({ nav }: Pick<ServiceEntry, 'nav'>, page: string, place: Place, bootstrap: Bootstrap | undefined): boolean {
  const inTenant =
    bootstrap?.system !== undefined &&
    (place.org !== undefined || place.env !== undefined) &&
    place.org !== bootstrap.system.org_id &&
    place.env !== bootstrap.system.env_id;
  return inTenant && isWhole(nav.find(item => item.page === page));
}

/** From the route, else from where the operator was, else the first environment within reach. */
export function placeOf(route: Route, bootstrap: Bootstrap | undefined, before: Place | undefined): Place {
  const orgs = bootstrap?.orgs ?? [];
  const env = 'env' in route ? route.env : undefined;
  if (env) {
    const owner = orgs.find(org => org.envs.some(each => each.env_id === env));
    return { env, org: owner?.org_id ?? (before?.env === env ? before.org : undefined) };
  }
  const org = 'org' in route && route.name !== 'bootstrap' ? route.org : undefined;
  if (org) return { org, env: undefined };
  if (before?.org || before?.env) return before;
  // The platform's own environment is nobody's first choice.
  const own = orgs.toSorted((a, b) => Number(a.org_id === bootstrap?.system?.org_id) - Number(b.org_id === bootstrap?.system?.org_id));
  const live = own.flatMap(({ envs }) => envs).find(({ status }) => status === 'active');
  return { org: live?.org_id ?? own[0]?.org_id, env: live?.env_id };
}
