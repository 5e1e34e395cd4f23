import { parseCookie, stringifySetCookie } from 'cookie';
import { platformZone } from '@platform/sdk';

export const SESSION_COOKIE = 'bff-session';
export const PKCE_COOKIE = 'bff-pkce';
const PKCE_SECONDS = 300;
const MIN_LABELS = 4;
/** No script reads it, and pages of the application's other hosts bring it. */
const HIDDEN = { httpOnly: true, secure: true, sameSite: 'none' } as const;

/** First value of a cookie in a `Cookie` header. */
export const readCookie = (header: string | undefined, name: string): string | undefined => parseCookie(header ?? '')[name] || undefined;

/**
 * Domain of the session cookie, or `undefined` for the exact host: the host without its leading `bff.` where the host as received has
 * at least four labels, and never the platform's own root (G-K-16; GWY-016, GWY-017).
 */
export function cookieDomain(host: string, platformDomain: string): string | undefined {
  if (!host.startsWith('bff.') || host.split('.').length < MIN_LABELS) return undefined;
  const app = host.slice('bff.'.length);
  return `.${platformZone(platformDomain)}`.endsWith(`.${app}`) ? undefined : app;
}

export interface SessionCookieOptions {
  readonly host: string;
  readonly platformDomain: string;
  readonly maxAgeS: number;
  readonly partitioned: boolean;
}

export function sessionCookie(value: string, { host, platformDomain, maxAgeS, partitioned }: SessionCookieOptions): string {
  const domain = cookieDomain(host, platformDomain);
  return stringifySetCookie({
    ...HIDDEN,
    name: SESSION_COOKIE,
    value,
    path: '/',
    maxAge: maxAgeS,
    ...(domain === undefined ? {} : { domain }),
    ...(partitioned ? { partitioned } : {}),
  });
}

export const pkceCookie = (value: string): string =>
  stringifySetCookie({ ...HIDDEN, name: PKCE_COOKIE, value, path: '/auth', maxAge: value ? PKCE_SECONDS : 0 });
