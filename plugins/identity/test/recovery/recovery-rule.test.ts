import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Recoverer } from '../fixtures/recoverer.ts';
import { World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_ACCOUNT_RECOVERY: 'wait' } });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];

/** An environment whose rule its administrator changes, and somebody in it who recovers an account. */
async function begun(first: 'wait' | 'approval' | 'wait_and_approval', hours = 24) {
  const host = `auth.prod.rule-${(count += 1)}.localhost`;
  const envId = await world.environment(host);
  const admin = world.host.by(as.userIn(envId, 'auth:realms:admin', 'auth:recoveries:admin', 'auth:users:read'));
  const rule = async (account_recovery: 'off' | 'wait' | 'approval' | 'wait_and_approval', recovery_wait_hours = 24) => {
    await admin.putSignInSettings({ body: { ...(await admin.signInSettings()), account_recovery, recovery_wait_hours } });
  };
  await rule(first, hours);
  const person = await Recoverer.open(world, { host, envId });
  const approve = async () =>
    admin.approveRecovery({ params: { recovery_id: (await person.row()).recovery_id }, body: { reason: 'I know her.' } });
  return { person, rule, approve, admin, envId };
}

describe('a recovery that is under way is held to the rule as it is', () => {
  test('one that was offered waits for the approval that is asked for now; it is told so by mail and on the page, and goes on', async () => {
    const { person, rule, approve, admin } = await begun('wait');
    const token = await person.offered();
    await rule('approval');
    expect(code(await person.finish(token))).toEqual([409, 'recovery_waits']);
    expect((await admin.listRecoveries({})).items[0]).toMatchObject({ status: 'awaiting_approval', can_approve: true });
    const [mail] = (await world.mails(person.email)).slice(-1);
    expect([mail?.subject, mail?.body.includes('An administrator decides on it.')]).toEqual(['Your account is being recovered', true]);
    await world.audited('auth.recovery.judged', person.userId);
    expect(code(await person.finish(token))).toEqual([409, 'recovery_waits']);
    expect((await person.subjects()).filter(subject => subject === 'Your account is being recovered').length).toBe(2);
    expect(await approve()).toMatchObject({ status: 'offered' });
    const next = (await person.token('finish')) as string;
    expect([next === token, code(await person.finish(token)), (await person.finish(next)).status]).toEqual([
      false,
      [410, 'token_expired'],
      200,
    ]);
  });

  test('nobody has to come by for that: a minute later it waits, and its two weeks begin anew', async () => {
    const { person, rule } = await begun('wait');
    await person.offered();
    await world.sql`update account_recoveries set confirmed_at = now() - interval '25 hours' where user_id = ${person.userId}`;
    await rule('wait_and_approval', 24);
    await world.host.clock.advance('1m');
    expect(await person.row()).toMatchObject({ status: 'waiting', needs_approval: true });
    const [row] = await world.sql<
      { days: number }[]
    >`select extract(epoch from expires_at - now())::float / 86400 as days from account_recoveries where user_id = ${person.userId}`;
    expect(Math.round(row?.days ?? 0)).toBe(14);
  });

  test('one that was offered waits for the hours that are asked for now; with as many as it waited, its link stays good', async () => {
    const { person, rule } = await begun('wait', 24);
    const token = await person.offered();
    await world.sql`update account_recoveries set confirmed_at = now() - interval '49 hours' where user_id = ${person.userId}`;
    await rule('wait', 48);
    await world.host.clock.advance('1m');
    expect((await person.row()).status).toBe('offered');
    await rule('wait', 72);
    expect(code(await person.finish(token))).toEqual([409, 'recovery_waits']);
    await rule('wait', 49);
    await world.host.clock.advance('1m');
    expect((await person.finish((await person.token('finish')) as string)).status).toBe(200);
  });

  test('one that waits is approved as soon as the rule asks for it, and by a milder one no longer', async () => {
    const { person, rule, approve } = await begun('wait');
    await person.begin();
    await expect(approve()).rejects.toMatchObject({ code: 'recovery_decided' });
    await rule('approval');
    expect(await approve()).toMatchObject({ status: 'offered' });
    const other = await begun('wait_and_approval');
    await other.person.begin();
    await other.rule('wait');
    await expect(other.approve()).rejects.toMatchObject({ code: 'recovery_decided' });
    await other.person.waited();
    expect((await other.person.row()).status).toBe('offered');
  });

  test('one is ended where accounts are recovered no more, offered or not', async () => {
    const { person, rule } = await begun('wait');
    await person.offered();
    await rule('off');
    await world.host.clock.advance('1m');
    expect([(await person.row()).status, (await person.subjects()).at(-1)]).toEqual([
      'cancelled',
      'The recovery of your account was ended',
    ]);
  });

  test("one of the platform's own people is held to its configuration", async () => {
    const person = await Recoverer.open(world);
    await person.begin();
    await world.sql`update account_recoveries set needs_approval = true, wait_hours = 0 where user_id = ${person.userId}`;
    await world.host.clock.advance('1m');
    expect(await person.row()).toMatchObject({ env_id: SYSTEM.envId, needs_approval: false, wait_hours: 72, status: 'waiting' });
  });
});

describe('the owner who is signed in', () => {
  test('sees at the own account that a recovery was confirmed, and ends it', async () => {
    const person = await Recoverer.open(world);
    const browser = world.browser();
    const { json } = await person.signIn(undefined, browser);
    await browser.post('/v1/mfa/verify', {
      challenge_id: (json['mfa'] as { challenge_id: string }).challenge_id,
      method: 'totp',
      code: await person.app.next(),
    });
    const shown = async () => (await browser.get('/v1/account')).json['recovery'];
    await person.ask();
    const token = await person.token('confirm');
    expect(await shown()).toBeNull();
    await person.confirm(token as string);
    expect(await shown()).toMatchObject({ needs_approval: false, ready_at: expect.any(String) });
    const stranger = world.browser();
    expect(code(await stranger.post('/v1/account/recovery/end', {}))).toEqual([401, 'session_required']);
    browser.origin = 'https://evil.example';
    expect(code(await browser.post('/v1/account/recovery/end', {}))).toEqual([403, 'bad_origin']);
    browser.origin = world.issuer;
    const ended = await Promise.all(Array.from({ length: 12 }, () => browser.post('/v1/account/recovery/end', {})));
    expect(ended.map(({ status }) => status).sort()).toEqual([204, ...Array.from({ length: 11 }, () => 404)]);
    expect([await shown(), (await person.row()).status]).toEqual([null, 'cancelled']);
    expect((await world.audited('auth.recovery.cancelled', person.userId))['details']).toMatchObject({ cause: 'owner' });
  });
});
