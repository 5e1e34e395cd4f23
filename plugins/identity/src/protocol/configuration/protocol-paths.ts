import type { Configuration } from 'oidc-provider';

/** Where the endpoints of a realm stand. */
export const PATHS: NonNullable<Configuration['routes']> = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  pushed_authorization_request: '/oauth/par',
  revocation: '/oauth/revoke',
  introspection: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
  jwks: '/.well-known/jwks.json',
  end_session: '/oauth/end-session',
  device_authorization: '/oauth/device_authorization',
  // The page is ours; what the library would serve under this path is never reached.
  code_verification: '/device',
  backchannel_authentication: '/oauth/bc-authorize',
};

/** What the discovery document names beside what the library serves. */
export const discoveryOf = (issuer: string) => ({
  registration_endpoint: `${issuer}/oauth/register`,
  mtls_endpoint_aliases: {
    pushed_authorization_request_endpoint: `${issuer}/mtls/oauth/par`,
    token_endpoint: `${issuer}/mtls/oauth/token`,
    revocation_endpoint: `${issuer}/mtls/oauth/revoke`,
    introspection_endpoint: `${issuer}/mtls/oauth/introspect`,
    registration_endpoint: `${issuer}/mtls/oauth/register`,
    backchannel_authentication_endpoint: `${issuer}/mtls/oauth/bc-authorize`,
    device_authorization_endpoint: `${issuer}/mtls/oauth/device_authorization`,
  },
});
