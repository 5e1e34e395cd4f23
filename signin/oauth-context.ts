/** What travels in the query from page to page and into API bodies. */
export const CONTEXT = [
  'client_id',
  'redirect_uri',
  'state',
  'code_challenge',
  'scope',
  'request_uri',
  'uid',
  'return_to',
  'ui_locales',
  'invitation',
] as const;
/** What single steps need besides; a change of language keeps it. */
const OF_STEP = [
  'challenge_id',
  'methods',
  'consent_flow',
  'user_code',
  'auth_req_id',
  'login_hint',
  'notice',
  'error',
  'correlation_id',
] as const;
const PLAIN = /^[\w .:@+,/=-]{1,500}$/;
/** Pages of this origin that a sign-in without an application may return to. */
const RETURNS = /^\/(?:account(?:\/mfa)?|(?:device|ciba)(?:\?[A-Za-z0-9=&%_.~-]{0,400})?)$/;

const SHAPE: Readonly<Partial<Record<(typeof CONTEXT)[number], RegExp>>> = {
  return_to: RETURNS,
  ui_locales: /^[A-Za-z0-9 -]{1,100}$/,
  invitation: /^[A-Za-z0-9_-]{43}$/,
};

export type OAuthContext = Partial<Record<(typeof CONTEXT)[number], string>>;
export type Query = Readonly<Record<string, string | undefined>>;

export function contextOf(query: Query): OAuthContext {
  const context: OAuthContext = {};
  for (const name of CONTEXT) {
    const value = query[name];
    if (value && (SHAPE[name]?.test(value) ?? true)) context[name] = value;
  }
  return context;
}

/** A path of this origin that carries the context on. */
export function pathWith(path: string, query: Query, more: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...contextOf(query), ...more })) if (value) search.set(name, value);
  return search.size ? `${path}?${search}` : path;
}

/** The page itself once more, in another language: a query alone keeps the path, and a mail's token stays behind `#`. */
export function inLanguage(locale: string, query: Query): string {
  const kept = OF_STEP.map(name => [name, query[name]] as const).filter(([, value]) => value && PLAIN.test(value));
  return pathWith('', query, { ...Object.fromEntries(kept), ui_locales: locale });
}
