import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Browser, codeOf, Store, World } from './fixtures/world.ts';

let store: Store;
let world: World;
let browser: Browser;
beforeAll(async () => {
  store = await Store.start();
}, 60_000);
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  world = await World.start(store);
  browser = await world.signIn();
});
afterEach(() => world[Symbol.asyncDispose]());

const register = (body: unknown, origin?: string) => world.ask('POST', '/subscribe/push', { body: JSON.stringify(body), headers: { cookie: browser.cookie }, ...(origin ? { origin } : {}) });
const device = (n: number) => ({ device_token: `device-token-${n}`, platform: 'ios', app_version: '1.0' });
const kept = () => world.ctx.kv.call('KEYS', 'bff:push:*') as Promise<string[]>;

test('GWY-045 a device belongs to the session: the same one again keeps its id, and it ends with the session', async () => {
  const first = await register(device(1));
  expect(first.status).toBe(201);
  const shown = (await first.json()) as { push_id: string; expires_at: string };
  expect(shown).toEqual({ push_id: expect.stringMatching(/^[0-9a-f-]{36}$/), expires_at: expect.any(String) });
  expect(await (await register({ ...device(1), app_version: '2.0' })).json()).toEqual(shown);
  expect(((await (await register(device(2))).json()) as { push_id: string }).push_id).not.toBe(shown.push_id);
  const [key] = await kept();
  expect(JSON.stringify(await world.ctx.kv.call('HVALS', key as string))).not.toContain('device-token');
  expect(Number(await world.ctx.kv.call('PTTL', key as string))).toBeGreaterThan(0);
  await world.ask('POST', '/auth/sign-out', { headers: browser.headers });
  expect(await kept()).toEqual([]);
});

test('GWY-045 a session has twenty devices at most, and one that is there can still be renewed', async () => {
  for (let n = 0; n < 20; n++) expect((await register(device(n))).status).toBe(201);
  const refused = await register(device(20));
  expect([refused.status, await codeOf(refused)]).toEqual([409, 'too_many_devices']);
  expect((await register(device(19))).status).toBe(201);
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
