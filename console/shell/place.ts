import type { Bootstrap, ServiceEntry } from '../api/registry-api.ts';
import type { Route } from './route.ts';

/** Where the operator stands: an org, and an environment of it unless the org itself is looked at. */
export interface Place {
  readonly org: string | undefined;
  readonly env: string | undefined;
}

/**
 * Whether an environment must be chosen before the page of a service can be asked for (F-55). What is about an environment needs one, and a
 * vertical is reached through an environment alone, whatever its page is about.
 */
export function needsEnvironment({ nav, vertical }: Pick<ServiceEntry, 'nav' | 'vertical'>, page: string, place: Place): boolean {
  if (place.env) return false;
  const entry = nav.find(item => item.page === page);
  return vertical !== 'platform' || (entry !== undefined && (entry.scope ?? 'env') === 'env');
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
