import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { hashOf } from '../../src/session/session-store.ts';
import { PERSON } from '../fixtures/fake-identity.ts';
import { codeOf, cookieOf, ENV, type Tenant, type World } from '../fixtures/world.ts';

const SHOP = '018f0000-0000-7000-8000-00000000f001';
const at = { host: 'bff.shop.localhost', tenant: { envId: ENV, appInstanceId: SHOP }, origin: 'https://shop.localhost:8443' };
const OPEN: Tenant = {
  auth_mode: 'open',
  auth_group: null,
  allow_signup: true,
  oauth_client_id: 'shop-client',
  scope_whitelist: ['lending:read'],
  service_whitelist: ['lending', 'auth', 'app', 'sys', 'tls'],
};

/** Applications of tenants. */
export function describeApps(given: () => World): void {
  describe('applications', () => {
    let world: World;
    beforeEach(async () => {
      world = given();
      world.beside.apps.set(SHOP, OPEN);
      world.identity.access = { env_id: ENV, auth_env: ENV, client_id: 'shop-client', scope: 'openid lending:read' };
      world.identity.id = { aud: 'shop-client' };
    });

    const begin = (path = '/auth/login?return_to=/') => world.ask('GET', path, { ...at, origin: null });
    const proxied = (cookie: string, path: string) => world.ask('GET', path, { ...at, headers: { cookie } });

    describe("a tenant's application", () => {
      test("GWY-024 GWY-004 is signed in to at its environment's own identity host, as its own client", async () => {
        const begun = await begin();
        expect(world.identity.calls[0]).toMatchObject({ path: '/mtls/oauth/par', hostname: 'auth.prod.shop.localhost' });
        expect(world.identity.calls[0]?.form).toMatchObject({
          client_id: 'shop-client',
          redirect_uri: 'https://bff.shop.localhost:8443/auth/callback',
          code_challenge_method: 'S256',
        });
        const back = await world.comeBack(begun, { at });
        expect([back.status, back.headers.get('location')]).toEqual([302, 'https://shop.localhost:8443/']);
        const cookie = `bff-session=${cookieOf(back, 'bff-session')}`;
        const session = await (await proxied(cookie, '/auth/session')).json();
        expect(session).toMatchObject({ user: { user_id: PERSON }, env_id: ENV });
        const gone = await world.ask('POST', '/auth/sign-out', { ...at, headers: { cookie } });
        expect([gone.status, cookieOf(gone, 'bff-session'), cookieOf(gone, 'bff-pkce')]).toEqual([204, '', '']);
        expect(world.identity.calls.at(-1)).toMatchObject({ path: '/mtls/oauth/revoke', hostname: 'auth.prod.shop.localhost' });
      });

      test('GWY-025 that takes sign-ups sends to them, with PKCE, a pushed request and the verifier cookie; one that does not is 403', async () => {
        const begun = await begin('/auth/sign-up?return_to=/welcome');
        expect(begun.status).toBe(302);
        expect(begun.headers.get('location')).toMatch(
          /^https:\/\/auth\.prod\.shop\.localhost:8443\/oauth\/authorize\?client_id=shop-client&request_uri=urn/,
        );
        expect(world.identity.calls[0]?.form).toMatchObject({ screen_hint: 'signup', code_challenge_method: 'S256' });
        expect(cookieOf(begun, 'bff-pkce')).not.toBe('');
        expect((await world.comeBack(begun, { at })).headers.get('location')).toBe('https://shop.localhost:8443/welcome');
        world.beside.apps.set(SHOP, { ...OPEN, allow_signup: false });
        world.later(301_000 / 1_000);
        const refused = await begin('/auth/sign-up');
        expect([refused.status, await codeOf(refused)]).toEqual([403, 'signup_disabled']);
      });

      test.each(['self_service', 'group'] as const)(
        'GWY-069 GWY-026 with the gate %s is open to members of its group alone',
        async mode => {
          world.beside.apps.set(SHOP, { ...OPEN, auth_mode: mode, auth_group: 'shop:buyers' });
          const refused = await world.comeBack(await begin(), { at });
          expect([refused.status, await codeOf(refused), cookieOf(refused, 'bff-session')]).toEqual([403, 'group_gate_denied', undefined]);
          // What was issued for nothing is taken back.
          expect(world.identity.calls.at(-1)?.path).toBe('/mtls/oauth/revoke');
          world.beside.groups.set(PERSON, ['shop:buyers']);
          expect((await world.comeBack(await begin(), { at })).status).toBe(302);
        },
      );

      test('GWY-068 GWY-026 takes nobody who signed in to another environment', async () => {
        world.identity.access = { ...world.identity.access, auth_env: SYSTEM.envId };
        const refused = await world.comeBack(await begin(), { at });
        expect([refused.status, await codeOf(refused), cookieOf(refused, 'bff-session')]).toEqual([403, 'auth_env_mismatch', undefined]);
      });

      test.each([
        ['has no client yet', { ...OPEN, oauth_client_id: null }],
        ['names no group for its gate', { ...OPEN, auth_mode: 'group', auth_group: null }],
        ['is not there', undefined],
      ] as const)('that %s is 404', async (_, app) => {
        world.beside.apps.delete(SHOP);
        if (app) world.beside.apps.set(SHOP, app);
        const answer = await begin();
        expect([answer.status, await codeOf(answer)]).toEqual([404, 'app_unknown']);
      });

      test('GWY-065 GWY-066 reaches the services of its list, never a banned one, and nothing without a scope of its list', async () => {
        const { cookie } = await world.signIn({}, at);
        const codes = await Promise.all(
          ['desk', 'auth', 'app', 'sys', 'tls'].map(async service => codeOf(await proxied(cookie, `/proxy/${service}/v1/x`))),
        );
        expect(codes).toEqual(Array(5).fill('not_whitelisted'));
        expect(world.sent).toEqual([]);
        expect((await proxied(cookie, '/proxy/lending/v1/x')).status).toBe(200);
        world.beside.apps.set(SHOP, { ...OPEN, scope_whitelist: ['desk:read'] });
        await world.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ scope: 'app', env_id: ENV, app_instance_id: SHOP }));
        await eventually(async () => (await proxied(cookie, '/proxy/lending/v1/x')).status).toBe(403);
      });

      test('GWY-065 is read from the registry once in five minutes, and anew as soon as it changed', async () => {
        for (let n = 0; n < 3; n++) await begin();
        expect(world.beside.appsAsked).toBe(1);
        world.later(299_000 / 1_000);
        await begin();
        expect(world.beside.appsAsked).toBe(1);
        world.later(2_000 / 1_000);
        await begin();
        expect(world.beside.appsAsked).toBe(2);
        await world.hear('platform:sys:app:updated', ENV, { app_instance_id: SHOP });
        await begin();
        expect(world.beside.appsAsked).toBe(3);
        await world.hear('platform:sys:app:updated', SYSTEM.envId, { app_instance_id: 'another' });
        await begin();
        expect(world.beside.appsAsked).toBe(3);
      });

      test('GWY-070 GWY-052 does not take the session of another one, nor does the console', async () => {
        const { cookie } = await world.signIn({}, at);
        expect(await codeOf(await world.ask('GET', '/auth/session', { headers: { cookie } }))).toBe('app_binding_mismatch');
        expect(await codeOf(await world.ask('GET', '/auth/session', { headers: { cookie }, tenant: {} }))).toBe('app_binding_mismatch');
        expect((await proxied(cookie, '/auth/session')).status).toBe(200);
        // One that belongs to no application serves where none is named, and nowhere else.
        const key = `bff:session:${hashOf(cookie.split('=')[1] as string)}`;
        const record = JSON.parse(String(await world.kv.call('GET', key))) as object;
        await world.kv.call('SET', key, JSON.stringify({ ...record, app_instance_id: null }));
        expect((await world.ask('GET', '/auth/session', { headers: { cookie }, tenant: {} })).status).toBe(200);
        expect(await codeOf(await proxied(cookie, '/auth/session'))).toBe('app_binding_mismatch');
      });

      test('GWY-061 GWY-062 is the one the ingress names; its host names it only where the setting says so', async () => {
        const noWord = { ...at, tenant: {}, origin: null };
        expect(await codeOf(await world.ask('GET', '/auth/login', noWord))).toBe('app_unknown');
        const lenient = await world.another({ PLATFORM_BFF_HOSTNAME_FALLBACK: 'true' });
        world.beside.hosts.set('bff.shop.localhost', SHOP);
        expect((await lenient.ask('GET', '/auth/login', noWord)).status).toBe(302);
        expect(await codeOf(await lenient.ask('GET', '/auth/login', { ...noWord, tenant: { envId: ENV, appInstanceId: 'another' } }))).toBe(
          'app_unknown',
        );
      });
    });
  });
}
