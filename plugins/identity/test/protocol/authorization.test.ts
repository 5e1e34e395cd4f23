import { createPublicKey, verify } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CALLBACK, CHOSEN, claimsOf, ONE_TIME, type Tokens, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const ADMIN = 'admin@ops.sys.localhost';

describe('the first administrator', () => {
  test('IDN-009 IDN-015 IDN-017 signs in with the one-time password, chooses another, and the gateway gets tokens', async () => {
    const browser = world.browser();
    // 1. The gateway pushed the request; the browser knows only its name.
    const { verifier, state, page, oauth } = await world.begin(browser);
    expect(page.status).toBe(303);
    expect(page.location).toMatch(/^\/sign-in\?/);
    expect(oauth).toMatchObject({ client_id: 'console', redirect_uri: CALLBACK, state, scope: 'openid email profile' });
    // 2. The one-time password opens nothing but the page on which it is replaced.
    const first = await browser.post('/v1/sign-in', { email: ADMIN, password: ONE_TIME, oauth });
    expect([first.status, first.json['status']]).toEqual([200, 'password_change_required']);
    expect(first.json).not.toHaveProperty('session_token_id');
    expect(browser.cookie('__Host-platform-session')).toBeUndefined();
    expect(browser.cookie('__Host-platform-step')).toMatchObject({ httpOnly: true, sameSite: 'strict' });
    // 3. Refused passwords do not use up the step.
    for (const password of ['short', 'password12345', ONE_TIME]) {
      const refused = await browser.post('/v1/password/change', { password, oauth });
      expect([password, refused.status, refused.json['code']]).toEqual([password, 400, 'weak_password']);
    }
    const changed = await browser.post('/v1/password/change', { password: CHOSEN, oauth });
    expect([changed.status, changed.json['status']]).toEqual([200, 'ok']);
    expect(changed.json['session_token_id']).toMatch(/^[\w-]{43}$/);
    expect(browser.cookie('__Host-platform-session')).toMatchObject({ httpOnly: true, sameSite: 'lax', path: '/' });
    // 4. The browser resumes, and comes home with a code, the state and the issuer (RFC 9207).
    const back = await browser.get(String(changed.json['next']));
    const landed = new URL(back.location);
    expect(`${landed.origin}${landed.pathname}`).toBe(CALLBACK);
    expect(Object.fromEntries(landed.searchParams)).toEqual({ code: expect.any(String), state, iss: world.issuer });
    // 5. The code becomes tokens, for the gateway's certificate alone.
    const answer = await world.redeem(landed.searchParams.get('code') as string, verifier);
    expect(answer.status).toBe(200);
    const tokens = answer.json as unknown as Tokens;
    expect(tokens).toMatchObject({
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.any(String),
      id_token: expect.any(String),
    });
    expect(claimsOf(tokens.id_token)).toMatchObject({
      iss: world.issuer,
      aud: 'console',
      sub: SYSTEM.bootstrapUserId,
      nonce: 'n-1',
      email: ADMIN,
      name: 'Administrator',
    });
    // 6. The old password and the used step are worth nothing.
    const again = await world.browser().post('/v1/sign-in', { email: ADMIN, password: ONE_TIME, oauth: {} });
    expect([again.status, again.json['code']]).toEqual([401, 'invalid_credentials']);
    const used = await browser.post('/v1/password/change', { password: 'another sentence nobody knows', oauth });
    expect([used.status, used.json['code']]).toEqual([410, 'token_expired']);
  });

  test('IDN-012 IDN-026 IDN-027 the access token carries exactly the claims of the contract, signed by a published key', async () => {
    const tokens = await world.tokens(world.browser(), ADMIN);
    const [head = '', body = '', signature = ''] = tokens.access_token.split('.');
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
    expect(header).toEqual({ alg: 'EdDSA', typ: 'at+jwt', kid: expect.any(String) });
    const { json } = await world.host.fetch('/.well-known/jwks.json', { host: world.authHost });
    const keys = json['keys'] as (JsonWebKey & { kid: string; alg: string })[];
    const key = keys.find(({ kid }) => kid === header.kid) as JsonWebKey;
    expect(verify(null, Buffer.from(`${head}.${body}`), createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64url'))).toBe(
      true,
    );
    const claims = claimsOf(tokens.access_token);
    expect(Object.keys(claims).sort()).toEqual([
      'amr',
      'app_instance_id',
      'aud',
      'auth_env',
      'auth_time',
      'client_id',
      'email',
      'email_verified',
      'env_id',
      'exp',
      'gid',
      'iat',
      'iss',
      'jti',
      'nbf',
      'scope',
      'sid',
      'sub',
      'token_type',
    ]);
    expect(claims).toMatchObject({
      iss: world.issuer,
      sub: SYSTEM.bootstrapUserId,
      client_id: 'console',
      token_type: 'access',
      env_id: SYSTEM.envId,
      auth_env: SYSTEM.envId,
      app_instance_id: SYSTEM.consoleAppId,
      email: ADMIN,
      email_verified: true,
      amr: ['pwd'],
      aud: ['auth', 'sys', 'bff', 'bus', 'proxy'],
    });
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(900);
    expect(Math.abs(Number(claims['auth_time']) - Date.now() / 1_000)).toBeLessThan(60);
    // The platform's administrator: everything a person may hold, nothing only a workload may.
    const scopes = String(claims['scope']).split(' ');
    expect(scopes).toEqual(expect.arrayContaining(['openid', 'sys:sys:admin', 'sys:org:admin', 'auth:users:admin', 'bus:admin']));
    expect(scopes).not.toContain('auth:membership:write');
    expect(tokens.scope).toBe(claims['scope']);
  });

  test('IDN-025 the key set has the key that signs and the one that will, of every kind, and no private half', async () => {
    const { json } = await world.host.fetch('/.well-known/jwks.json', { host: world.authHost });
    const keys = json['keys'] as Record<string, unknown>[];
    expect(keys.map(({ alg }) => alg).sort()).toEqual(['ES256', 'ES256', 'EdDSA', 'EdDSA', 'ML-DSA-65', 'ML-DSA-65', 'RS256', 'RS256']);
    for (const key of keys) for (const secret of ['d', 'priv', 'k', 'p', 'q', 'dp', 'dq', 'qi']) expect(key).not.toHaveProperty(secret);
    const stored = await world.sql<{ wrapped: object }[]>`select wrapped from signing_keys`;
    for (const { wrapped } of stored) expect(JSON.stringify(wrapped)).not.toMatch(/"d"|"priv"/);
  });
});

describe('an authorization', () => {
  test('F-34 leaves no cookie of the browser in the database', async () => {
    const email = 'cookies@example.org';
    await world.person(email);
    const browser = world.browser();
    await world.tokens(browser, email);
    const { page, oauth } = await world.begin(browser, { prompt: 'login' });
    expect(page.location).toMatch(/^\/sign-in/);
    const cookies = [...browser.cookies.values()].filter(({ value }) => value !== '');
    expect(cookies.map(({ name }) => name)).toEqual(expect.arrayContaining(['__Host-platform-session', '__Host-platform-interaction']));
    const rows = await world.sql<{ text: string }[]>`select row_to_json(s)::text as text from oidc_state s`;
    for (const { name, value } of cookies) expect([name, rows.filter(({ text }) => text.includes(value))]).toEqual([name, []]);
    // The authorization goes on all the same.
    const answer = await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth });
    expect((await browser.get(String(answer.json['next']))).location).toContain('code=');
  });

  test('discovery says what there is: code with PKCE S256, pushed requests, mutual TLS', async () => {
    for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
      const { status, json } = await world.host.fetch(path, { host: world.authHost });
      expect(status).toBe(200);
      expect(json).toMatchObject({
        issuer: world.issuer,
        authorization_endpoint: `${world.issuer}/oauth/authorize`,
        token_endpoint: `${world.issuer}/oauth/token`,
        pushed_authorization_request_endpoint: `${world.issuer}/oauth/par`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        tls_client_certificate_bound_access_tokens: true,
        mtls_endpoint_aliases: expect.objectContaining({ token_endpoint: `${world.issuer}/mtls/oauth/token` }),
      });
      expect(json['grant_types_supported']).toEqual(
        expect.arrayContaining([
          'authorization_code',
          'refresh_token',
          'client_credentials',
          'urn:ietf:params:oauth:grant-type:token-exchange',
        ]),
      );
      expect(json['grant_types_supported']).not.toContain('implicit');
    }
  });

  test('IDN-017 cannot begin without a pushed request, without PKCE, or with a redirect that is only almost right', async () => {
    const direct = await world.browser().get(
      `/oauth/authorize?${new URLSearchParams({
        client_id: 'console',
        response_type: 'code',
        scope: 'openid',
        redirect_uri: CALLBACK,
        state: 's',
        code_challenge: 'x'.repeat(43),
        code_challenge_method: 'S256',
      })}`,
    );
    expect(new URL(direct.location, world.issuer).searchParams.get('error')).toBe('invalid_request');
    expect((await world.push({ code_challenge: undefined, code_challenge_method: undefined })).answer.json['error']).toBe(
      'invalid_request',
    );
    expect((await world.push({ code_challenge_method: 'plain' })).answer.json['error']).toBe('invalid_request');
    for (const redirect_uri of [
      `${CALLBACK}/`,
      `${CALLBACK}?x=1`,
      'https://evil.example/auth/callback',
      CALLBACK.replace('https', 'http'),
      CALLBACK.replace(':8443', ''),
    ]) {
      const { answer } = await world.push({ redirect_uri });
      expect([redirect_uri, answer.status]).toEqual([redirect_uri, 400]);
    }
  });

  test('an error that has no safe way back stays on this origin, without the words of the request', async () => {
    const page = await world
      .browser()
      .get('/oauth/authorize?client_id=nobody&redirect_uri=https://evil.example/&response_type=code&state=<script>');
    expect(page.location).toMatch(/^\/error\?error=[a-z_]+$/);
  });

  test('[H-13] of twelve that redeem one code at once, one gets tokens', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADMIN);
    const answers = await Promise.all(Array.from({ length: 12 }, () => world.redeem(code, verifier)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 400)]);
    expect(answers.filter(({ status }) => status === 400).map(({ json }) => json['error'])).toEqual(
      Array.from({ length: 11 }, () => 'invalid_grant'),
    );
  });

  test('a code that comes a second time takes the tokens of the first with it', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADMIN);
    const tokens = (await world.redeem(code, verifier)).json as unknown as Tokens;
    expect((await world.redeem(code, verifier)).json['error']).toBe('invalid_grant');
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
  });

  test('a code needs its verifier, its redirect and its client', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADMIN);
    expect((await world.redeem(code, 'x'.repeat(43))).json['error']).toBe('invalid_grant');
    expect((await world.redeem(code, verifier, { redirect_uri: `${CALLBACK}x` })).json['error']).toBe('invalid_grant');
    expect((await world.redeem(code, verifier, { client_id: 'bff' })).status).toBe(400);
    expect((await world.redeem(code, verifier)).status).toBe(200);
  });

  test('two tabs of one browser both come home', async () => {
    const browser = world.browser();
    const one = await world.begin(browser);
    const two = await world.begin(browser);
    const answer = await browser.post('/v1/sign-in', { email: ADMIN, password: CHOSEN, oauth: one.oauth });
    expect((await browser.get(String(answer.json['next']))).location).toContain(`state=${one.state}`);
    const second = await browser.post('/v1/sign-in', { email: ADMIN, password: CHOSEN, oauth: two.oauth });
    expect((await browser.get(String(second.json['next']))).location).toContain(`state=${two.state}`);
  });

  test('a stranger who made somebody sign in on his authorization gets nothing', async () => {
    const stranger = world.browser();
    const { oauth } = await world.begin(stranger);
    const victim = world.browser();
    const answer = await victim.post('/v1/sign-in', { email: ADMIN, password: CHOSEN, oauth });
    // The victim's browser does not hold the stranger's authorization; the stranger's holds no session.
    expect((await victim.get(String(answer.json['next']))).location).toMatch(/^\/error/);
    const gained = await stranger.get(String(answer.json['next']));
    expect(gained.location).not.toContain('code=');
    expect(gained.location).toMatch(/^\/sign-in/);
  });

  test('with a session there is no page in between, unless the application asks for one', async () => {
    const browser = world.browser();
    await world.tokens(browser, ADMIN);
    expect((await world.begin(browser)).page.location).toContain('code=');
    const { page, oauth, state } = await world.begin(browser, { prompt: 'login' });
    expect(page.location).toMatch(/^\/sign-in/);
    const answer = await browser.post('/v1/sign-in', { email: ADMIN, password: CHOSEN, oauth });
    expect((await browser.get(String(answer.json['next']))).location).toContain(`state=${state}`);
  });

  test('signing in gives the browser a new session, whatever it came with', async () => {
    const browser = world.browser();
    browser.cookies.set('__Host-platform-session /', {
      name: '__Host-platform-session',
      value: 'planted-by-somebody',
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
    });
    await world.signIn(browser, ADMIN);
    const first = browser.cookie('__Host-platform-session')?.value;
    expect(first).not.toBe('planted-by-somebody');
    await browser.post('/v1/sign-in', { email: ADMIN, password: CHOSEN, oauth: {} });
    expect(browser.cookie('__Host-platform-session')?.value).not.toBe(first);
  });

  test('a request may be denied, and the application is told', async () => {
    const browser = world.browser();
    const { oauth, state } = await world.begin(browser);
    const answer = await browser.post('/oauth/authorize/continue', { ...oauth, decision: 'deny' });
    expect(answer.json['redirect_to']).toMatch(/^\/oauth\/authorize\/[\w-]+$/);
    const back = await browser.get(String(answer.json['redirect_to']));
    expect(new URL(back.location).searchParams.get('error')).toBe('access_denied');
    expect(new URL(back.location).searchParams.get('state')).toBe(state);
  });
});
