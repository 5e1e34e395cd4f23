import * as openid from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appStore, application } from '../fixtures/applications.ts';
import type { Browser } from '../fixtures/browser.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const HOST = 'auth.prod.tv.localhost';
let world: World;
let ada: string;
let config: openid.Configuration;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  ada = await world.person('ada@example.org', { envId: await world.environment(HOST) });
  config = await application(
    world,
    { client_name: 'Television', grant_types: [GRANT], redirect_uris: [], token_endpoint_auth_method: 'none' },
    HOST,
  );
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const begin = () => openid.initiateDeviceAuthorization(config, { scope: 'openid email' });
const signedIn = async (): Promise<Browser> => {
  const browser = world.browser(HOST);
  await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: {} });
  return browser;
};
const poll = async (deviceCode: string) => {
  const body = new URLSearchParams({ grant_type: GRANT, device_code: deviceCode, client_id: config.clientMetadata().client_id }).toString();
  return world.reach('/oauth/token', {
    method: 'POST',
    host: HOST,
    body,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
};

describe('a device', () => {
  test('IDN-005 shows a code, the person types it and allows, and openid-client has tokens for her', async () => {
    const started = await begin();
    expect(started).toMatchObject({
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: `https://${HOST}:8443/device`,
      verification_uri_complete: `https://${HOST}:8443/device?user_code=${started.user_code}`,
      expires_in: 600,
      interval: 5,
    });
    const browser = await signedIn();
    const asking = await browser.get(`/v1/device?user_code=${started.user_code.toLowerCase().replace('-', '')}`);
    expect(asking.json).toEqual({
      client: { name: 'Television', logo_url: null },
      scopes: [expect.objectContaining({ scope: 'openid' }), expect.objectContaining({ scope: 'email' })],
    });
    const decided = await browser.post('/v1/device/decision', { user_code: started.user_code, decision: 'approve' });
    expect([decided.status, decided.json]).toEqual([200, { status: 'approved' }]);
    expect(await world.audited('auth.device.approved', ada)).toMatchObject({ details: { client_id: config.clientMetadata().client_id } });
    // The independent client asks by itself, at its own pace: `interval` 0 keeps the test from waiting for five seconds.
    const tokens = await openid.pollDeviceAuthorizationGrant(config, { ...started, interval: 0 });
    expect(tokens.claims()).toMatchObject({ sub: ada, iss: `https://${HOST}:8443` });
    expect(claimsOf(tokens.access_token)).toMatchObject({
      sub: ada,
      token_type: 'access',
      scope: 'openid email',
      limited: true,
      client_id: config.clientMetadata().client_id,
    });
  });

  test('is told to wait, to ask less often, that it was refused, and that time is up', async () => {
    const started = await begin();
    const first = await poll(started.device_code);
    expect([first.status, first.json['error']]).toEqual([400, 'authorization_pending']);
    expect((await poll(started.device_code)).json['error']).toBe('slow_down');
    await world.host.clock.advance('9s');
    // Five seconds more than before: nine are too few now.
    expect((await poll(started.device_code)).json['error']).toBe('slow_down');
    await world.host.clock.advance('15s');
    expect((await poll(started.device_code)).json['error']).toBe('authorization_pending');
    const browser = await signedIn();
    expect((await browser.post('/v1/device/decision', { user_code: started.user_code, decision: 'deny' })).json).toEqual({
      status: 'denied',
    });
    expect(await world.audited('auth.device.denied', ada)).toMatchObject({ details: { client_id: config.clientMetadata().client_id } });
    expect((await poll(started.device_code)).json['error']).toBe('access_denied');
    const late = await begin();
    await world.sql`update oidc_state set expires_at = now() - interval '1 second',
      payload = payload || jsonb_build_object('exp', extract(epoch from now())::int - 1) where model = 'DeviceCode'
      and consumed_at is null`;
    expect((await poll(late.device_code)).json['error']).toBe('expired_token');
    expect((await browser.get(`/v1/device?user_code=${late.user_code}`)).json['code']).toBe('approval_not_found');
  });

  test('a code is for people who are signed in, and for the page of this host', async () => {
    const { user_code: code } = await begin();
    const nobody = await world.browser(HOST).get(`/v1/device?user_code=${code}`);
    expect([nobody.status, nobody.json['code']]).toEqual([401, 'session_required']);
    const browser = await signedIn();
    browser.origin = 'https://evil.example';
    const foreign = await browser.post('/v1/device/decision', { user_code: code, decision: 'approve' });
    expect([foreign.status, foreign.json['code']]).toEqual([403, 'bad_origin']);
    expect((await browser.get('/v1/device?user_code=<script>')).status).toBe(400);
  });

  test('whoever signs in on the way to the page comes back to it, and nowhere else', async () => {
    const signIn = (page: string) =>
      world.browser(HOST).post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: { return_to: page } });
    const next = async (page: string) => (await signIn(page)).json['next'];
    expect(await next('/device?user_code=BCDF-GHJK')).toBe('/device?user_code=BCDF-GHJK');
    expect(await next('/ciba?auth_req_id=abc_DEF-1')).toBe('/ciba?auth_req_id=abc_DEF-1');
    for (const elsewhere of ['https://evil.example/', '//evil.example', '/device/../x', '/device?x=//evil', '/sign-in', '/device\\x'])
      expect((await signIn(elsewhere)).status).toBe(400);
  });

  test('codes cannot be guessed: after ten in a minute a person tries no more', async () => {
    const browser = await signedIn();
    const tries: number[] = [];
    for (let turn = 0; turn < 11; turn++) tries.push((await browser.get('/v1/device?user_code=BCDF-GHJK')).status);
    expect(tries).toEqual([...Array.from({ length: 10 }, () => 404), 429]);
    const answer = await browser.post('/v1/device/decision', { user_code: 'BCDF-GHJK', decision: 'approve' });
    expect([answer.status, Number(answer.headers['retry-after'])]).toEqual([429, expect.any(Number)]);
  });

  test('the grant is for clients that registered for it', async () => {
    const other = await application(world, {}, HOST);
    await expect(openid.initiateDeviceAuthorization(other, { scope: 'openid' })).rejects.toMatchObject({ error: 'invalid_request' });
  });
});
