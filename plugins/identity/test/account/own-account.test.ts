import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deviceOf } from '../../src/account/device.ts';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { FIREFOX, SAFARI } from '../fixtures/browser.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const signedIn = async (email = `own-${(count += 1)}@example.org`) => {
  const [known] = await world.sql<{ user_id: string }[]>`select user_id from users where email_ci = ${email}`;
  const userId = known?.user_id ?? (await world.person(email));
  const browser = world.browser();
  const tokens = await world.tokens(browser, email);
  return { email, userId, browser, tokens, sid: String(claimsOf(tokens.access_token)['sid']) };
};
type Row = { session_id: string; device: string; current: boolean; created_at: string; last_seen_at: string };
const list = async ({ browser }: { browser: ReturnType<World['browser']> }) =>
  (await browser.get('/v1/account/sessions')).json['items'] as Row[];
const ended = async (sid: string) => {
  for (;;) {
    const found = (await world.host.events('platform:auth:session:revoked')).find(({ payload }) => payload['session_id'] === sid);
    if (found) return found.payload;
    await new Promise(resolve => setImmediate(resolve));
  }
};

describe('a sign-in from a device that the account was not used with for 90 days', () => {
  const NEW = 'A sign-in from a new device';
  const signIn = (email: string, agent: string, headers: Record<string, string> = {}) =>
    world
      .browser()
      .as(agent)
      .post('/v1/sign-in', { email, password: CHOSEN, oauth: { return_to: '/account' } }, headers);
  const told = async (email: string) => (await world.mails(email)).filter(({ subject }) => subject === NEW);

  test('is told to its owner by mail, with time, device and the page that ends it; the first sign-in and a known device say nothing', async () => {
    const email = `device-${(count += 1)}@example.org`;
    const userId = await world.person(email);
    await signIn(email, FIREFOX);
    await signIn(email, FIREFOX);
    expect(await told(email)).toEqual([]);
    await signIn(email, SAFARI);
    await signIn(email, SAFARI);
    const [mail, ...more] = await told(email);
    expect([mail?.to, more]).toEqual([email, []]);
    expect(mail?.body).toMatch(/^Device: Safari · macOS\nTime: \w+ \d+, \d{4} at .* UTC$/m);
    expect(mail?.body.split('\n')).toEqual(expect.arrayContaining([`${world.issuer}/account`, `${world.issuer}/password-reset`]));
    // After 90 days it is a stranger again.
    await world.sql`update account_devices set seen_at = now() - interval '91 days' where user_id = ${userId} and device like 'Safari%'`;
    await signIn(email, SAFARI);
    expect(await told(email)).toHaveLength(2);
    const [kept] = await world.sql<
      { payload: string }[]
    >`select string_agg(payload::text, '') as payload from work_tasks where name = 'mail'`;
    expect(kept?.payload).not.toContain(email);
    const logs = join(world.dataDir, 'logs');
    for (const file of readdirSync(logs)) expect(readFileSync(join(logs, file), 'utf8')).not.toContain(email);
  });

  test('[H-13] is told once, of six at the same time, in the language that the account had', async () => {
    const email = `device-${(count += 1)}@example.org`;
    await world.person(email);
    await signIn(email, FIREFOX, { 'accept-language': 'de' });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} }, { 'accept-language': 'en' }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
    const mails = (await world.mails(email)).map(({ subject, body }) => [subject, /^Gerät: .*$/m.exec(body)?.[0]]);
    expect(mails).toEqual([['Anmeldung mit einem neuen Gerät', 'Gerät: nicht bekannt']]);
  });

  test('is told five times an hour at most, however many devices there are; the sign-ins go on', async () => {
    const email = `device-${(count += 1)}@example.org`;
    await world.person(email);
    const agents = [FIREFOX, SAFARI, ...['Android', 'iPhone', 'Windows', 'CrOS', 'Linux'].map(system => `(${system}) Chrome/140`)];
    for (const agent of agents) expect((await signIn(email, agent)).status).toBe(200);
    expect(await told(email)).toHaveLength(5);
    // Another hour, as far as the count goes: a device that was not told of is known all the same.
    await world.forgetTries();
    await signIn(email, agents.at(-1) as string);
    await signIn(email, '(Linux) Edg/140');
    expect(await told(email)).toHaveLength(6);
  });

  test('is no sign-in when its mail cannot be kept', async () => {
    const email = `device-${(count += 1)}@example.org`;
    await world.person(email);
    await signIn(email, FIREFOX);
    await world.sql`alter table work_tasks add constraint full_up check (name <> 'mail') not valid`;
    const refused = await signIn(email, SAFARI);
    await world.sql`alter table work_tasks drop constraint full_up`;
    expect([refused.status, refused.headers['set-cookie']]).toEqual([500, undefined]);
    expect((await signIn(email, SAFARI)).status).toBe(200);
    expect(await told(email)).toHaveLength(1);
  });
});

describe('the own account', () => {
  test('is shown to whoever is signed in here, and to nobody else', async () => {
    const { browser, email } = await signedIn();
    expect((await browser.get('/v1/account')).json).toEqual({
      email,
      email_verified: true,
      display_name: email.split('@')[0],
      mfa_enrolled: false,
      recovery_codes_left: 0,
      has_password: true,
      recovery: null,
    });
    for (const path of ['/v1/account', '/v1/account/sessions']) {
      const answer = await world.browser().get(path);
      expect([path, answer.status, answer.json['code']]).toEqual([path, 401, 'session_required']);
    }
  });

  test('IDN-016 [H-07] is changed from its own page only', async () => {
    const { browser } = await signedIn();
    browser.origin = 'https://console.ops.sys.localhost:8443';
    for (const [path, body] of [
      ['/v1/account/sessions/revoke-others', {}],
      ['/v1/account/sessions/x/revoke', {}],
      ['/v1/account/password', { current_password: CHOSEN, password: 'a fresh new sentence' }],
      ['/v1/account/mfa/begin', { password: CHOSEN }],
      ['/v1/account/mfa/confirm', { code: '123456' }],
      ['/v1/account/mfa/remove', { password: CHOSEN }],
      ['/v1/account/mfa/recovery-codes', { password: CHOSEN }],
      ['/v1/sign-up', { email: 'a@example.org', password: CHOSEN, oauth: {} }],
      ['/v1/email/verify', { token: 'x' }],
      ['/v1/email/verify-request', { email: 'a@example.org' }],
      ['/v1/password/reset-request', { email: 'a@example.org' }],
      ['/v1/password/reset', { token: 'x', password: CHOSEN }],
      ['/v1/mfa/verify', { challenge_id: 'x', method: 'totp', code: '1' }],
    ] as const) {
      const answer = await browser.post(path, body);
      expect([path, answer.status, answer.json['code']]).toEqual([path, 403, 'bad_origin']);
    }
  });

  test('lists where one is signed in, this device marked, and ends one of them with its event in the same transaction', async () => {
    const here = await signedIn();
    const there = await signedIn(here.email);
    await world.sql`update session_devices set device = 'Firefox · Linux' where sid = ${there.sid}`;
    const rows = await list(here);
    expect(rows.map(({ session_id, current }) => [session_id, current]).sort()).toEqual(
      [
        [here.sid, true],
        [there.sid, false],
      ].sort(),
    );
    expect(rows.find(({ session_id }) => session_id === there.sid)).toMatchObject({
      device: 'Firefox · Linux',
      created_at: expect.any(String),
      last_seen_at: expect.any(String),
    });
    expect((await here.browser.post(`/v1/account/sessions/${there.sid}/revoke`, {})).status).toBe(204);
    expect((await world.refresh(there.tokens.refresh_token)).json['error']).toBe('invalid_grant');
    expect(await ended(there.sid)).toMatchObject({ user_id: here.userId, reason: 'sign_out' });
    expect((await list(here)).map(({ session_id }) => session_id)).toEqual([here.sid]);
    await world.sql`alter table outbox add constraint full_up check (event_type <> 'platform:auth:session:revoked') not valid`;
    const third = await signedIn(here.email);
    expect((await here.browser.post(`/v1/account/sessions/${third.sid}/revoke`, {})).status).toBe(500);
    await world.sql`alter table outbox drop constraint full_up`;
    expect((await list(here)).map(({ session_id }) => session_id)).toContain(third.sid);
  });

  test("somebody else's session is not found", async () => {
    const [mine, theirs] = [await signedIn(), await signedIn()];
    const answer = await mine.browser.post(`/v1/account/sessions/${theirs.sid}/revoke`, {});
    expect([answer.status, answer.json['code']]).toEqual([404, 'session_not_found']);
    expect((await list(theirs)).length).toBe(1);
  });

  test('a device whose sign-in has expired is still listed while its tokens live, and can be ended', async () => {
    const here = await signedIn();
    const there = await signedIn(here.email);
    await world.sql`delete from oidc_state where model = 'Session' and uid = ${there.sid}`;
    expect((await list(here)).map(({ session_id }) => session_id)).toContain(there.sid);
    await here.browser.post(`/v1/account/sessions/${there.sid}/revoke`, {});
    expect((await world.refresh(there.tokens.refresh_token)).json['error']).toBe('invalid_grant');
  });

  test('every other device is signed out at once, this one stays', async () => {
    const here = await signedIn();
    const others = [await signedIn(here.email), await signedIn(here.email)];
    expect((await here.browser.post('/v1/account/sessions/revoke-others', {})).json).toEqual({ ended: 2 });
    for (const { tokens } of others) expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await list(here)).map(({ session_id }) => session_id)).toEqual([here.sid]);
    expect((await world.refresh(here.tokens.refresh_token)).status).toBe(200);
  });

  test('the password changes with the old one, ends what was signed in, and goes on in a new session', async () => {
    const here = await signedIn();
    await AuthenticatorApp.enrol(world, here.browser, CHOSEN);
    const there = await world.sql<
      { sid: string }[]
    >`select uid as sid from oidc_state where model = 'Session' and account_id = ${here.userId}`;
    const change = (current_password: string, password: string) =>
      here.browser.post('/v1/account/password', { current_password, password });
    expect((await change('not the password', 'a fresh new sentence')).json['code']).toBe('wrong_password');
    expect((await change(CHOSEN, 'passwordpassword')).json['code']).toBe('weak_password');
    expect((await change(CHOSEN, CHOSEN)).json['code']).toBe('weak_password');
    expect((await change(CHOSEN, 'a fresh new sentence')).json).toMatchObject({
      status: 'ok',
      next: '/account',
      session_token_id: expect.any(String),
    });
    expect((await world.refresh(here.tokens.refresh_token)).json['error']).toBe('invalid_grant');
    for (const { sid } of there) expect(await ended(sid)).toMatchObject({ reason: 'password_change' });
    // It was begun with the password alone, and the new one says no more.
    const [opened] = await world.sql<
      { amr: string[] }[]
    >`select payload -> 'amr' as amr from oidc_state where model = 'Session' and account_id = ${here.userId}`;
    expect(opened?.amr).toEqual(['pwd']);
    const [only, ...more] = await list(here);
    expect([only?.current, more]).toEqual([true, []]);
    await world.audited('auth.password.changed', here.userId);
    expect((await world.mails(here.email)).map(({ subject }) => subject)).toContain('Your password was changed');
  });

  test('of eight changes at once with the old password, one is made', async () => {
    const { browser } = await signedIn();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        browser.post('/v1/account/password', { current_password: CHOSEN, password: `a fresh new sentence ${index}` }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  test('the password is asked for again no more often than at sign-in', async () => {
    const { browser, userId } = await signedIn();
    await world.forgetTries();
    for (let run = 0; run < 10; run++) await browser.post('/v1/account/mfa/begin', { password: 'not the password' });
    expect((await browser.post('/v1/account/mfa/begin', { password: CHOSEN })).status).toBe(429);
    await world.audited('auth.sign_in.locked', userId);
  });

  test('a sign-in that the account page asked for returns there, and nowhere else', async () => {
    const email = `back-${(count += 1)}@example.org`;
    await world.person(email);
    const answer = await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: { return_to: '/account/mfa' } });
    expect(answer.json['next']).toBe('/account/mfa');
    const elsewhere = await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: { return_to: 'https://evil.example' } });
    expect(elsewhere.status).toBe(400);
  });

  test.each([
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36', 'Chrome · Linux'],
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox · Windows'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
      'Safari · iOS',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0',
      'Edge · macOS',
    ],
    ['curl/8.5.0', ''],
    [undefined, ''],
  ])('a device is known by a few words: %s', (header, words) => {
    expect(deviceOf(header)).toBe(words);
  });
});
