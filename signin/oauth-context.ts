/** What travels in the query from page to page and into API bodies. */
export const CONTEXT = ['client_id', 'redirect_uri', 'state', 'code_challenge', 'scope', 'request_uri', 'uid', 'return_to'] as const;
/** Pages of this origin that a sign-in without an application may return to. */
const RETURNS = /^\/(?:account(?:\/mfa)?|(?:device|ciba)(?:\?[A-Za-z0-9=&%_.~-]{0,400})?)$/;

export type OAuthContext = Partial<Record<(typeof CONTEXT)[number], string>>;
export type Query = Readonly<Record<string, string | undefined>>;

export function contextOf(query: Query): OAuthContext {
  const context: OAuthContext = {};
  for (const name of CONTEXT) {
    const value = query[name];
    if (value && (name !== 'return_to' || RETURNS.test(value))) context[name] = value;
  }
  return context;
}

/** A path of this origin that carries the context on. */
export function pathWith(path: string, query: Query, more: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...contextOf(query), ...more })) if (value) search.set(name, value);
  return search.size ? `${path}?${search}` : path;
}
