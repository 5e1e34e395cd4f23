import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Directory } from '../fixtures/directory.ts';
import { PasskeyDevice } from '../fixtures/passkey.ts';
import { NEXT, Recoverer } from '../fixtures/recoverer.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_ACCOUNT_RECOVERY: 'wait', PLATFORM_AUTH_PASSKEYS: 'true' } });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];

describe('while it waits', () => {
  test('there is no token that sets a password, and the second factor is asked for as ever', async () => {
    const person = await Recoverer.open(world);
    await person.begin();
    await world.host.clock.advance('2m');
    expect([(await person.row()).status, await person.token('finish')]).toEqual(['waiting', undefined]);
    for (const token of [(await person.token('confirm')) as string, (await person.token('cancel')) as string])
      expect(code(await person.finish(token))).toEqual([410, 'token_expired']);
    expect((await person.signIn()).json['status']).toBe('mfa_required');
    // Nor does a token that came about too early, whoever wrote it there.
    const token = 'forged';
    await world.sql`update account_recoveries set status = 'offered', finish_hash = sha256(${Buffer.from(token)})
      where user_id = ${person.userId}`;
    expect(code(await person.finish(token))).toEqual([410, 'token_expired']);
    expect((await person.signIn()).json['status']).toBe('mfa_required');
  });

  test('the link of any of its mails ends it, once, also in another tab', async () => {
    const person = await Recoverer.open(world);
    await person.begin();
    const cancel = (await person.token('cancel')) as string;
    expect((await world.browser().get('/account-recovery/cancel')).text).toContain('End the recovery');
    const answers = await Promise.all(Array.from({ length: 12 }, () => person.cancel(cancel)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
    await person.waited();
    expect([(await person.row()).status, await person.token('finish'), (await person.subjects()).at(-1)]).toEqual([
      'cancelled',
      undefined,
      'The recovery of your account was ended',
    ]);
    expect((await world.audited('auth.recovery.cancelled', person.userId))['details']).toMatchObject({ cause: 'link' });
    expect(await person.row()).toMatchObject({ confirm_hash: null, finish_hash: null, cancel_sealed: null });
  });

  test('signing in as usual ends it; the password alone does not', async () => {
    const person = await Recoverer.open(world);
    const token = await person.offered();
    expect((await person.signIn()).json['status']).toBe('mfa_required');
    expect((await person.row()).status).toBe('offered');
    await world.forgetTries();
    expect((await person.signInFully(person.app)).json['status']).toBe('ok');
    expect((await world.audited('auth.recovery.cancelled', person.userId))['details']).toMatchObject({ cause: 'signed_in' });
    expect(code(await person.finish(token))).toEqual([410, 'token_expired']);
    expect((await person.subjects()).at(-1)).toBe('The recovery of your account was ended');
  });

  test('a reset password leaves it under way, and the second factor where it is', async () => {
    const person = await Recoverer.open(world);
    await person.begin();
    await world.browser().post('/v1/password/reset-request', { email: person.email });
    await world.browser().post('/v1/password/reset', { token: await world.token(person.email), password: 'yet another good sentence' });
    expect((await person.row()).status).toBe('waiting');
    expect((await person.signIn('yet another good sentence')).json['status']).toBe('mfa_required');
  });

  test('a directory that gives the account another address ends it: what the old one proved is nothing any more', async () => {
    const person = await Recoverer.open(world);
    const token = await person.offered();
    const directory = await Directory.open(world, 'scim:read', 'scim:write');
    const next = `moved-${person.email}`;
    expect((await directory.patch(person.userId, { op: 'replace', path: 'emails', value: [{ value: next, primary: true }] })).status).toBe(
      200,
    );
    expect((await world.audited('auth.recovery.cancelled', person.userId))['details']).toMatchObject({ cause: 'address_changed' });
    expect(code(await person.finish(token))).toEqual([410, 'token_expired']);
    expect((await world.mails(next)).map(({ subject }) => subject)).toEqual(['Confirm your e-mail address']);
  });

  test('it is switched off with the setting, and drawn tighter with it', async () => {
    const host = 'auth.prod.tighter.localhost';
    const envId = await world.environment(host);
    const rule = (account_recovery: 'off' | 'wait' | 'approval' | 'wait_and_approval') =>
      world.registry.putRealm({ params: { env_id: envId }, body: { host, org_id: world.org, account_recovery, recovery_wait_hours: 24 } });
    await rule('wait');
    const [stopped, judged, late] = [
      await Recoverer.open(world, { host, envId }),
      await Recoverer.open(world, { host, envId }),
      await Recoverer.open(world, { host, envId }),
    ];
    await judged.begin();
    const token = await late.offered();
    await rule('approval');
    await judged.waited();
    expect([(await judged.row())['needs_approval'], await judged.token('finish')]).toEqual([true, undefined]);
    // What was offered under the old rule is held to the new one.
    expect(code(await late.finish(token))).toEqual([409, 'recovery_waits']);
    await rule('wait');
    await stopped.begin();
    await rule('off');
    expect(code(await late.finish(token))).toEqual([404, 'recovery_off']);
    await stopped.waited();
    expect([(await stopped.row()).status, await stopped.token('finish')]).toEqual(['cancelled', undefined]);
  });
});

describe('the link at the end', () => {
  test('sets the password, takes every second factor away, ends every session with its event, tells the owner, and signs nobody in', async () => {
    const person = await Recoverer.open(world);
    const browser = world.browser();
    const { json } = await person.signIn(CHOSEN, browser);
    await browser.post('/v1/mfa/verify', {
      challenge_id: (json['mfa'] as { challenge_id: string }).challenge_id,
      method: 'totp',
      code: await person.app.next(),
    });
    expect((await new PasskeyDevice(world.authHost).enrol(browser, CHOSEN)).status).toBe(200);
    const before = await world.tokens(browser, person.email);
    const token = await person.offered();
    expect((await person.subjects()).at(-1)).toBe('Choose a new password for your account');
    const answer = await person.finish(token);
    expect([answer.status, answer.json, answer.headers['set-cookie']]).toEqual([200, { status: 'ok' }, undefined]);
    expect([(await person.signIn(CHOSEN)).status, (await person.signIn(NEXT)).json['status']]).toEqual([401, 'ok']);
    expect((await world.refresh(before.refresh_token)).json['error']).toBe('invalid_grant');
    const left = await world.sql<{ n: number }[]>`
      select count(*)::int as n from (select user_id from authenticators union all select user_id from recovery_codes union all
        select user_id from passkeys) f where user_id = ${person.userId}`;
    expect(left).toEqual([{ n: 0 }]);
    const { sid } = claimsOf(before.access_token) as { sid: string };
    const ended = await world.host.events('platform:auth:session:revoked');
    expect(ended.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ session_id: sid, user_id: person.userId, reason: 'password_change' }),
    );
    expect((await world.host.events('platform:auth:recovery:updated')).map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ user_id: person.userId, status: 'completed' }),
    );
    await world.audited('auth.recovery.completed', person.userId);
    expect((await world.mails(person.email)).at(-1)).toMatchObject({
      subject: 'Your account was recovered',
      body: expect.stringContaining('/password-reset'),
    });
    expect(code(await person.finish(token))).toEqual([410, 'token_expired']);
  });

  test('an end that cannot tell of the sessions changes nothing at all', async () => {
    const person = await Recoverer.open(world);
    const token = await person.offered();
    await world.sql`alter table outbox add constraint full_up check (event_type <> 'platform:auth:session:revoked') not valid`;
    expect((await person.finish(token)).status).toBe(500);
    await world.sql`alter table outbox drop constraint full_up`;
    expect([(await person.row()).status, (await person.signIn()).json['status']]).toEqual(['offered', 'mfa_required']);
    expect((await person.finish(token)).status).toBe(200);
  });

  test('[H-13] of twelve that use it at once, one sets the password', async () => {
    const person = await Recoverer.open(world);
    const token = await person.offered();
    const passwords = Array.from({ length: 12 }, (_, index) => `one of twelve sentences ${index}`);
    const answers = await Promise.all(passwords.map(password => person.finish(token, password)));
    const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []));
    expect([won.length, answers.filter(({ json }) => json['code'] === 'token_expired').length]).toEqual([1, 11]);
    await world.forgetTries();
    expect((await person.signIn(passwords[won[0] as number])).json['status']).toBe('ok');
  });

  test('is used by no refused password; asked for again it is another one that lasts no longer; three days end it', async () => {
    const person = await Recoverer.open(world);
    const first = await person.offered();
    const { expires_at: until } = await person.row();
    expect(code(await person.finish(first, 'passwordpassword'))).toEqual([400, 'weak_password']);
    await person.ask();
    const second = (await person.token('finish')) as string;
    expect([second === first, (await person.row())['expires_at']]).toEqual([false, until]);
    expect((await person.finish(first)).status).toBe(410);
    await world.sql`update account_recoveries set expires_at = now() where user_id = ${person.userId}`;
    expect((await person.finish(second)).status).toBe(410);
    await world.host.clock.advance('1m');
    expect([(await person.row()).status, (await person.subjects()).at(-1)]).toEqual([
      'expired',
      'The recovery of your account has expired',
    ]);
    await world.audited('auth.recovery.expired', person.userId);
    await world.sql`update account_recoveries set ended_at = now() - interval '31 days' where user_id = ${person.userId}`;
    await world.host.clock.advance('5m');
    expect(await world.sql`select 1 from account_recoveries where user_id = ${person.userId}`).toHaveLength(0);
  });

  test('opens a door that failed codes locked', async () => {
    const person = await Recoverer.open(world);
    const token = await person.offered();
    for (let run = 0; run < 10; run++) await person.signIn('a wrong password');
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    expect((await person.signIn()).json['code']).toBe('account_locked');
    expect((await person.finish(token)).status).toBe(200);
    expect((await person.signIn(NEXT)).json['status']).toBe('ok');
  });

  test('neither tokens nor addresses reach a log, or a row that is not sealed', async () => {
    const person = await Recoverer.open(world);
    const finish = await person.offered();
    const secrets = [finish, (await person.token('confirm')) as string, (await person.token('cancel')) as string, person.email];
    const tables = await world.sql<
      { row: string }[]
    >`select work_tasks::text as row from work_tasks union all select account_recoveries::text from account_recoveries union all
      select payload::text from outbox`;
    for (const { row } of tables) expect(secrets.filter(secret => row.includes(secret))).toEqual([]);
    world.host.process.telemetry.flush();
    const logs = join(world.dataDir, 'logs');
    for (const file of readdirSync(logs)) {
      const text = readFileSync(join(logs, file), 'utf8');
      expect(secrets.filter(secret => text.includes(secret))).toEqual([]);
    }
  });
});
