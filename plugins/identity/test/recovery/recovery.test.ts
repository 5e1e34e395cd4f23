import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { NEXT, Recoverer } from '../fixtures/recoverer.ts';
import { World } from '../fixtures/world.ts';

let world: World;
const OFF = 'auth.prod.slate.localhost';
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_ACCOUNT_RECOVERY: 'wait', PLATFORM_AUTH_PASSKEYS: 'true' } });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];

describe('asking to recover an account', () => {
  test('is answered in the same words whether there is an account or not; mail goes to proven addresses of open accounts alone', async () => {
    const person = await Recoverer.open(world);
    const unproven = await Recoverer.open(world);
    await world.sql`update users set email_verified = false where user_id = ${unproven.userId}`;
    const closed = await Recoverer.open(world);
    await world.sql`update users set status = 'disabled' where user_id = ${closed.userId}`;
    const nobody = await world.browser().post('/v1/recovery/request', { email: 'nobody-at-all@example.org' });
    const answers = [await person.ask(), await unproven.ask(), await closed.ask(), nobody];
    const shown = answers.map(({ status, text, headers }) => ({
      status,
      text,
      names: Object.keys(headers).sort(),
      cookie: headers['set-cookie'],
    }));
    expect(shown).toEqual(shown.map(() => ({ ...shown[0], status: 200, text: '{"status":"ok"}' })));
    expect([await person.subjects(), await unproven.subjects(), await closed.subjects()]).toEqual([['Recover your account'], [], []]);
    await world.audited('auth.recovery.requested', person.userId);
  });

  test('reads no account and writes the same for everybody', async () => {
    const person = await Recoverer.open(world);
    await world.sql`alter table users rename to users_hidden`;
    try {
      expect([
        (await person.ask()).status,
        (await world.browser().post('/v1/recovery/request', { email: 'no-one@example.org' })).status,
      ]).toEqual([200, 200]);
      // Both were tried in vain and wait for their next time: what is noted after the clock moves would wait for longer.
      await eventually(
        () => world.sql`select 1 from work_tasks where name = 'mail' and (state = 'running' or (state = 'waiting' and attempts = 0))`,
      ).toEqual([]);
    } finally {
      await world.sql`alter table users_hidden rename to users`;
    }
    await world.host.clock.advance('10s');
    expect(await person.subjects()).toEqual(['Recover your account']);
  });

  test('five mails an hour for one address, in the same words; twenty requests an hour from one place, then 429', async () => {
    const person = await Recoverer.open(world);
    for (let run = 0; run < 20; run++) expect((await person.ask()).json).toEqual({ status: 'ok' });
    expect((await person.subjects()).length).toBe(5);
    expect(code(await person.ask())).toEqual([429, 'rate_limited']);
  });

  test('[H-07] is heard from the page itself alone', async () => {
    const person = await Recoverer.open(world);
    const elsewhere = world.browser();
    elsewhere.origin = 'https://evil.example';
    for (const [path, body] of Object.entries({
      request: { email: person.email },
      confirm: { token: 'x' },
      cancel: { token: 'x' },
      finish: { token: 'x', password: NEXT },
    }))
      expect([path, ...code(await elsewhere.post(`/v1/recovery/${path}`, body))]).toEqual([path, 403, 'bad_origin']);
  });

  test('again, before it is confirmed, makes the first link void; there is never more than one under way', async () => {
    const person = await Recoverer.open(world);
    await person.ask();
    const first = (await person.token('confirm')) as string;
    await person.ask();
    const second = (await person.token('confirm')) as string;
    expect(code(await person.confirm(first))).toEqual([410, 'token_expired']);
    expect((await person.confirm(second)).status).toBe(200);
    await person.ask();
    expect((await person.subjects()).at(-1)).toBe('Your account is being recovered already');
    expect(await world.sql`select 1 from account_recoveries where user_id = ${person.userId}`).toHaveLength(1);
  });
});

describe('the link that confirms', () => {
  test('[H-08] is shown by GET and used by POST, once; then time runs, and its owner reads how to end it', async () => {
    const person = await Recoverer.open(world);
    await person.ask();
    const token = (await person.token('confirm')) as string;
    for (let look = 0; look < 3; look++) expect((await world.browser().get(`/account-recovery/confirm?token=${token}`)).status).toBe(200);
    expect((await person.row()).status).toBe('asked');
    const confirmed = await person.confirm(token, {
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    });
    expect(confirmed.json).toEqual({ needs_approval: false, ready_at: expect.stringMatching(/Z$/) });
    const row = await person.row();
    expect(row).toMatchObject({
      status: 'waiting',
      device: 'Firefox · Linux',
      needs_approval: false,
      confirm_hash: null,
      finish_hash: null,
    });
    const [{ hours } = { hours: 0 }] = await world.sql<
      { hours: number }[]
    >`select extract(epoch from wait_until - confirmed_at)::float / 3600 as hours from account_recoveries
      where recovery_id = ${row.recovery_id}`;
    expect(hours).toBe(72);
    expect(code(await person.confirm(token))).toEqual([410, 'token_expired']);
    expect(await person.subjects()).toEqual(['Recover your account', 'Your account is being recovered']);
    expect(await person.token('cancel')).toMatch(/^[\w-]{43}$/);
    await world.audited('auth.recovery.confirmed', person.userId);
    const told = await world.host.events('platform:auth:recovery:updated');
    expect(told.map(({ payload }) => payload)).toContainEqual({
      recovery_id: row.recovery_id,
      user_id: person.userId,
      env_id: row['env_id'],
      status: 'waiting',
    });
  });

  test('[H-13] of twelve that use it at once, one confirms', async () => {
    const person = await Recoverer.open(world);
    await person.ask();
    const token = (await person.token('confirm')) as string;
    const answers = await Promise.all(Array.from({ length: 12 }, () => person.confirm(token)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
    expect((await person.subjects()).filter(subject => subject === 'Your account is being recovered')).toHaveLength(1);
  });

  test('lasts thirty minutes, is of one realm, and of an account that is open', async () => {
    const person = await Recoverer.open(world);
    await person.ask();
    const token = (await person.token('confirm')) as string;
    const other = 'auth.prod.other.localhost';
    const envId = await world.environment(other);
    await world.registry.putRealm({ params: { env_id: envId }, body: { host: other, org_id: world.org, account_recovery: 'wait' } });
    expect(code(await world.browser(other).post('/v1/recovery/confirm', { token }))).toEqual([410, 'token_expired']);
    expect(code(await world.browser(other).post('/v1/recovery/cancel', { token: (await person.token('cancel')) as string }))).toEqual([
      410,
      'token_expired',
    ]);
    await world.sql`update users set status = 'disabled' where user_id = ${person.userId}`;
    expect((await person.confirm(token)).status).toBe(410);
    await world.sql`update users set status = 'active' where user_id = ${person.userId}`;
    const [{ minutes } = { minutes: 0 }] = await world.sql<
      { minutes: number }[]
    >`select extract(epoch from expires_at - now())::float / 60 as minutes from account_recoveries where user_id = ${person.userId}`;
    expect([minutes > 29, minutes <= 30]).toEqual([true, true]);
    await world.sql`update account_recoveries set expires_at = now() where user_id = ${person.userId}`;
    expect((await person.confirm(token)).status).toBe(410);
    await world.host.clock.advance('1m');
    // Nobody had confirmed it, so nobody is told.
    expect([(await person.row()).status, await person.subjects()]).toEqual(['expired', ['Recover your account']]);
  });
});

describe('an environment that has it off', () => {
  test('SGN-024 shows who can help, as ever, and refuses every step but the one that ends it', async () => {
    const envId = await world.environment(OFF);
    await world.person('plain@example.org', { envId });
    for (const path of ['/account-recovery', '/account-recovery/confirm', '/account-recovery/finish']) {
      const page = await world.browser(OFF).get(path);
      expect([path, page.status, page.text.includes('<form'), page.text.includes('ask an owner of your organization')]).toEqual([
        path,
        200,
        false,
        true,
      ]);
    }
    const browser = world.browser(OFF);
    expect(code(await browser.post('/v1/recovery/request', { email: 'plain@example.org' }))).toEqual([404, 'recovery_off']);
    expect(code(await browser.post('/v1/recovery/confirm', { token: 'x' }))).toEqual([404, 'recovery_off']);
    expect(code(await browser.post('/v1/recovery/finish', { token: 'x', password: NEXT }))).toEqual([404, 'recovery_off']);
    expect(code(await browser.post('/v1/recovery/cancel', { token: 'x' }))).toEqual([410, 'token_expired']);
    expect((await browser.get('/password-reset')).text).not.toContain('/account-recovery');
    // Where it is on, the same path asks for the address.
    expect((await world.browser().get('/account-recovery')).text).toContain('type="email"');
    expect((await world.browser().get('/password-reset')).text).toContain('/account-recovery');
  });

  test('hours outside a day and a month are no setting', async () => {
    const envId = await world.environment('auth.prod.hours.localhost');
    for (const recovery_wait_hours of [0, 23, 721, 1.5])
      await expect(
        world.registry.putRealm({
          params: { env_id: envId },
          body: { host: 'auth.prod.hours.localhost', org_id: world.org, recovery_wait_hours },
        }),
      ).rejects.toMatchObject({ status: 400 });
    const kept = await world.registry.putRealm({
      params: { env_id: envId },
      body: { host: 'auth.prod.hours.localhost', org_id: world.org, account_recovery: 'wait_and_approval', recovery_wait_hours: 24 },
    });
    expect(kept).toMatchObject({ account_recovery: 'wait_and_approval', recovery_wait_hours: 24 });
    expect(
      await world.registry.putRealm({ params: { env_id: envId }, body: { host: 'auth.prod.hours.localhost', org_id: world.org } }),
    ).toMatchObject(kept);
  });
});
