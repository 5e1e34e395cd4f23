import type { Ctx } from '../context.ts';
import { canonicalScope } from '../access/scope-name.ts';

/** What the scopes of OpenID mean to the person who is asked. */
const OPENID: Readonly<Record<string, string>> = {
  openid: 'Know that it is you',
  email: 'See your e-mail address',
  profile: 'See your name',
  offline_access: 'Stay signed in when you are away',
};

/** Scopes as a person reads them; an action that no contract names keeps its own name. */
export function titlesOf({ catalog }: Ctx, scope: string): { scope: string; title: string }[] {
  const known = new Map(catalog.actions().map(({ scope: name, title }) => [canonicalScope(name), title]));
  return [...new Set(scope.split(' ').filter(Boolean))]
    .slice(0, 200)
    .map(name => ({ scope: name, title: OPENID[name] ?? known.get(canonicalScope(name)) ?? name }));
}
