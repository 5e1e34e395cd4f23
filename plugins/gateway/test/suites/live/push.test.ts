import { beforeEach, describe, expect, test } from 'vitest';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { PERSON } from '../../fixtures/fake-identity.ts';
import { type Browser, codeOf, type World } from '../../fixtures/world.ts';

/** Devices that a session wants to be reached on. */
export function describePush(given: () => World): void {
  describe('devices', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const register = (body: unknown, origin?: string) =>
      world.ask('POST', '/subscribe/push', {
        body: JSON.stringify(body),
        headers: { cookie: browser.cookie },
        ...(origin ? { origin } : {}),
      });
    const device = (n: number) => ({ device_token: `device-token-${n}`, platform: 'ios', app_version: '1.0' });
    const kept = () => world.kv.call('KEYS', 'bff:push:*') as Promise<string[]>;

    test('GWY-045 a device belongs to the session: the same one again keeps its id, and it ends with the session', async () => {
      const first = await register(device(1));
      expect(first.status).toBe(201);
      const shown = (await first.json()) as { push_id: string; expires_at: string };
      expect(shown).toEqual({ push_id: expect.stringMatching(/^[0-9a-f-]{36}$/), expires_at: expect.any(String) });
      expect(await (await register({ ...device(1), app_version: '2.0' })).json()).toEqual(shown);
      expect(((await (await register(device(2))).json()) as { push_id: string }).push_id).not.toBe(shown.push_id);
      const [key] = await kept();
      expect(JSON.stringify(await world.kv.call('HVALS', key as string))).not.toContain('device-token');
      expect(Number(await world.kv.call('PTTL', key as string))).toBeGreaterThan(0);
      await world.ask('POST', '/auth/sign-out', { headers: browser.headers });
      expect(await kept()).toEqual([]);
    });

    test('GWY-045 a session has twenty devices at most, and one that is there can still be renewed', async () => {
      for (let n = 0; n < 20; n++) expect((await register(device(n))).status).toBe(201);
      const refused = await register(device(20));
      expect([refused.status, await codeOf(refused)]).toEqual([409, 'too_many_devices']);
      expect((await register(device(19))).status).toBe(201);
    });

    const OTHER_ENV = '018f0000-0000-7000-8000-00000000e00f';
    const devicesOf = async (user_id: string, env_id: string = SYSTEM.envId) =>
      (await world.host.by(as.machine('post', 'bff:devices:read')).pushDevices({ body: { env_id, user_id } })).devices;
    const registerFor = (cookie: string, body: object) =>
      world.ask('POST', '/subscribe/push', { body: JSON.stringify(body), headers: { cookie } });

    test('GWY-045 whoever notifies is given the devices of all live sessions of a person, each once, and in their environment alone', async () => {
      await register(device(1));
      const second = await world.signIn();
      await registerFor(second.cookie, device(1));
      const shown = (await (await registerFor(second.cookie, { device_token: 'a-browser', platform: 'web' })).json()) as {
        push_id: string;
      };
      const told = await devicesOf(PERSON);
      expect(told.map(({ platform, device_token }) => `${platform} ${device_token}`).sort()).toEqual([
        'ios device-token-1',
        'web a-browser',
      ]);
      expect(told.map(({ push_id }) => push_id)).toContain(shown.push_id);
      expect([await devicesOf(PERSON, OTHER_ENV), await devicesOf('somebody-else')]).toEqual([[], []]);
      // Ended here, and revoked at the identity service before anybody here has heard of it.
      await world.ask('POST', '/auth/sign-out', { headers: second.headers });
      expect((await devicesOf(PERSON)).map(({ device_token }) => device_token)).toEqual(['device-token-1']);
      const [session] = (await world.kv.call('KEYS', 'bff:session:*')) as string[];
      const { sid } = JSON.parse(String(await world.kv.call('GET', session as string))) as { sid: string };
      await world.kv.call('SET', `revoked:sid:${sid}`, '1');
      expect(await devicesOf(PERSON)).toEqual([]);
      expect(JSON.stringify(world.host.logged)).not.toMatch(/device-token|a-browser/);
    });

    test('a person is reached on a hundred devices at most, those of the newest sessions', async () => {
      for (const n of [5, 4, 3, 2, 1, 0]) {
        const older = await world.signIn();
        for (let d = 0; d < 20; d++)
          expect((await registerFor(older.cookie, { device_token: `token-${n}-${d}`, platform: 'ios' })).status).toBe(201);
        world.later(60);
      }
      browser = await world.signIn();
      await register(device(0));
      const tokens = (await devicesOf(PERSON)).map(({ device_token }) => device_token);
      expect([tokens.length, tokens[0], tokens.some(token => token.startsWith('token-5'))]).toEqual([100, 'device-token-0', false]);
    });

    test.each([
      ['no token', { platform: 'ios' }],
      ['a platform nobody knows', { device_token: 'x', platform: 'phone' }],
      ['a token without end', { device_token: 'x'.repeat(4_097), platform: 'web' }],
      ['a member nobody knows', { ...device(1), user_id: 'u' }],
    ])('%s is 400', async (_, body) => {
      const answer = await register(body);
      expect([answer.status, await codeOf(answer)]).toEqual([400, 'malformed']);
    });

    test('another site registers nothing, and neither does nobody', async () => {
      expect((await register(device(1), 'https://evil.example')).status).toBe(403);
      expect((await world.ask('POST', '/subscribe/push', { body: JSON.stringify(device(1)) })).status).toBe(401);
      expect(await kept()).toEqual([]);
    });
  });
}
