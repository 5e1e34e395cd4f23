import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { APP, type AskOptions, type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

/** Who may send what through the proxy, and in which order that is asked. */
export function describeProxyChecks(given: () => World): void {
  describe('what the proxy checks', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const get = (path: string, headers: Record<string, string> = {}, more: AskOptions = {}) =>
      world.ask('GET', path, { ...more, headers: { cookie: browser.cookie, ...headers } });
    const post = (path: string, more: AskOptions = {}) =>
      world.ask('POST', path, {
        body: '{}',
        ...more,
        headers: { ...browser.headers, 'content-type': 'application/json', 'content-length': '2', ...more.headers },
      });
    describe('the order of checks', () => {
      const elsewhere = { tenant: { envId: SYSTEM.envId, appInstanceId: ENV } };
      test('GWY-051 GWY-097 session before binding, binding before origin, origin before token', async () => {
        const wrong = { ...elsewhere, origin: 'https://evil.sys.localhost:8443', headers: { cookie: browser.cookie } };
        for (const headers of [{}, { cookie: `bff-session=${'a'.repeat(43)}` }]) {
          const nobody = await world.ask('POST', '/proxy/sys/v1/o', { ...wrong, headers });
          expect([nobody.status, await codeOf(nobody)]).toEqual([401, 'session_required']);
        }
        expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', wrong))).toBe('app_binding_mismatch');
        expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', { ...wrong, tenant: { appInstanceId: SYSTEM.consoleAppId } }))).toBe(
          'origin_denied',
        );
        expect(await codeOf(await world.ask('POST', '/proxy/sys/v1/o', { headers: { cookie: browser.cookie } }))).toBe('csrf_mismatch');
        expect((await post('/proxy/sys/v1/o')).status).toBe(200);
        expect(world.sent).toHaveLength(1);
      });

      test('F-15 a wrong CSRF token is refused before any token is fetched and before the list of services is asked', async () => {
        world.later(3_600);
        const calls = world.identity.calls.length;
        for (const path of ['/proxy/sys/v1/o', '/proxy/lending/v1/loans', '/proxy/bff/v1/x', '/proxy/auth/v1/sign-in']) {
          const answer = await post(path, { headers: { 'x-bff-csrf': 'wrong', 'x-bff-target-env-id': ENV } });
          expect([path, answer.status, await codeOf(answer)]).toEqual([path, 403, 'csrf_mismatch']);
        }
        expect(world.identity.calls.length).toBe(calls);
        expect((await post('/proxy/bff/v1/x')).status).toBe(403);
        expect((await post('/proxy/sys/v1/o')).status).toBe(200);
        expect(world.identity.calls.length).toBe(calls + 1);
      });

      test('GWY-052 a session of another application is 401, and so is none where there is one', async () => {
        for (const tenant of [{ appInstanceId: ENV }, { envId: SYSTEM.envId }]) {
          const answer = await get('/proxy/sys/v1/o', {}, { tenant });
          expect([answer.status, await codeOf(answer)]).toEqual([401, 'app_binding_mismatch']);
        }
      });

      test.each([
        ['another CSRF token', { headers: { 'x-bff-csrf': 'x' } }, 'csrf_mismatch'],
        ['a sibling host of the platform', { origin: 'https://shop.ops.sys.localhost:8443' }, 'origin_denied'],
        ["the gateway's own host", { origin: 'https://bff.console.ops.sys.localhost:8443' }, 'origin_denied'],
        ['another port', { origin: 'https://console.ops.sys.localhost' }, 'origin_denied'],
        ['no origin', { origin: null }, 'origin_denied'],
      ])('GWY-053 a mutation with %s is 403', async (_, more, code) => {
        const answer = await post('/proxy/sys/v1/o', more);
        expect([answer.status, await codeOf(answer)]).toEqual([403, code]);
        expect(world.sent).toEqual([]);
      });

      test.each([
        ['POST', '/proxy/sys/v1/o'],
        ['PUT', '/proxy/sys/v1/o'],
        ['PATCH', '/proxy/sys/v1/o'],
        ['DELETE', '/proxy/sys/v1/o'],
        ['POST', '/auth/sign-out'],
        ['POST', '/auth/refresh'],
        ['DELETE', '/v1/auth/sessions'],
        ['DELETE', `/v1/auth/sessions/${ENV}`],
        ['POST', '/subscribe'],
        ['DELETE', '/subscribe'],
        ['POST', '/subscribe/push'],
        ['POST', '/bff/action/sys:x'],
        ['POST', '/delegate/start'],
        ['POST', '/delegate/send-link'],
        ['POST', '/delegate/scim/users'],
        ['DELETE', `/delegate/scim/users/${ENV}`],
      ])('D-05 %s %s that says neither Origin nor Sec-Fetch-Site is refused, whatever else it brings', async (method, path) => {
        const answer = await world.ask(method, path, { origin: null, headers: browser.headers });
        expect([answer.status, await codeOf(answer)]).toEqual([403, 'origin_denied']);
        expect([world.sent, (await get('/auth/session')).status]).toEqual([[], 200]);
      });

      test('GWY-054 without the CSRF setting the origin is still asked', async () => {
        const loose = await world.another({ PLATFORM_BFF_CSRF: 'false' });
        const send = (origin: string) => loose.ask('POST', '/proxy/sys/v1/o', { origin, headers: { cookie: browser.cookie } });
        expect([(await send(APP)).status, (await send('https://evil.localhost')).status]).toEqual([200, 403]);
      });
    });

    describe('what is out of reach', () => {
      test.each([
        ['auth', '/mtls/oauth/token'],
        ['auth', '/oauth/token'],
        ['auth', '/%6Dtls/oauth/token'],
        ['auth', '/v1/sign-in'],
        ['acme', '/v1/certificates/fetch'],
        ['bff', '/v1/x'],
        ['UPPER', '/v1/x'],
      ])("whatever %s%s gives to the gateway's own certificate", async (service, path) => {
        const answer = await post(`/proxy/${service}${path}`);
        expect([answer.status, await codeOf(answer)]).toEqual([403, 'not_whitelisted']);
        expect(world.sent).toEqual([]);
      });

      test('ordinary paths of the same services are in reach', async () => {
        for (const path of ['/proxy/auth/v1/admin/users', '/proxy/acme/v1/acme/certificates', '/proxy/sys/v1/scopes/catalog'])
          expect((await get(path)).status).toBe(200);
        expect((await post('/proxy/auth/v1/admin/sessions/1/revoke')).status).toBe(200);
      });
    });
  });
}
