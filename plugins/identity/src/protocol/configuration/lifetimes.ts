import type { Configuration } from 'oidc-provider';

/** G-K-07, G-AUTH-08; seconds. */
export const LIFETIME = {
  token: 900,
  delegated: 600,
  ciba: 300,
  device: 600,
  code: 60,
  par: 60,
  id: 300,
  refresh: 30 * 86_400,
  sessionIdle: 12 * 3_600,
  sessionMost: 7 * 86_400,
  interaction: 3_600,
} as const;

/** Idle and absolute end of a sign-in session, counted from the sign-in itself. */
export function sessionSeconds(loginTs: number | undefined, now = Math.floor(Date.now() / 1_000)): number {
  return Math.max(1, Math.min(LIFETIME.sessionIdle, LIFETIME.sessionMost - (now - (loginTs ?? now))));
}

/** Functions where a number would win over what the resource says (facts/identity 2). */
export const TTL: NonNullable<Configuration['ttl']> = {
  AccessToken: context => (context.oidc.entities.BackchannelAuthenticationRequest ? LIFETIME.delegated : LIFETIME.token),
  ClientCredentials: () => LIFETIME.token,
  AuthorizationCode: LIFETIME.code,
  PushedAuthorizationRequest: LIFETIME.par,
  IdToken: LIFETIME.id,
  DeviceCode: LIFETIME.device,
  BackchannelAuthenticationRequest: context => Math.min(LIFETIME.ciba, Number(context.oidc.params?.['requested_expiry'] ?? LIFETIME.ciba)),
  // Thirty days from the sign-in, however often it rotates.
  RefreshToken: context => context.oidc.entities.RotatedRefreshToken?.remainingTTL ?? LIFETIME.refresh,
  Grant: LIFETIME.refresh + 3_600,
  Session: (_context, session) => sessionSeconds(session.loginTs),
  Interaction: LIFETIME.interaction,
};
