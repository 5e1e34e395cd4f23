import { createDecipheriv } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { hashOf, SessionStore } from '../../src/session/session-store.ts';
import { type Browser, codeOf, cookieOf, ENV, type GatewayProcess, newKey, type World } from '../fixtures/world.ts';
import { PERSON } from '../fixtures/fake-identity.ts';

/** The records themselves, in the store of the process. */
const storeOf = ({ kv, host: { clock } }: World) => new SessionStore({ kv, clock });

/** Sessions of browsers: how they are kept, renewed and ended. */
export function describeSessions(given: () => World): void {
  describe('sessions', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const key = () => `bff:session:${hashOf(browser.cookie.split('=')[1] as string)}`;
    const stored = async () => JSON.parse((await world.kv.call('GET', key())) as string) as Record<string, unknown> & { version: number };
    const get = (who: GatewayProcess, path = '/proxy/sys/v1/bootstrap') => who.ask('GET', path, { headers: { cookie: browser.cookie } });

    describe('the stored session', () => {
      test('GWY-003 GWY-083 holds no token and not the cookie in a readable form, and opens only under its own key', async () => {
        const text = (await world.kv.call('GET', key())) as string;
        for (const secret of [...world.identity.issued, browser.cookie.split('=')[1] as string]) expect(text).not.toContain(secret);
        const { iv = '', ct = '', tag = '' } = (await stored())['tokens_enc'] as Record<string, string>;
        const opened = createDecipheriv('aes-256-gcm', Buffer.from(world.key, 'base64'), Buffer.from(iv, 'base64url'));
        expect(opened.update(Buffer.from(ct, 'base64url')).toString()).toContain(world.identity.issued[0]);
        expect(Buffer.from(tag, 'base64url')).toHaveLength(16);
        const moved = 'a'.repeat(43);
        await world.kv.call(
          'SET',
          `bff:session:${hashOf(moved)}`,
          text.replace(hashOf(browser.cookie.split('=')[1] as string), hashOf(moved)),
        );
        expect((await world.ask('GET', '/auth/session', { headers: { cookie: `bff-session=${moved}` } })).status).toBe(401);
      });

      test('a write of an older version is refused', async () => {
        const sessions = storeOf(world);
        const [record] = await sessions.ofUser(PERSON);
        const next = { ...(record as NonNullable<typeof record>), version: 2 };
        expect(await sessions.replace({ ...next, last_seen: 'first' })).toBe('written');
        expect(await sessions.replace({ ...next, last_seen: 'second' })).toBe('stale');
        expect((await stored())['last_seen']).toBe('first');
        await sessions.remove(next);
        expect(await sessions.replace({ ...next, version: 3 })).toBe('gone');
      });

      test('GWY-008 has its sealed tokens, CSRF token, person, application, scopes and ends', async () => {
        world.identity.access = { scope: 'openid sys:read' };
        browser = await world.signIn();
        expect(await stored()).toMatchObject({
          tokens_enc: { v: 1, kid: expect.any(String), iv: expect.any(String), ct: expect.any(String), tag: expect.any(String) },
          csrf_token: browser.csrf,
          user_id: PERSON,
          app_instance_id: SYSTEM.consoleAppId,
          scopes: ['openid', 'sys:read'],
          idle_expires_at: expect.stringMatching(/Z$/),
          absolute_expires_at: expect.stringMatching(/Z$/),
        });
      });

      test('GWY-032 of one person a thousand are listed at most', async () => {
        const sessions = storeOf(world);
        const [record] = await sessions.ofUser(PERSON);
        for (let n = 0; n < 1_005; n++)
          await sessions.insert({ ...(record as NonNullable<typeof record>), session_id_hash: `h-${n}`, session_id: `s-${n}` });
        const { items } = (await (await get(world, '/v1/auth/sessions')).json()) as { items: unknown[] };
        expect(items).toHaveLength(1_000);
      });

      test('GWY-085 is written again with the current key, and stays readable with an old one until then', async () => {
        const [old, newer] = [world.key, newKey()];
        // Data that rest on a key keep whoever does not have it from starting.
        await expect(world.another({ PLATFORM_BFF_ENCRYPTION_KEY: newer })).rejects.toMatchObject({
          cause: { message: expect.stringContaining('PLATFORM_BFF_PREVIOUS_KEYS') },
        });
        const other = await world.another({ PLATFORM_BFF_ENCRYPTION_KEY: newer, PLATFORM_BFF_PREVIOUS_KEYS: old });
        const stranger = await world.another({ PLATFORM_BFF_ENCRYPTION_KEY: newer });
        expect((await get(stranger)).status).toBe(401);
        expect((await get(other)).status).toBe(200);
        const { kid } = (await stored())['tokens_enc'] as { kid: string };
        other.later(120);
        expect((await get(other)).status).toBe(200);
        expect(((await stored())['tokens_enc'] as { kid: string }).kid).not.toBe(kid);
        expect((await get(stranger)).status).toBe(200);
        // For the tests that come.
        await world.another({ PLATFORM_BFF_PREVIOUS_KEYS: newer });
      });

      test('GWY-009 GWY-010 ends a week after its last use, and a month after its beginning', async () => {
        const day = 86_400;
        for (const days of [6, 6, 6, 6, 5]) {
          world.later(days * day);
          expect((await get(world, '/auth/session')).status).toBe(200);
        }
        world.later(2 * day);
        expect((await get(world, '/auth/session')).status).toBe(401);
        browser = await world.signIn();
        const lives = (record: Record<string, unknown>) =>
          ['idle', 'absolute'].map(
            end => (Date.parse(String(record[`${end}_expires_at`])) - Date.parse(String(record['created_at']))) / 1_000,
          );
        expect(lives(await stored())).toEqual([7 * day, 30 * day]);
        world.later(8 * day);
        expect((await get(world, '/auth/session')).status).toBe(401);
        const shorter = await world.another({ PLATFORM_BFF_IDLE_TTL_S: '60', PLATFORM_BFF_ABSOLUTE_TTL_S: '90' });
        browser = await shorter.signIn();
        expect(lives(await stored())).toEqual([60, 90]);
      });

      test('GWY-098 lost from the store it is 401', async () => {
        await world.kv.call('FLUSHALL');
        const answer = await get(world);
        expect([answer.status, await codeOf(answer)]).toEqual([401, 'session_required']);
      });
    });

    describe('a refresh', () => {
      const expired = 890;

      test('GWY-055 GWY-056 is one call for twelve requests of two processes, and every one of them goes on with the new token', async () => {
        const other = await world.another();
        for (const process of [world, other]) process.later(expired);
        const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => get(index % 2 ? other : world)));
        expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
        expect(world.identity.grants('refresh_token')).toHaveLength(1);
        expect(new Set(world.sent.map(({ headers }) => headers['authorization'])).size).toBe(1);
        expect(world.sent[0]?.headers['authorization']).toBe(`Bearer ${world.identity.issued[3]}`);
        // The old pair is nowhere any more: the next refresh is by the new one.
        world.later(expired);
        expect((await get(world)).status).toBe(200);
        expect(world.identity.grants('refresh_token').map(({ form }) => form['refresh_token'])).toEqual(
          [2, 5].map(at => world.identity.issued[at]),
        );
      });

      test('GWY-057 that is refused ends the session', async () => {
        world.later(expired);
        world.identity.refusals.set('refresh_token', { status: 400, error: 'invalid_grant' });
        const answer = await get(world);
        expect([answer.status, await codeOf(answer)]).toEqual([401, 'session_required']);
        expect(await world.kv.call('EXISTS', key())).toBe(0);
      });

      test('without an answer is 502, and the session stays', async () => {
        world.later(expired);
        world.identity.refusals.set('refresh_token', 'down');
        expect((await get(world)).status).toBe(502);
        world.identity.refusals.clear();
        expect((await get(world)).status).toBe(200);
      });

      test('that comes back after the sign-out revokes what it got', async () => {
        world.later(expired);
        const { promise, resolve } = Promise.withResolvers<void>();
        world.identity.holds.set('refresh_token', promise);
        const waiting = get(world);
        await eventually(() => world.identity.grants('refresh_token').length).toBe(1);
        expect((await world.ask('POST', '/auth/sign-out', { headers: browser.headers })).status).toBe(204);
        resolve();
        expect((await waiting).status).toBe(401);
        expect(world.identity.calls.at(-1)).toMatchObject({ path: '/mtls/oauth/revoke', form: { token: world.identity.issued[5] } });
        expect(await world.kv.call('EXISTS', key())).toBe(0);
      });

      test('GWY-028 that the page asks for renews the tokens in place', async () => {
        const before = await stored();
        world.identity.access = { scope: 'openid sys:read' };
        world.later(60);
        const answer = await world.ask('POST', '/auth/refresh', { headers: browser.headers });
        expect([answer.status, await answer.json()]).toEqual([
          200,
          expect.objectContaining({ csrf_token: browser.csrf, env_id: SYSTEM.envId }),
        ]);
        const after = await stored();
        expect(after).toMatchObject({ session_id: before['session_id'], scopes: ['openid', 'sys:read'] });
        expect(Date.parse(String(after['idle_expires_at'])) - Date.parse(String(before['idle_expires_at']))).toBe(60_000);
        expect(world.identity.grants('refresh_token')).toHaveLength(1);
        await get(world);
        expect(world.sent[0]?.headers['authorization']).toBe(`Bearer ${world.identity.issued[3]}`);
      });
    });

    describe('endings', () => {
      const minutes = (n: number) => n * 60;
      const endings: [string, () => Promise<unknown>][] = [
        ['signing out', () => world.ask('POST', '/auth/sign-out', { headers: browser.headers })],
        [
          'its own deletion',
          async () => {
            const { items } = (await (await get(world, '/v1/auth/sessions')).json()) as {
              items: { session_id: string; current: boolean }[];
            };
            await world.ask('DELETE', `/v1/auth/sessions/${items.find(({ current }) => current)?.session_id}`, {
              headers: browser.headers,
            });
          },
        ],
        ['a revocation', () => world.identitySessionEnded()],
        ['a week without use', async () => world.later(minutes(60 * 24 * 7 + 1))],
        [
          'a refused refresh',
          async () => {
            world.later(minutes(15));
            world.identity.refusals.set('refresh_token', { status: 400, error: 'invalid_grant' });
            await get(world);
          },
        ],
      ];
      test.each(endings)('GWY-019 after %s there is no session', async (_, end) => {
        expect((await get(world, '/auth/session')).status).toBe(200);
        await end();
        const answer = await get(world, '/auth/session');
        expect([answer.status, await codeOf(answer)]).toEqual([401, 'session_required']);
      });

      test('GWY-027 GWY-020 signing out revokes the refresh token and clears both cookies, even when the identity service is away', async () => {
        world.identity.refusals.set('/mtls/oauth/revoke', 'down');
        const answer = await world.ask('POST', '/auth/sign-out', { headers: browser.headers });
        expect(answer.status).toBe(204);
        expect([cookieOf(answer, 'bff-session'), cookieOf(answer, 'bff-pkce')]).toEqual(['', '']);
        expect(world.identity.calls.find(({ path }) => path === '/mtls/oauth/revoke')).toMatchObject({
          form: { client_id: 'console', token: world.identity.issued[2] },
        });
        expect((await get(world)).status).toBe(401);
      });

      test('F-11 signing out of the console ends the sign-in session it came from, and no other session of the person', async () => {
        const other = await world.signIn();
        expect((await world.ask('POST', '/auth/sign-out', { headers: browser.headers })).status).toBe(204);
        const [logout, ...more] = world.identity.calls.filter(({ path }) => path === '/mtls/oauth/end-session');
        expect([logout?.form, more]).toEqual([
          { client_id: 'console', id_token_hint: world.identity.issued[1], logout_hint: 'identity-session-1' },
          [],
        ]);
        expect((await world.ask('GET', '/auth/session', { headers: other.headers })).status).toBe(200);
      });

      test('F-11 signing out everywhere ends all of them, and every sign-in session; another body than that is refused', async () => {
        const other = await world.signIn();
        const bad = await world.ask('POST', '/auth/sign-out', { headers: browser.headers, body: '{"everywhere":1}' });
        expect([bad.status, await codeOf(bad)]).toEqual([400, 'malformed']);
        expect((await world.ask('POST', '/auth/sign-out', { headers: browser.headers, body: '{"everywhere":true}' })).status).toBe(204);
        expect(world.identity.calls.at(-1)).toMatchObject({
          path: '/mtls/oauth/end-session',
          form: { everywhere: 'true', logout_hint: 'identity-session-1' },
        });
        expect((await world.ask('GET', '/auth/session', { headers: other.headers })).status).toBe(401);
      });

      test('GWY-006 GWY-092 a revocation by the identity service ends every session that came from it', async () => {
        expect(world.host.manifest.consumes['bff-session-reaper']).toEqual({
          event: 'platform:auth:session:revoked',
          family: 'identity',
          delivery: 'fleet',
        });
        await world.identitySessionEnded();
        expect((await get(world)).status).toBe(401);
        expect(await world.kv.call('KEYS', 'bff:session:*')).toEqual([]);
      });

      test("GWY-011 GWY-020 GWY-031 GWY-033 GWY-034 GWY-035 a person sees and ends the own sessions, and nobody else's", async () => {
        const [second, third] = [await world.signIn(), await world.signIn()];
        const refreshOfThird = world.identity.issued.at(-1);
        world.beside.groups.set('somebody-else', [SYSTEM.consoleGroup]);
        world.identity.access = { sub: 'somebody-else' };
        world.identity.id = { sub: 'somebody-else' };
        const stranger = await world.signIn();
        const list = async (who: Browser) =>
          (
            (await (await world.ask('GET', '/v1/auth/sessions', { headers: who.headers })).json()) as {
              items: { session_id: string; current: boolean }[];
            }
          ).items;
        const mine = await list(browser);
        expect(mine).toHaveLength(3);
        expect(Object.keys(mine[0] ?? {}).sort()).toEqual(['created_at', 'current', 'last_seen', 'session_id']);
        const [foreign] = await list(stranger);
        for (const method of ['GET', 'DELETE'])
          for (const id of [foreign?.session_id, ENV]) {
            const answer = await world.ask(method, `/v1/auth/sessions/${id}`, { headers: browser.headers });
            expect([answer.status, await codeOf(answer)]).toEqual([404, 'session_not_found']);
          }
        const gone = (await list(third)).find(({ current }) => current)?.session_id;
        expect((await world.ask('DELETE', `/v1/auth/sessions/${gone}`, { headers: browser.headers })).status).toBe(204);
        expect((await world.ask('GET', '/auth/session', { headers: { cookie: third.cookie } })).status).toBe(401);
        expect(world.identity.calls.filter(({ path }) => path === '/mtls/oauth/revoke').map(({ form }) => form['token'])).toEqual([
          refreshOfThird,
        ]);
        const other = (await list(browser)).find(({ current }) => !current)?.session_id;
        expect(await (await world.ask('GET', `/v1/auth/sessions/${other}`, { headers: browser.headers })).json()).toMatchObject({
          session_id: other,
          ip_prefix: '203.0.113.0/24',
          app_instance_id: SYSTEM.consoleAppId,
        });
        const unproven = await world.ask('DELETE', `/v1/auth/sessions/${other}`, { headers: { cookie: browser.cookie } });
        expect([unproven.status, await codeOf(unproven)]).toEqual([403, 'csrf_mismatch']);
        expect(await (await world.ask('DELETE', '/v1/auth/sessions', { headers: browser.headers })).json()).toEqual({ revoked: 1 });
        expect((await world.ask('GET', '/auth/session', { headers: { cookie: second.cookie } })).status).toBe(401);
        expect((await world.ask('GET', '/auth/session', { headers: { cookie: stranger.cookie } })).status).toBe(200);
        expect(await list(browser)).toHaveLength(1);
      });
    });

    describe('what a page reads of its session', () => {
      test('GWY-012 person, live scopes, organization, environment and CSRF token, and nothing else', async () => {
        world.beside.scopes.set(PERSON, ['sys:read']);
        await world.accessChanged(PERSON);
        expect(await (await get(world, '/auth/session')).json()).toEqual({
          user: { user_id: PERSON, email: 'ada@example.com', display_name: 'Ada' },
          scopes: ['sys:read'],
          org_id: SYSTEM.orgId,
          env_id: SYSTEM.envId,
          csrf_token: browser.csrf,
          expires_at: expect.stringMatching(/Z$/),
        });
      });
    });
  });
}
