/**
 * The props a service's page may be given: the documented `listing_id`, `instance_id`, `app_id`, `app_instance_id`, `type`, and what a page
 * of its own declares.
 */
const PAGE_PROP = /^[a-z][a-z0-9_]{0,40}$/;
const MOST_PROPS = 8;

export type Route =
  | { readonly name: 'sign-out'; readonly everywhere?: true }
  | { readonly name: 'orgs' | 'org-create' | 'sign-in' | 'callback' | 'not-found' }
  | { readonly name: 'bootstrap'; readonly org?: string; readonly invitation?: string }
  | { readonly name: 'home' | 'settings' | 'branding'; readonly org?: string; readonly env?: string }
  | { readonly name: 'env-create' | 'members'; readonly org: string }
  | { readonly name: 'audit'; readonly env: string; readonly correlation?: string }
  | {
      readonly name: 'page';
      readonly service: string;
      readonly page: string;
      readonly org?: string;
      readonly env?: string;
      readonly props: Readonly<Record<string, string>>;
    };

const NOT_FOUND: Route = { name: 'not-found' };

/** A hash to a route. Named routes stand before the catch-all, so no service can take their place. */
export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?', 2);
  const query = new URLSearchParams(search);
  const segments = path.split('/').filter(Boolean);
  const org = query.get('org') || undefined;
  const env = query.get('env') || undefined;
  // The environment wins here as it does on the wire.
  const where = env ? { env } : org ? { org } : {};

  switch (segments.join('/')) {
    case '':
    case 'org':
      return { name: 'orgs' };
    case 'bootstrap': {
      const invitation = query.get('invitation');
      return { name: 'bootstrap', ...(org ? { org } : {}), ...(invitation ? { invitation } : {}) };
    }
    case 'sign-in':
      return { name: 'sign-in' };
    case 'sign-out':
      return { name: 'sign-out' };
    case 'sign-out/everywhere':
      return { name: 'sign-out', everywhere: true };
    case 'auth/callback':
      return { name: 'callback' };
    case 'org/create':
      return { name: 'org-create' };
    case 'env/create':
      return org ? { name: 'env-create', org } : NOT_FOUND;
    case 'members':
      return org ? { name: 'members', org } : NOT_FOUND;
    case 'home':
    case 'settings':
    case 'branding':
      return org || env ? { name: segments[0] as 'home' | 'settings' | 'branding', ...where } : NOT_FOUND;
    case 'audit': {
      const correlation = query.get('correlation');
      return env ? { name: 'audit', env, ...(correlation ? { correlation } : {}) } : NOT_FOUND;
    }
  }
  const [service, ...page] = segments;
  if (!service || !/^[a-z][a-z0-9]{0,30}$/.test(service)) return NOT_FOUND;
  const props: Record<string, string> = {};
  for (const [name, value] of query) {
    if (value && name !== 'org' && name !== 'env' && PAGE_PROP.test(name) && Object.keys(props).length < MOST_PROPS) props[name] = value;
  }
  return { name: 'page', service, page: page.map(safeDecode).join('/') || 'overview', ...where, props };
}

function safeDecode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** `#/path?query`, leaving out what is not set. */
export function hrefOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  return `#/${path}${search.size ? `?${search}` : ''}`;
}

/** The same named route for another org or environment; a service's page keeps its name and loses its props. */
export function routeElsewhere(route: Route, subject: { org?: string; env?: string }): string {
  if (route.name === 'page' && subject.env) return hrefOf(`${route.service}/${route.page}`, subject);
  if (route.name === 'settings' || route.name === 'branding') return hrefOf(route.name, subject);
  if (route.name === 'members' && subject.org) return hrefOf('members', subject);
  if (route.name === 'audit' && subject.env) return hrefOf('audit', subject);
  return hrefOf('home', subject);
}
