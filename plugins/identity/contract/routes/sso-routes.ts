import { del, get, post, put, Type } from '@platform/sdk/contract';
import { NewUpstream, Returned, Upstream } from '../schema/sso.ts';
import { OAuthContext, Signed } from '../schema.ts';
import { challenge, worksOnce } from '../idempotency.ts';

const hosted = { public: 'A person signs in here; there is no credential yet' } as const;
const page = ['csrf_mismatch', 'bad_origin', 'realm_not_found', 'sso_off', 'rate_limited', 'store_away', 'sso_unavailable'] as const;
const admin = { gate: 'auth:users:admin', env: 'own' } as const;

/** Single sign-on: the way to the OpenID provider of a realm's own organization, and back. */
export const ssoRoutes = {
  beginSso: post('/v1/sso/begin', {
    summary: 'Begin to sign in with the provider of the organization',
    idempotency: challenge,
    gate: hosted,
    limit: 16_384,
    body: Type.Object({ oauth: OAuthContext }),
    returns: Type.Object({ redirect_to: Type.String() }),
    problems: page,
  }),
  finishSso: post('/v1/sso/finish', {
    summary: 'Sign in with what the provider answered',
    idempotency: worksOnce,
    gate: hosted,
    limit: 16_384,
    body: Returned,
    returns: Signed,
    problems: [...page, 'sso_refused', 'sso_no_account', 'token_expired', 'invalid_credentials'],
    emits: ['platform:auth:user:created'],
  }),
  getUpstream: get('/v1/admin/sso', {
    ...admin,
    summary: 'The provider of single sign-on',
    returns: Upstream,
    problems: ['realm_not_found', 'sso_off'],
  }),
  putUpstream: put('/v1/admin/sso', {
    ...admin,
    summary: 'Set up single sign-on',
    body: NewUpstream,
    returns: Upstream,
    problems: ['realm_not_found', 'sso_unavailable'],
  }),
  deleteUpstream: del('/v1/admin/sso', {
    ...admin,
    summary: 'Sign in without the provider again',
    problems: ['realm_not_found', 'sso_off'],
  }),
};
