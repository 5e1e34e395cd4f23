export const SESSION_COOKIE = 'bff-session';
export const PKCE_COOKIE = 'bff-pkce';
const PKCE_SECONDS = 300;
const MIN_LABELS = 4;

/** First value of a cookie in a `Cookie` header. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim() || undefined;
  }
  return undefined;
}

/**
 * Domain of the session cookie, or `undefined` for the exact host: the host without its leading `bff.` where the host as received has
 * at least four labels, and never the platform's own root (G-K-16; GWY-016, GWY-017).
 */
export function cookieDomain(host: string, platformDomain: string): string | undefined {
  if (!host.startsWith('bff.') || host.split('.').length < MIN_LABELS) return undefined;
  const app = host.slice('bff.'.length);
  return `.ops.sys.${platformDomain}`.endsWith(`.${app}`) ? undefined : app;
}

export interface SessionCookieOptions {
  readonly host: string;
  readonly platformDomain: string;
  readonly maxAgeS: number;
  readonly partitioned: boolean;
}

export function sessionCookie(value: string, { host, platformDomain, maxAgeS, partitioned }: SessionCookieOptions): string {
  const domain = cookieDomain(host, platformDomain);
  return `${SESSION_COOKIE}=${value}; Path=/;${
    domain ? ` Domain=${domain};` : ''
  } Max-Age=${maxAgeS}; HttpOnly; Secure; SameSite=None${partitioned ? '; Partitioned' : ''}`;
}

export const pkceCookie = (value: string): string =>
  `${PKCE_COOKIE}=${value}; Path=/auth; Max-Age=${value ? PKCE_SECONDS : 0}; HttpOnly; Secure; SameSite=None`;
