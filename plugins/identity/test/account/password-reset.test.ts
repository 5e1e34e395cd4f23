import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId, SealedBox, eventually } from '@platform/testing';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
const NEXT = 'an even better sentence';
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const somebody = async (options: { status?: string } = {}) => {
  const email = `reset-${(count += 1)}@example.org`;
  return { email, userId: await world.person(email, options) };
};
const ask = (email: string) => world.browser().post('/v1/password/reset-request', { email });
const reset = (token: string, password = NEXT) => world.browser().post('/v1/password/reset', { token, password });
const signIn = (email: string, password: string) => world.browser().post('/v1/sign-in', { email, password, oauth: {} });
const linkFor = async (email: string) => {
  await ask(email);
  return world.token(email);
};

describe('asking for a new password', () => {
  test('IDN-005 IDN-007 always succeeds in the same words; mail goes to open accounts alone', async () => {
    const [open, closed] = [await somebody(), await somebody({ status: 'disabled' })];
    const answers = [await ask(open.email.toUpperCase()), await ask(closed.email), await ask('nobody@example.org')];
    const shown = answers.map(({ status, text, headers }) => ({
      status,
      text,
      names: Object.keys(headers).sort(),
      cookie: headers['set-cookie'],
    }));
    expect(shown).toEqual(shown.map(() => ({ ...shown[0], status: 200, text: '{"status":"ok"}' })));
    expect([
      (await world.mails(open.email)).length,
      (await world.mails(closed.email)).length,
      (await world.mails('nobody@example.org')).length,
    ]).toEqual([1, 0, 0]);
  });

  test('IDN-007 the request reads no account and writes the same for everybody', async () => {
    const { email } = await somebody();
    // Nobody can read who has an account now, so what still works does not ask.
    await world.sql`alter table users rename to users_hidden`;
    try {
      expect([(await ask(email)).status, (await ask('no-one@example.org')).status]).toEqual([200, 200]);
      // What failed is due again before the clock moves, not after.
      await world.answered();
    } finally {
      await world.sql`alter table users_hidden rename to users`;
    }
    await world.host.clock.advance('10s');
    expect((await world.mails(email)).length).toBe(1);
  });

  test('five mails an hour for one address, in the same words; twenty requests an hour from one place, then 429', async () => {
    const { email } = await somebody();
    for (let run = 0; run < 20; run++) expect((await ask(email)).json).toEqual({ status: 'ok' });
    expect((await world.mails(email)).length).toBe(5);
    const refused = await ask(email);
    expect([refused.status, refused.json['code'], Number(refused.headers['retry-after']) > 0]).toEqual([429, 'rate_limited', true]);
  });
});

describe('a request that cannot be answered', () => {
  const sealed = (requestId: string, email: string) => {
    const box = new SealedBox([Buffer.from(readFileSync(join(world.dataDir, 'test.kek'), 'utf8'), 'base64')]);
    return box.seal(`auth:request:${requestId}`, JSON.stringify({ email }));
  };
  const broken = async () => {
    const request_id = newId();
    const payload = { request_id, env_id: SYSTEM.envId, kind: 'password_reset', sealed: sealed(request_id, 'a\0@x.test') };
    const row = {
      task_id: request_id,
      name: 'answer',
      lane: SYSTEM.envId,
      payload: world.sql.json(payload as never),
      correlation_id: 'c',
      subject: 'auth',
    };
    await world.sql`insert into work_tasks ${world.sql.row({ ...row, due_at: '2020-01-01', created_at: '2020-01-01' })}`;
    return request_id;
  };
  const kept = async (id: string) =>
    (await world.sql<{ attempts: number; state: string }[]>`select attempts, state from work_tasks where task_id = ${id}`)[0];
  const mailed = async () => (await world.sql<{ n: number }[]>`select count(*)::int as n from work_tasks where name = 'mail'`)[0]?.n ?? 0;

  test('F-19 holds up nobody else’s mail, is tried less and less, and lies with the dead for a day', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 60; index++) ids.push(await broken());
    const before = await mailed();
    const { email } = await somebody();
    await ask(email);
    await eventually(mailed).toBe(before + 1);
    const [first] = ids as [string];
    await eventually(() => kept(first)).toEqual({ attempts: 1, state: 'waiting' });
    await world.answered();
    await world.sql`delete from work_tasks where name = 'answer' and task_id <> ${first}`;
    await world.sql`update work_tasks set attempts = 11 where task_id = ${first}`;
    await world.host.clock.advance('10s');
    await eventually(() => kept(first)).toEqual({ attempts: 12, state: 'dead' });
    await world.sql`update work_tasks set ended_at = ${new Date(world.host.clock.now().getTime() - 25 * 3_600_000).toISOString()}
      where task_id = ${first}`;
    await world.host.clock.advance('10m');
    await eventually(() => kept(first)).toBe(undefined);
  });

  test('F-19 one that waited in the table before is carried over: answered once, or with the dead', async () => {
    const { email } = await somebody();
    const [waits, parked] = [newId(), newId()];
    await world.statement(
      'create table account_requests (request_id uuid, env_id uuid, kind text, sealed jsonb, run_at timestamptz, created_at timestamptz default now(), attempts int not null default 0)',
    );
    for (const [request_id, run_at] of [
      [waits, '2020-01-01'],
      [parked, 'infinity'],
    ] as const)
      await world.sql`insert into account_requests ${world.sql.row({
        request_id,
        run_at,
        env_id: SYSTEM.envId,
        kind: 'password_reset',
        sealed: world.sql.json(sealed(request_id, email) as never),
      })}`;
    await world.statement(readFileSync(new URL('../../migrations/0020_request_tasks.sql', import.meta.url), 'utf8'));
    await world.host.clock.advance('5s');
    await eventually(() => kept(waits)).toBe(undefined);
    expect((await world.mails(email)).length).toBe(1);
    expect(await kept(parked)).toEqual({ attempts: 0, state: 'dead' });
    await world.sql`delete from work_tasks where name = 'answer'`;
  });

  test('F-19 mail that is refused again and again lies with the dead, and mail of others goes on', async () => {
    await world.sql`delete from work_tasks where name = 'mail'`;
    const [refused, fine] = [await somebody(), await somebody()];
    await ask(refused.email);
    await world.mails(refused.email);
    const task = async () =>
      (
        await world.sql<
          { state: string; attempts: number }[]
        >`select state, attempts from work_tasks where name = 'mail' order by created_at`
      )[0];
    await eventually(task).toEqual({ state: 'waiting', attempts: 1 });
    await world.sql`update work_tasks set payload = jsonb_set(payload, '{sealed,kid}', '"00000000"'), attempts = 38,
      due_at = ${world.host.clock.now().toISOString()} where name = 'mail'`;
    await world.host.clock.advance('5s');
    await eventually(task).toEqual({ state: 'waiting', attempts: 39 });
    await world.host.clock.advance('10m');
    await eventually(task).toEqual({ state: 'dead', attempts: 40 });
    await ask(fine.email);
    await eventually(async () => (await world.mails(fine.email)).length).toBe(1);
    await world.sql`delete from work_tasks where name = 'mail'`;
  });
});

describe('the link', () => {
  test('F-15 works on the host of its own realm and on no other', async () => {
    const host = 'auth.prod.reset.localhost';
    await world.environment(host);
    const { email } = await somebody();
    const token = await linkFor(email);
    const elsewhere = await world.browser(host).post('/v1/password/reset', { token, password: NEXT });
    expect([elsewhere.status, elsewhere.json['code']]).toEqual([410, 'token_expired']);
    expect((await reset(token)).status).toBe(200);
  });

  test('sets the password, ends every session with its event, tells the owner, and signs nobody in', async () => {
    const { email, userId } = await somebody();
    const before = await world.tokens(world.browser(), email);
    const token = await linkFor(email);
    const answer = await reset(token);
    expect([answer.status, answer.json, answer.headers['set-cookie']]).toEqual([200, { status: 'ok' }, undefined]);
    expect([(await signIn(email, CHOSEN)).status, (await signIn(email, NEXT)).status]).toEqual([401, 200]);
    expect((await world.refresh(before.refresh_token)).json['error']).toBe('invalid_grant');
    const { sid } = claimsOf(before.access_token) as { sid: string };
    const ended = await world.host.events('platform:auth:session:revoked');
    expect(ended.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ session_id: sid, user_id: userId, reason: 'password_change' }),
    );
    expect((await world.mails(email)).map(({ subject }) => subject)).toEqual(['Reset your password', 'Your password was changed']);
    await world.audited('auth.password.reset_requested', userId);
    await world.audited('auth.password.reset', userId);
  });

  test('a change that cannot tell of the ended sessions does not happen', async () => {
    const { email } = await somebody();
    await world.tokens(world.browser(), email);
    const token = await linkFor(email);
    await world.sql`alter table outbox add constraint full_up check (event_type <> 'platform:auth:session:revoked') not valid`;
    expect((await reset(token)).status).toBe(500);
    await world.sql`alter table outbox drop constraint full_up`;
    expect((await signIn(email, CHOSEN)).status).toBe(200);
    expect((await reset(token)).status).toBe(200);
  });

  test('[H-13] of twelve that use it at once, one sets the password', async () => {
    const { email } = await somebody();
    const token = await linkFor(email);
    const passwords = Array.from({ length: 12 }, (_, index) => `one of twelve sentences ${index}`);
    const answers = await Promise.all(passwords.map(password => reset(token, password)));
    const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []));
    expect(won).toHaveLength(1);
    expect(answers.filter(({ json }) => json['code'] === 'token_expired')).toHaveLength(11);
    await world.forgetTries();
    expect((await signIn(email, passwords[won[0] as number] as string)).status).toBe(200);
  });

  test('is used by no refused password; lasts thirty minutes; others of the account go with it', async () => {
    const { email, userId } = await somebody();
    const first = await linkFor(email);
    const second = await linkFor(email);
    expect(second).not.toBe(first);
    const weak = await reset(second, 'passwordpassword');
    expect([weak.status, weak.json['code']]).toEqual([400, 'weak_password']);
    const [row] = await world.sql<
      { minutes: number }[]
    >`select max(extract(epoch from expires_at - now()))::float / 60 as minutes from step_tokens where user_id = ${userId}`;
    expect(row?.minutes).toBeGreaterThan(29);
    expect(row?.minutes).toBeLessThanOrEqual(30);
    expect((await reset(second)).status).toBe(200);
    const stale = await reset(first);
    expect([stale.status, stale.json['code']]).toEqual([410, 'token_expired']);
    const third = await linkFor(email);
    await world.sql`update step_tokens set expires_at = now() where user_id = ${userId}`;
    expect((await reset(third)).status).toBe(410);
  });

  test('opens a door that failed attempts locked, and confirms the address', async () => {
    const { email, userId } = await somebody();
    await world.sql`update users set email_verified = false where user_id = ${userId}`;
    for (let run = 0; run < 10; run++) await signIn(email, 'a wrong password');
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    expect((await signIn(email, CHOSEN)).json['code']).toBe('account_locked');
    await reset(await linkFor(email));
    expect((await signIn(email, NEXT)).json['status']).toBe('ok');
  });

  test('neither tokens nor addresses reach a log, the store, or a row that is not sealed', async () => {
    const { email } = await somebody();
    const token = await linkFor(email);
    const tables = await world.sql<
      { row: string }[]
    >`select work_tasks::text as row from work_tasks union all select step_tokens::text from step_tokens union all select payload::text
      from outbox`;
    for (const { row } of tables) expect(row.includes(token) || row.includes(email)).toBe(false);
    const keys = (await world.kv('KEYS', '*')) as string[];
    expect(keys.filter(key => key.includes('@') || key.includes(token))).toEqual([]);
    world.host.process.telemetry.flush();
    const logs = join(world.dataDir, 'logs');
    for (const file of readdirSync(logs)) expect(readFileSync(join(logs, file), 'utf8')).not.toContain(token);
  });
});
