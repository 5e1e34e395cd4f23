import * as openid from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appStore, application, authorize, fetchOf, REDIRECT } from '../fixtures/applications.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
const HOST = 'auth.prod.given.localhost';
let config: openid.Configuration;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  await world.person('ada@example.org', { envId: await world.environment(HOST) });
  config = await application(world, { first_party: true, grant_types: ['authorization_code', 'refresh_token'] }, HOST);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const tokens = async (by = config) => {
  const browser = world.browser(HOST);
  const { oauth, redeem } = await authorize(by, browser);
  const answer = await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: oauth() });
  return redeem((await browser.get(String(answer.json['next']))).location);
};

describe('an access token that was given', () => {
  test('can be given back: it is good nowhere from then on, and verifiers are told', async () => {
    const { access_token: token } = await tokens();
    expect(await openid.tokenIntrospection(config, token)).toMatchObject({ active: true, email: 'ada@example.org', token_type: 'access' });
    await openid.tokenRevocation(config, token);
    expect(await openid.tokenIntrospection(config, token)).toEqual({ active: false });
    expect((await world.reach('/oauth/userinfo', { token, host: HOST })).status).toBe(401);
    expect(await world.kv('EXISTS', `revoked:jti:${String(claimsOf(token)['jti'])}`)).toBe(1);
    // The refresh token is another matter, and still good.
    const other = await tokens();
    await openid.tokenRevocation(config, other.access_token);
    expect((await openid.refreshTokenGrant(config, other.refresh_token as string)).access_token).toMatch(/^ey/);
  });

  test('is no other application’s business: it can neither give it back nor read it', async () => {
    const { access_token: token } = await tokens();
    const stranger = await application(world, { first_party: true }, HOST);
    expect(await openid.tokenIntrospection(stranger, token)).toEqual({ active: false });
    await openid.tokenRevocation(stranger, token);
    expect(await openid.tokenIntrospection(config, token)).toMatchObject({ active: true });
  });

  test('a revoked token is remembered when the key-value store loses its memory', async () => {
    const { access_token: token } = await tokens();
    const key = `revoked:jti:${String(claimsOf(token)['jti'])}`;
    await openid.tokenRevocation(config, token);
    await world.kv('DEL', key, 'auth:revocations:published');
    await world.host.clock.advance('11s');
    expect(await world.kv('EXISTS', key)).toBe(1);
  });
});

describe('a token that is bound to a key', () => {
  const held = async () => {
    const handle = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'));
    const browser = world.browser(HOST);
    const verifier = openid.randomPKCECodeVerifier();
    const code_challenge = await openid.calculatePKCECodeChallenge(verifier);
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: REDIRECT,
      scope: 'openid email',
      code_challenge,
      code_challenge_method: 'S256',
    });
    const page = await browser.get(url.href);
    const oauth = Object.fromEntries(new URL(page.location, url).searchParams);
    const answer = await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth });
    const landed = new URL((await browser.get(String(answer.json['next']))).location);
    const given = await openid.authorizationCodeGrant(config, landed, { pkceCodeVerifier: verifier }, undefined, { DPoP: handle });
    return { token: given.access_token, sub: String(claimsOf(given.access_token)['sub']), handle };
  };

  test('F-18 opens userinfo with its proof, as an independent client makes it, and in no other way', async () => {
    const { token, sub, handle } = await held();
    expect(await openid.fetchUserInfo(config, token, sub, { DPoP: handle })).toMatchObject({ email: 'ada@example.org' });
    const answers = [
      await world.reach('/oauth/userinfo', { token, host: HOST }),
      await world.reach('/oauth/userinfo', { host: HOST, headers: { authorization: `DPoP ${token}` } }),
      await world.reach('/oauth/userinfo', { host: HOST, headers: { authorization: `DPoP ${(await tokens()).access_token}` } }),
    ];
    expect(answers.map(({ status, headers }) => [status, String(headers['www-authenticate']).split(' ')[0]])).toEqual(
      Array(3).fill([401, 'DPoP']),
    );
  });

  test('F-18 a proof opens userinfo once', async () => {
    const { token, sub, handle } = await held();
    let proof = '';
    const watched: openid.CustomFetch = async (url, options) => {
      proof = new Headers(options.headers as HeadersInit).get('dpop') ?? '';
      return fetchOf(world)(url, options);
    };
    const kept = config[openid.customFetch];
    config[openid.customFetch] = watched;
    await openid.fetchUserInfo(config, token, sub, { DPoP: handle });
    if (kept) config[openid.customFetch] = kept;
    expect(proof).toMatch(/^ey/);
    expect((await world.reach('/oauth/userinfo', { host: HOST, headers: { authorization: `DPoP ${token}`, dpop: proof } })).status).toBe(
      401,
    );
  });
});

describe('discovery', () => {
  test('says what is true of the protocol, and nothing more', async () => {
    const { json } = await world.reach('/.well-known/openid-configuration', { host: HOST });
    const at = (path: string) => `https://${HOST}:8443${path}`;
    expect(json).toMatchObject({
      issuer: at(''),
      registration_endpoint: at('/oauth/register'),
      device_authorization_endpoint: at('/oauth/device_authorization'),
      backchannel_authentication_endpoint: at('/oauth/bc-authorize'),
      backchannel_token_delivery_modes_supported: ['poll'],
      backchannel_user_code_parameter_supported: false,
      response_types_supported: ['code'],
      response_modes_supported: ['form_post', 'fragment', 'query'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      claims_parameter_supported: false,
      request_uri_parameter_supported: false,
      dpop_signing_alg_values_supported: ['EdDSA', 'ES256', 'ML-DSA-65', 'Ed25519'],
    });
    expect([...(json['grant_types_supported'] as string[])].sort()).toEqual(
      [
        'authorization_code',
        'client_credentials',
        'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code',
        'urn:ietf:params:oauth:grant-type:token-exchange',
        'urn:openid:params:grant-type:ciba',
      ].sort(),
    );
    // Every endpoint that is named is there.
    for (const [name, url] of Object.entries(json)) {
      if (!/_(endpoint|uri)$/.test(name) || typeof url !== 'string') continue;
      const { status } = await world.reach(new URL(url).pathname, {
        host: HOST,
        method: name === 'jwks_uri' || name === 'authorization_endpoint' || name === 'userinfo_endpoint' ? 'GET' : 'POST',
      });
      expect([name, status === 404 || status >= 500]).toEqual([name, false]);
    }
  });
});
