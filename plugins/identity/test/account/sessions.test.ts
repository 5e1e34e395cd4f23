import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHOSEN, claimsOf, ONE_TIME, World } from '../fixtures/world.ts';

let world: World;
const ADA = 'ada@example.org';
let ada: string;
beforeAll(async () => {
  world = await World.start();
  ada = await world.person(ADA);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const marked = async (sid: unknown) => (await world.kv('EXISTS', `revoked:sid:${String(sid)}`)) === 1;
const sidOf = (token: string) => String(claimsOf(token)['sid']);
const ended = async (sid: string) =>
  (await world.host.events('platform:auth:session:revoked')).find(({ payload }) => payload['session_id'] === sid);
const eventually = async (look: () => Promise<boolean>) => {
  while (!(await look())) await new Promise(resolve => setImmediate(resolve));
};

describe('refreshing', () => {
  test('rotates: each refresh token is good once, and the new access token belongs to the same session', async () => {
    const first = await world.tokens(world.browser(), ADA);
    const second = (await world.refresh(first.refresh_token)).json as unknown as typeof first;
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(sidOf(second.access_token)).toBe(sidOf(first.access_token));
    expect(claimsOf(second.access_token)['auth_time']).toBe(claimsOf(first.access_token)['auth_time']);
  });

  test('IDN-028 a refresh token that comes twice ends the family and the session', async () => {
    const first = await world.tokens(world.browser(), ADA);
    const second = (await world.refresh(first.refresh_token)).json as unknown as typeof first;
    expect((await world.refresh(first.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await world.refresh(second.refresh_token)).json['error']).toBe('invalid_grant');
    const sid = sidOf(first.access_token);
    await eventually(() => marked(sid));
    await eventually(async () => (await ended(sid)) !== undefined);
    expect((await ended(sid))?.payload).toMatchObject({ session_id: sid, user_id: ada, env_id: SYSTEM.envId, reason: 'reuse_detected' });
  });

  test('[H-13] of twelve that refresh with one token at once, one gets tokens, and none keeps the family', async () => {
    const first = await world.tokens(world.browser(), ADA);
    const answers = await Promise.all(Array.from({ length: 12 }, () => world.refresh(first.refresh_token)));
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    for (const { json } of won) expect((await world.refresh(String(json['refresh_token']))).status).toBe(400);
  });

  test('goes on after the sign-in session has expired (house 24), and ends with the account', async () => {
    const grace = await world.person('grace@example.org');
    const tokens = await world.tokens(world.browser(), 'grace@example.org');
    await world.sql`delete from oidc_state where model = 'Session' and account_id = ${grace}`;
    const next = await world.refresh(tokens.refresh_token);
    expect(next.status).toBe(200);
    await world.sql`update users set status = 'disabled' where user_id = ${grace}`;
    expect((await world.refresh(String(next.json['refresh_token']))).json['error']).toBe('invalid_grant');
  });
});

describe('a session', () => {
  test('IDN-008 IDN-028 ends by signing out: the cookie, the tokens and everybody who verifies them hear of it', async () => {
    const browser = world.browser();
    const tokens = await world.tokens(browser, ADA);
    const sid = sidOf(tokens.access_token);
    expect((await browser.post('/v1/sign-out', {})).status).toBe(204);
    expect(browser.cookie('__Host-platform-session')).toBeUndefined();
    expect(await marked(sid)).toBe(true);
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await world.host.fetch('/oauth/userinfo', { token: tokens.access_token, host: world.authHost })).status).toBe(401);
    expect((await world.begin(browser)).page.location).toMatch(/^\/sign-in/);
    await eventually(async () => (await ended(sid)) !== undefined);
    expect((await ended(sid))?.payload).toMatchObject({ reason: 'sign_out', user_id: ada });
    const families = await world.sql<object[]>`
      select distinct stream_family from outbox where event_type = 'platform:auth:session:revoked'`;
    expect([...families]).toEqual([{ stream_family: 'identity' }]);
    expect((await browser.post('/v1/sign-out', {})).status).toBe(204);
  });

  test('IDN-028 is listed to an operator and ended by one, within the environment only', async () => {
    const tokens = await world.tokens(world.browser(), ADA);
    const sid = sidOf(tokens.access_token);
    const operator = world.host.by(as.user('auth:users:read', 'auth:users:admin'));
    const { items } = await operator.listSessions({ query: { limit: 200 } });
    expect(items.find(({ session_id }) => session_id === sid)).toMatchObject({ user_id: ada, email: ADA });
    const elsewhere = world.host.by(as.userIn('018f0000-0000-7000-8000-00000000e009', 'auth:users:read', 'auth:users:admin'));
    expect((await elsewhere.listSessions()).items).toEqual([]);
    await expect(elsewhere.revokeSession({ params: { session_id: sid } })).rejects.toMatchObject({ code: 'session_not_found' });
    await operator.revokeSession({ params: { session_id: sid } });
    expect(await marked(sid)).toBe(true);
    await eventually(async () => (await ended(sid)) !== undefined);
    expect((await ended(sid))?.payload).toMatchObject({ session_id: sid, user_id: ada, reason: 'admin' });
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    await expect(operator.revokeSession({ params: { session_id: sid } })).rejects.toMatchObject({ code: 'session_not_found' });
  });

  test('can be ended although only its tokens are left', async () => {
    const tokens = await world.tokens(world.browser(), ADA);
    const sid = sidOf(tokens.access_token);
    await world.sql`delete from oidc_state where model = 'Session' and uid = ${sid}`;
    await world.host.by(as.user('auth:users:admin')).revokeSession({ params: { session_id: sid } });
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
  });

  test('a revocation survives a key-value store that lost its memory', async () => {
    const browser = world.browser();
    const sid = sidOf((await world.tokens(browser, ADA)).access_token);
    await browser.post('/v1/sign-out', {});
    await world.kv('FLUSHALL');
    expect(await marked(sid)).toBe(false);
    world.host.clock.advance('11s');
    await eventually(() => marked(sid));
  });

  test('so does every other, however many there are', async () => {
    const many = 70_000;
    await world.sql`insert into revocations (kind, value, expires_at, published)
      select 'sid', 'one-of-many-' || n, now() + interval '1 hour', true from generate_series(1, ${many}::int) n`;
    await world.kv('FLUSHALL');
    world.host.clock.advance('11s');
    await eventually(async () => (await world.kv('EXISTS', 'auth:revocations:published')) === 1);
    const told = (await world.kv('KEYS', 'revoked:sid:one-of-many-*')) as string[];
    await world.sql`delete from revocations where value like 'one-of-many-%'`;
    expect(told).toHaveLength(many);
  });

  test('lives twelve hours unused and seven days at most', async () => {
    const browser = world.browser();
    await world.signIn(browser, ADA);
    const [row] = await world.sql<
      { left: number; uid: string }[]
    >`select extract(epoch from expires_at - now())::int as left, uid from oidc_state where model = 'Session' and account_id = ${ada}
      order by created_at desc limit 1`;
    expect(Math.abs((row?.left ?? 0) - 12 * 3_600)).toBeLessThan(30);
    // Six days and twenty hours after the sign-in, a use does not carry it over the seventh day.
    await world.sql`update oidc_state set payload = payload || jsonb_build_object('loginTs', extract(epoch from now())::int - 590400)
      where model = 'Session' and uid = ${row?.uid ?? ''}`;
    await world.begin(browser);
    const [later] = await world.sql<
      { left: number }[]
    >`select extract(epoch from expires_at - now())::int as left from oidc_state where model = 'Session' and uid = ${row?.uid ?? ''}`;
    expect(later?.left).toBeLessThanOrEqual(7 * 86_400 - 590_400 + 5);
  });

  test('changing the password ends every session there was', async () => {
    const lin = await world.person('lin@example.org', { password: ONE_TIME });
    const before = await world.tokens(world.browser(), 'lin@example.org', ONE_TIME);
    await world.sql`update users set must_change_password = true where user_id = ${lin}`;
    const browser = world.browser();
    await browser.post('/v1/sign-in', { email: 'lin@example.org', password: ONE_TIME, oauth: {} });
    expect((await browser.post('/v1/password/change', { password: CHOSEN, oauth: {} })).status).toBe(200);
    expect(await marked(sidOf(before.access_token))).toBe(true);
    expect((await world.refresh(before.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await world.begin(browser)).page.location).toContain('code=');
  });
});
