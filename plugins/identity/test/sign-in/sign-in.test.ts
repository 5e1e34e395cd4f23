import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Passwords } from '../../src/people/passwords.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
const ADA = 'ada@example.org';
beforeAll(async () => {
  world = await World.start();
  await world.person(ADA);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const attempt = (email: string, password: string, headers: Record<string, string> = {}) =>
  world.browser().post('/v1/sign-in', { email, password, oauth: {} }, headers);

describe('signing in', () => {
  test('refuses the unknown, the wrong and the disabled in the same words', async () => {
    await world.person('gone@example.org', { status: 'disabled' });
    await world.person('locked@example.org', { status: 'locked' });
    const answers = await Promise.all([
      attempt('nobody@example.org', CHOSEN),
      attempt(ADA, 'a wrong password'),
      attempt('gone@example.org', CHOSEN),
      attempt('locked@example.org', CHOSEN),
    ]);
    const said = answers.map(({ status, json: { correlation_id: _, instance: __, ...json } }) => ({ status, json }));
    expect(said).toEqual(
      said.map(() => ({
        status: 401,
        json: {
          type: 'urn:platform:problem:auth:invalid_credentials',
          title: 'E-mail or password is wrong',
          status: 401,
          code: 'invalid_credentials',
          detail: 'Check the e-mail address and the password.',
        },
      })),
    );
    for (const { headers } of answers) expect(headers['set-cookie']).toBeUndefined();
  });

  test('the address is read without regard to case and space around it', async () => {
    expect((await attempt('  ADA@Example.ORG ', CHOSEN)).json['status']).toBe('ok');
  });

  test('without an application ends where the person can go on, on this origin', async () => {
    const browser = world.browser();
    const answer = await browser.post('/v1/sign-in', {
      email: ADA,
      password: CHOSEN,
      oauth: { client_id: 'x', redirect_uri: 'https://evil.example/', uid: 'no-such-authorization' },
    });
    expect(answer.json).toEqual({ status: 'ok', session_token_id: expect.any(String), next: '/' });
    const home = await browser.get('/');
    expect([home.status, home.location]).toEqual([303, 'https://console.ops.sys.localhost:8443/']);
  });

  test('while tries cannot be counted nobody signs in, and is told to come back', async () => {
    const store = new Redis(world.host.stores.stores.keyValueUrl);
    await store.config('SET', 'maxmemory', '1');
    try {
      const { status, json, headers } = await attempt(ADA, CHOSEN);
      expect([status, json['code'], headers['retry-after']]).toEqual([503, 'store_away', '2']);
    } finally {
      await store.config('SET', 'maxmemory', '0');
      store.disconnect();
    }
    expect((await attempt(ADA, CHOSEN)).json['status']).toBe('ok');
  });

  test('asks eleven times a minute and is asked to wait', async () => {
    const answers = [];
    for (let run = 0; run < 11; run++) answers.push(await attempt(ADA, CHOSEN));
    expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    const last = answers.at(-1);
    expect(last?.json['code']).toBe('rate_limited');
    expect(Number(last?.headers['retry-after'])).toBeGreaterThan(0);
    expect(last?.headers['ratelimit-policy']).toContain('q=10');
    // Somebody else at the same address may still try.
    expect((await attempt('else@example.org', CHOSEN)).status).toBe(401);
  });

  test('an address that tries sixty accounts a minute is asked to wait', async () => {
    await world.kv('SET', 'auth:rate:sign-in:127.0.0.1', '60', 'EX', '60');
    expect((await attempt('one-more@example.org', CHOSEN)).json['code']).toBe('rate_limited');
  });

  test('ten wrong passwords lock the account for fifteen minutes, also against the right one, whether it exists or not', async () => {
    await world.person('target@example.org');
    for (const email of ['target@example.org', 'no-target@example.org']) {
      for (let run = 0; run < 10; run++) expect((await attempt(email, 'a wrong password')).status).toBe(401);
      await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
      const locked = await attempt(email, CHOSEN);
      expect([email, locked.status, locked.json['code']]).toEqual([email, 429, 'account_locked']);
      expect(Number(locked.headers['retry-after'])).toBeGreaterThan(850);
    }
  });

  test('who is turned away for haste has tried nothing: the account is not locked by it', async () => {
    await world.person('hasty@example.org');
    await world.kv('SET', 'auth:rate:sign-in:127.0.0.1', '60', 'EX', '60');
    for (let run = 0; run < 12; run++) expect((await attempt('hasty@example.org', 'a wrong password')).json['code']).toBe('rate_limited');
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    expect((await attempt('hasty@example.org', CHOSEN)).status).toBe(200);
  });

  test('guesses in parallel are counted before they are checked', async () => {
    await world.person('parallel@example.org');
    const [key] = await Promise.all([attempt('parallel@example.org', 'wrong, to learn the key')]).then(
      () => world.kv('KEYS', 'auth:failed:*') as Promise<string[]>,
    );
    await world.kv('SET', key as string, '9', 'EX', '900');
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    const answers = await Promise.all(Array.from({ length: 8 }, () => attempt('parallel@example.org', 'a wrong password')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(1);
    expect(answers.filter(({ json }) => json['code'] === 'account_locked')).toHaveLength(7);
  });

  test('a success forgives what went before', async () => {
    await world.person('clumsy@example.org');
    for (let run = 0; run < 5; run++) await attempt('clumsy@example.org', 'a wrong password');
    expect((await attempt('clumsy@example.org', CHOSEN)).status).toBe(200);
    expect(await world.kv('KEYS', 'auth:failed:*')).toEqual([]);
  });

  test('neither passwords nor addresses reach the log, the store or an outbox row', async () => {
    await attempt('private@example.org', 'a very secret sentence');
    await attempt(ADA, 'a very secret sentence');
    const keys = (await world.kv('KEYS', '*')) as string[];
    expect(keys.filter(key => key.includes('@') || key.includes('secret'))).toEqual([]);
    const rows = await world.sql<{ payload: unknown }[]>`select payload from outbox`;
    expect(JSON.stringify(rows)).not.toMatch(/secret sentence|@example/);
    const logs = join(world.dataDir, 'logs');
    for (const file of readdirSync(logs)) expect(readFileSync(join(logs, file), 'utf8')).not.toMatch(/secret sentence|private@example/);
  });
});

test.each([
  ['a password that is changed', "update passwords set hash = 'another', changed_at = now() where user_id"],
  ['an account that is closed', "update users set status = 'disabled' where user_id"],
])('%s while somebody signs in with it leaves no session behind', async (what, change) => {
  const email = `hasty-${what.length}@example.org`;
  const userId = await world.person(email);
  // Another process has begun the change and not ended it when the password is found right.
  const late = await world.tx(async (sql, run) => {
    await run(`${change} = '${userId}'`);
    await sql`update users set must_change_password = false where user_id = ${userId}`;
    const answer = attempt(email, CHOSEN);
    while ((await world.sql<object[]>`select 1 from pg_stat_activity where wait_event_type = 'Lock'`).length === 0)
      await new Promise(resolve => setImmediate(resolve));
    return { answer };
  });
  const answer = await late.answer;
  expect([answer.status, answer.json['code'], answer.headers['set-cookie']]).toEqual([401, 'invalid_credentials', undefined]);
  expect(await world.sql<object[]>`select 1 from oidc_state where account_id = ${userId}`).toHaveLength(0);
});

describe('U+0000', () => {
  test.each(['/v1/sign-in', '/v1/sign-up', '/v1/password/reset-request', '/v1/email/verify-request'])(
    'F-19 in a text of %s is refused with its place',
    async path => {
      const answer = await world
        .browser()
        .post(path, { email: 'a\0@x.test', ...(path.startsWith('/v1/sign') ? { password: CHOSEN, oauth: {} } : {}) });
      expect([answer.status, answer.json['code'], answer.json['errors']]).toEqual([
        400,
        'validation_failed',
        [expect.objectContaining({ pointer: '/email' })],
      ]);
    },
  );

  test.each([
    ['/oauth/par', { client_id: 'x', state: 'a\0b' }],
    ['/oauth/token', { grant_type: 'authorization_code', client_id: 'a\0b', code: 'c' }],
    ['/oauth/device_authorization', { client_id: '\0' }],
    ['/oauth/introspect', { token: '\0', client_id: 'x' }],
    ['/oauth/revoke', { token: 'x\0', client_id: 'x' }],
  ])('F-19 in a form of %s is an invalid request', async (path, form) => {
    for (const at of [path, `/mtls${path}`]) {
      const answer = await world.mtls(at, form, 'bff');
      expect([at, answer.status, answer.json['error']]).toEqual([at, 400, 'invalid_request']);
    }
  });

  test('F-19 in a client’s name in an assertion is no client', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const client_assertion = `${part({ alg: 'EdDSA' })}.${part({
      iss: 'a\0b',
      sub: 'a\0b',
      aud: world.issuer,
      exp: 9_999_999_999,
      jti: 'x',
    })}.AAAA`;
    const body = {
      grant_type: 'client_credentials',
      client_assertion,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    };
    const answer = await world.mtls('/oauth/token', body);
    expect([answer.status, answer.json['error']]).toEqual([401, 'invalid_client']);
  });
});

describe('other sites', () => {
  test("IDN-016 [H-07] a request needs the page's exact origin, or the session's own token", async () => {
    const browser = world.browser();
    for (const origin of [
      'https://console.ops.sys.localhost:8443',
      'https://auth.ops.sys.localhost',
      'http://auth.ops.sys.localhost:8443',
      'null',
      'https://evil.example',
    ]) {
      browser.origin = origin;
      for (const [path, body] of [
        ['/v1/sign-in', { email: ADA, password: CHOSEN, oauth: {} }],
        ['/v1/password/change', { password: CHOSEN, oauth: {} }],
        ['/v1/sign-out', {}],
        ['/oauth/authorize/continue', { decision: 'deny' }],
      ] as const) {
        const answer = await browser.post(path, body);
        expect([origin, path, answer.status, answer.json['code']]).toEqual([origin, path, 403, 'bad_origin']);
      }
    }
  });

  test('F-15 a request without an origin and without the token of a session is refused', async () => {
    for (const [path, body] of [
      ['/v1/sign-in', { email: ADA, password: CHOSEN, oauth: {} }],
      ['/v1/sign-up', { email: 'new@example.org', password: CHOSEN, oauth: {} }],
      ['/v1/sign-out', {}],
      ['/oauth/authorize/continue', { decision: 'deny' }],
    ] as const) {
      const answer = await world.reach(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect([path, answer.status, answer.json['code'], answer.headers['set-cookie']]).toEqual([path, 403, 'bad_origin', undefined]);
    }
  });

  test("IDN-016 the token must be the session's, and then stands for the origin", async () => {
    const browser = world.browser();
    const { json } = await browser.post('/v1/sign-in', { email: ADA, password: CHOSEN, oauth: {} });
    const other = world.browser();
    await other.post('/v1/sign-in', { email: ADA, password: CHOSEN, oauth: {} });
    const wrong = await other.post('/v1/sign-out', {}, { 'x-platform-csrf': String(json['session_token_id']) });
    expect([wrong.status, wrong.json['code']]).toEqual([403, 'csrf_mismatch']);
    expect((await world.browser().post('/v1/sign-out', {}, { 'x-platform-csrf': '' })).json['code']).toBe('csrf_mismatch');
    browser.origin = 'https://elsewhere.example';
    expect((await browser.post('/v1/sign-out', {}, { 'x-platform-csrf': String(json['session_token_id']) })).status).toBe(204);
  });
});

describe('a new password', () => {
  test.each([
    ['eleven char', 'Use at least'],
    ['x'.repeat(129), 'Use at most'],
    ['passwordpassword', 'guessed first'],
    ['P@ssw0rd2026', 'guessed first'],
    ['!!sunshine2026', 'guessed first'],
    ['qazwsxedcrfv', 'guessed first'],
    ['dragon dragon', 'guessed first'],
    ['ada.lovelace-2026', 'e-mail address'],
    ['aaaaaaaaaaaaaa', 'different'],
  ])('"%s" is refused', (password, reason) => {
    expect(new Passwords().weakness(password, 'ada.lovelace@example.org')).toContain(reason);
  });

  test.each(['a long walk by the sea 7', CHOSEN, 'dragonfly meadow 12', '7741-pumpkin-lathe'])(
    '"%s" will do, although leaked words are in it',
    password => {
      expect(new Passwords().weakness(password, 'ada.lovelace@example.org')).toBeUndefined();
    },
  );

  test('is kept as argon2id with 19 MiB and two passes', async () => {
    const passwords = new Passwords();
    const stored = await passwords.hash(CHOSEN);
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect([
      await passwords.verify(stored, CHOSEN),
      await passwords.verify(stored, `${CHOSEN}.`),
      await passwords.verify(undefined, CHOSEN),
    ]).toEqual([true, false, false]);
  });

  test('[H-13] of twelve tabs that use one step at once, one changes the password', async () => {
    const userId = await world.person('tabs@example.org', { password: 'given once, changed at once' });
    await world.sql`update users set must_change_password = true where user_id = ${userId}`;
    const browser = world.browser();
    await browser.post('/v1/sign-in', { email: 'tabs@example.org', password: 'given once, changed at once', oauth: {} });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, tab) => browser.post('/v1/password/change', { password: `a different sentence ${tab}`, oauth: {} })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(11);
  });

  test('the step lasts ten minutes and belongs to the host that began it', async () => {
    const userId = await world.person('slow@example.org', { password: 'given once, changed at once' });
    await world.sql`update users set must_change_password = true where user_id = ${userId}`;
    const browser = world.browser();
    await browser.post('/v1/sign-in', { email: 'slow@example.org', password: 'given once, changed at once', oauth: {} });
    const token = browser.cookie('__Host-platform-step')?.value;
    await world.environment('auth.prod.acme.localhost');
    const elsewhere = await world.host.fetch('/v1/password/change', {
      method: 'POST',
      host: world.authHost,
      as: await world.host.workload('proxy'),
      headers: {
        'x-platform-hostname': 'auth.prod.acme.localhost',
        'x-platform-service': 'auth',
        origin: 'https://auth.prod.acme.localhost:8443',
        cookie: `__Host-platform-step=${token}`,
      },
      body: JSON.stringify({ password: CHOSEN, oauth: {} }),
    });
    expect([elsewhere.status, elsewhere.json['code']]).toEqual([410, 'token_expired']);
    await world.sql`update step_tokens set expires_at = now() where user_id = ${userId}`;
    expect((await browser.post('/v1/password/change', { password: CHOSEN, oauth: {} })).json['code']).toBe('token_expired');
  });
});
