import { parseCookie, stringifySetCookie } from 'cookie';

export type Headers = Readonly<Record<string, string | undefined>>;

export const cookieOf = (headers: Headers, name: string): string | undefined => cookieIn(headers['cookie'], name);

/** A cookie of a request's own header. */
export const cookieIn = (header: string | undefined, name: string): string | undefined => parseCookie(header ?? '')[name] || undefined;

/** A cookie of the hosted pages: for this host alone, and for no script. */
export const pageCookie = (name: string, value: string, { sameSite, maxAge }: { sameSite: 'lax' | 'strict'; maxAge: number }): string =>
  stringifySetCookie({ name, value, path: '/', httpOnly: true, secure: true, sameSite, maxAge });
