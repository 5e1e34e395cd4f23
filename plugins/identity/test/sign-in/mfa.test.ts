import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { type Browser, FIREFOX } from '../fixtures/browser.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const somebody = async () => {
  const email = `mfa-${(count += 1)}@example.org`;
  return { email, userId: await world.person(email) };
};
const password = (browser: Browser, email: string, oauth: object = {}) => browser.post('/v1/sign-in', { email, password: CHOSEN, oauth });
const enrolled = async () => {
  const person = await somebody();
  const browser = world.browser();
  await password(browser, person.email);
  const app = await AuthenticatorApp.enrol(world, browser, CHOSEN);
  await world.forgetTries();
  return { ...person, browser, app };
};
const challenge = async (email: string, browser = world.browser()) => {
  const answer = await password(browser, email);
  return { browser, id: (answer.json['mfa'] as { challenge_id: string }).challenge_id, answer };
};
const prove = ({ browser, id }: { browser: Browser; id: string }, code: string, method = 'totp') =>
  browser.post('/v1/mfa/verify', { challenge_id: id, method, code });

describe('setting up an authenticator app', () => {
  test('IDN-005 needs the password again, shows the secret as text, link and picture, and ends with ten recovery codes', async () => {
    const { email, userId } = await somebody();
    const browser = world.browser();
    expect((await browser.post('/v1/account/mfa/begin', { password: CHOSEN })).json['code']).toBe('session_required');
    await password(browser, email);
    expect((await browser.post('/v1/account/mfa/begin', { password: 'not the password' })).json['code']).toBe('wrong_password');
    const begun = await browser.post('/v1/account/mfa/begin', { password: CHOSEN });
    expect(begun.json).toMatchObject({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      otpauth_uri: expect.stringContaining(`secret=${begun.json['secret']}`),
      qr: { path: expect.stringMatching(/^M/) },
    });
    // Begun is not set up: a person who stops here signs in as before.
    expect((await password(world.browser(), email)).json['status']).toBe('ok');
    const wrong = await browser.post('/v1/account/mfa/confirm', { code: '000000' });
    expect([wrong.status, wrong.json['code']]).toEqual([401, 'invalid_code']);
    const app = await AuthenticatorApp.enrol(world, browser, CHOSEN);
    expect(new Set(app.recoveryCodes).size).toBe(10);
    for (const code of app.recoveryCodes) expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
    expect((await browser.get('/v1/account')).json).toMatchObject({ mfa_enrolled: true, recovery_codes_left: 10 });
    expect((await world.host.by(as.user('auth:users:read')).getUser({ params: { user_id: userId } })).mfa_enrolled).toBe(true);
    expect((await world.mails(email)).map(({ subject }) => subject)).toEqual(['An authenticator app was added']);
    await world.audited('auth.mfa.enrolled', userId);
    expect((await browser.post('/v1/account/mfa/begin', { password: CHOSEN })).json['code']).toBe('mfa_enrolled');
  });

  test('what is kept of secret and codes does not open the door: one is sealed, the others are hashed', async () => {
    const { userId, app } = await enrolled();
    const [row] = await world.sql<{ all: string }[]>`
      select (select string_agg(a::text, ' ') from authenticators a where user_id = ${userId}) || (select string_agg(r::text, ' ')
        from recovery_codes r where user_id = ${userId}) as all`;
    for (const code of app.recoveryCodes) expect(row?.all).not.toContain(code.replaceAll('-', ''));
    expect(row?.all).toContain('"ct"');
  });

  test('a set-up that waits longer than ten minutes begins again', async () => {
    const { email, userId } = await somebody();
    const browser = world.browser();
    await password(browser, email);
    await browser.post('/v1/account/mfa/begin', { password: CHOSEN });
    await world.sql`update authenticators set begun_at = now() - interval '11 minutes' where user_id = ${userId}`;
    expect((await browser.post('/v1/account/mfa/confirm', { code: '123456' })).json['code']).toBe('token_expired');
  });

  test('ten wrong codes during the set-up lock the second factor, and the trail says so', async () => {
    const { email, userId } = await somebody();
    const browser = world.browser();
    await password(browser, email);
    await browser.post('/v1/account/mfa/begin', { password: CHOSEN });
    const codes = [];
    for (let run = 0; run < 11; run++) {
      for (const key of (await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]) await world.kv('DEL', key);
      codes.push((await browser.post('/v1/account/mfa/confirm', { code: '12345x' })).json['code']);
    }
    expect(codes).toEqual([...Array.from({ length: 10 }, () => 'invalid_code'), 'account_locked']);
    expect(await world.audited('auth.mfa.locked', userId)).toMatchObject({ outcome: 'denied', details: { failures: 10 } });
  });

  test('of eight that confirm at once, one is told the recovery codes', async () => {
    const { email, userId } = await somebody();
    const browser = world.browser();
    await password(browser, email);
    const begun = await browser.post('/v1/account/mfa/begin', { password: CHOSEN });
    const { codeAt } = await import('../../src/mfa/totp.ts');
    const code = codeAt(AuthenticatorApp.typed(String(begun.json['secret'])), world.host.clock.now());
    const answers = await Promise.all(Array.from({ length: 8 }, () => browser.post('/v1/account/mfa/confirm', { code })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect((await world.sql<object[]>`select 1 from recovery_codes where user_id = ${userId}`).length).toBe(10);
  });
});

describe('signing in with a second factor', () => {
  test('IDN-005 asks for a code after the password; the authorization goes on, and tokens say how', async () => {
    const { email, app } = await enrolled();
    const browser = world.browser().as(FIREFOX);
    const { oauth, verifier } = await world.begin(browser);
    const asked = await password(browser, email, oauth);
    expect(asked.json).toMatchObject({ status: 'mfa_required', mfa: { methods: ['totp', 'recovery_code'] } });
    expect(asked.json['session_token_id']).toBeUndefined();
    expect(browser.cookie('__Host-platform-session')).toBeUndefined();
    const id = (asked.json['mfa'] as { challenge_id: string }).challenge_id;
    expect(asked.json['next']).toBe(`/mfa?${new URLSearchParams({ ...oauth, challenge_id: id, methods: 'totp,recovery_code' })}`);
    // The password alone is no session.
    expect((await browser.get('/v1/account')).json['code']).toBe('session_required');
    expect((await world.mails(email)).at(-1)?.subject).toBe('An authenticator app was added');
    const done = await prove({ browser, id }, await app.next());
    expect(done.json).toMatchObject({
      status: 'ok',
      session_token_id: expect.any(String),
      next: expect.stringMatching(/^\/oauth\/authorize\//),
    });
    const landed = new URL((await browser.get(String(done.json['next']))).location);
    const tokens = (await world.redeem(landed.searchParams.get('code') as string, verifier)).json as { access_token: string };
    expect(claimsOf(tokens.access_token)['amr']).toEqual(['pwd', 'otp', 'mfa']);
    expect((await world.mails(email)).at(-1)?.subject).toBe('A sign-in from a new device');
  });

  test('belongs to the browser that knew the password', async () => {
    const { email, app } = await enrolled();
    const { id } = await challenge(email);
    const other = world.browser();
    const answer = await prove({ browser: other, id }, await app.next());
    expect([answer.status, answer.json['code']]).toEqual([410, 'token_expired']);
  });

  test('lasts five minutes and five tries, also when they come at once', async () => {
    const { email, app, userId } = await enrolled();
    const tired = await challenge(email);
    const answers = await Promise.all(Array.from({ length: 12 }, () => prove(tired, '000000')));
    expect(answers.filter(({ json }) => json['code'] === 'invalid_code')).toHaveLength(5);
    expect(answers.filter(({ json }) => json['code'] === 'token_expired')).toHaveLength(7);
    expect((await prove(tired, await app.next())).status).toBe(410);
    const slow = await challenge(email);
    const [row] = await world.sql<
      { left: number }[]
    >`select extract(epoch from expires_at - now())::int as left from step_tokens where step_id = ${slow.id}`;
    expect(row?.left).toBeGreaterThan(295);
    expect(row?.left).toBeLessThanOrEqual(300);
    await world.sql`update step_tokens set expires_at = now() where user_id = ${userId}`;
    expect((await prove(slow, await app.next())).status).toBe(410);
  });

  test('[H-13] of twelve sign-ins that show one code at once, one succeeds, and the code is gone', async () => {
    const { email, app } = await enrolled();
    const challenges = [];
    for (let run = 0; run < 13; run++) {
      await world.forgetTries();
      challenges.push(await challenge(email));
    }
    await world.forgetTries();
    const code = await app.next();
    const answers = await Promise.all(challenges.slice(0, 12).map(each => prove(each, code)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    await world.forgetTries();
    expect((await prove(challenges[12] as (typeof challenges)[0], code)).json['code']).toBe('invalid_code');
  });

  test('[H-13] of twelve that use one challenge at once, one gets a session', async () => {
    const { email, app } = await enrolled();
    const one = await challenge(email);
    const code = await app.next();
    const answers = await Promise.all(Array.from({ length: 12 }, () => prove(one, code)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('[H-13] a recovery code works once, of twelve at once for one, and its owner is told', async () => {
    const { email, userId, app, browser } = await enrolled();
    const challenges = [];
    for (let run = 0; run < 12; run++) {
      await world.forgetTries();
      challenges.push(await challenge(email));
    }
    await world.forgetTries();
    const [code = '', second = ''] = app.recoveryCodes;
    const answers = await Promise.all(challenges.map(each => prove(each, code.toUpperCase(), 'recovery_code')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    await world.audited('auth.mfa.recovery_code_used', userId);
    expect((await world.mails(email)).filter(({ subject }) => subject === 'A recovery code was used')).toHaveLength(1);
    expect((await browser.get('/v1/account')).json['recovery_codes_left']).toBe(9);
    await world.forgetTries();
    expect((await prove(await challenge(email), second.replaceAll('-', ' '), 'recovery_code')).status).toBe(200);
  });

  test('ten wrong codes lock it for fifteen minutes, whatever the password; the trail says so once', async () => {
    const { email, userId, app } = await enrolled();
    for (let run = 0; run < 10; run += 5) {
      await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]), 'none');
      const one = await challenge(email);
      for (let guess = 0; guess < 5; guess++) expect((await prove(one, '000000')).json['code']).toBe('invalid_code');
    }
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    const locked = await prove(await challenge(email), await app.next());
    expect([locked.status, locked.json['code'], Number(locked.headers['retry-after']) > 800]).toEqual([429, 'account_locked', true]);
    expect(await world.audited('auth.mfa.locked', userId)).toMatchObject({ outcome: 'denied' });
  });

  test('a password that must be changed is changed after the code, never before it', async () => {
    const { email, userId, app } = await enrolled();
    await world.sql`update users set must_change_password = true where user_id = ${userId}`;
    const one = await challenge(email);
    expect(one.answer.json['status']).toBe('mfa_required');
    expect((await one.browser.post('/v1/password/change', { password: 'one more sentence', oauth: {} })).json['code']).toBe(
      'token_expired',
    );
    expect((await prove(one, await app.next())).json).toMatchObject({ status: 'password_change_required', next: '/password-change' });
    expect((await one.browser.post('/v1/password/change', { password: 'one more sentence', oauth: {} })).json['status']).toBe('ok');
  });
});

describe('taking it away', () => {
  test('needs the password; a browser that was left open is not enough', async () => {
    const { email, userId, browser } = await enrolled();
    expect((await browser.post('/v1/account/mfa/remove', { password: 'not the password' })).json['code']).toBe('wrong_password');
    expect((await browser.post('/v1/account/mfa/remove', { password: CHOSEN })).status).toBe(204);
    expect((await password(world.browser(), email)).json['status']).toBe('ok');
    await world.audited('auth.mfa.removed', userId);
    expect((await world.mails(email)).map(({ subject }) => subject)).toContain('The authenticator app was removed');
    expect((await browser.post('/v1/account/mfa/remove', { password: CHOSEN })).json['code']).toBe('mfa_not_enrolled');
    expect((await browser.post('/v1/account/mfa/recovery-codes', { password: CHOSEN })).json['code']).toBe('mfa_not_enrolled');
  });

  test('new recovery codes void the old ones', async () => {
    const { email, app, browser } = await enrolled();
    const renewed = (await browser.post('/v1/account/mfa/recovery-codes', { password: CHOSEN })).json['recovery_codes'] as string[];
    expect(renewed.length).toBe(10);
    const one = await challenge(email);
    expect((await prove(one, app.recoveryCodes[0] as string, 'recovery_code')).json['code']).toBe('invalid_code');
    expect((await prove(one, renewed[0] as string, 'recovery_code')).status).toBe(200);
  });
});
