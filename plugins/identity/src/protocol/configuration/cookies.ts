import type { Configuration } from 'oidc-provider';

export const SESSION_COOKIE = '__Host-platform-session';

export const COOKIES: NonNullable<Configuration['cookies']> = {
  // The library gives `resume` the path of its own authorization, which __Host- does not allow.
  names: { session: SESSION_COOKIE, interaction: '__Host-platform-interaction', resume: '__Secure-platform-resume' },
  long: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: false },
  short: { path: '/', httpOnly: true, secure: true, sameSite: 'lax', signed: false },
};
