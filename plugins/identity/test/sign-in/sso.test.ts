import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { type Browser, FIREFOX } from '../fixtures/browser.ts';
import { CLIENT, SECRET, Upstream } from '../fixtures/upstream.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
let upstream: Upstream;
let tenant: string;
const HOST = 'auth.prod.guild.localhost';
const PLAIN = 'auth.prod.plain.localhost';
const REDIRECT = `https://${HOST}:8443/sso`;
beforeAll(async () => {
  world = await World.start();
  tenant = await world.environment(HOST);
  await world.environment(PLAIN);
  upstream = await Upstream.open([REDIRECT]);
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await world.forgetTries();
  await set();
});

const admin = () => world.host.by(as.userIn(tenant, 'auth:users:admin'));
const said = () => ({ issuer: upstream.issuer, client_id: CLIENT, client_secret: SECRET, label: 'Guild' });
const set = (more: object = {}) => admin().putUpstream({ targetEnvId: tenant, body: { ...said(), ...more } });
const begin = async (browser: Browser, oauth: object = {}) => String((await browser.post('/v1/sso/begin', { oauth })).json['redirect_to']);
const answerOf = async (browser: Browser, oauth: object = {}) =>
  Object.fromEntries((await upstream.visit(await begin(browser, oauth))).searchParams);
const finish = (browser: Browser, body: object) => browser.post('/v1/sso/finish', body);
const signIn = async (browser = world.browser(HOST), oauth: object = {}) => finish(browser, await answerOf(browser, oauth));
const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];

describe('single sign-on', () => {
  test('SGN-022 is a stub that says so until an environment sets up its provider, which its administrators do alone', async () => {
    expect((await world.browser(PLAIN).get('/sign-in')).text).toMatch(/data-sso disabled/);
    expect(code(await world.browser(PLAIN).post('/v1/sso/begin', { oauth: {} }))).toEqual([404, 'sso_off']);
    await expect(
      world.host.by(as.userIn(tenant, 'auth:users:read')).putUpstream({ targetEnvId: tenant, body: said() }),
    ).rejects.toMatchObject({ status: 403 });
    const kept = await set();
    expect(kept).toEqual({
      issuer: upstream.issuer,
      client_id: CLIENT,
      label: 'Guild',
      allow_sign_up: false,
      redirect_uri: REDIRECT,
      updated_at: expect.any(String),
    });
    expect(await admin().getUpstream({ targetEnvId: tenant })).toEqual(kept);
    expect((await world.browser(HOST).get('/sign-in')).text).toMatch(/data-sso data-sso-on disabled>Sign in with Guild</);
    const rows = await world.sql<object[]>`select * from upstream_providers`;
    expect(JSON.stringify(rows)).not.toContain(SECRET);
    expect(JSON.stringify(world.host.audits)).not.toContain(SECRET);
    await world.audited('auth.sso.configured', tenant);
    await admin().deleteUpstream({ targetEnvId: tenant });
    expect(code(await world.browser(HOST).post('/v1/sso/begin', { oauth: {} }))).toEqual([404, 'sso_off']);
    await expect(admin().getUpstream({ targetEnvId: tenant })).rejects.toMatchObject({ code: 'sso_off' });
  });

  test('a provider that does not answer in its own name is not kept', async () => {
    await expect(set({ issuer: `${upstream.issuer}/other` })).rejects.toMatchObject({ code: 'sso_unavailable' });
    await expect(set({ issuer: upstream.issuer.replace('127.0.0.1', 'localhost') })).rejects.toMatchObject({ code: 'sso_unavailable' });
    await expect(set({ issuer: 'http://127.0.0.1:9' })).rejects.toMatchObject({ code: 'sso_unavailable' });
  });

  test('signs in whom the provider names, by an address both sides confirmed, and knows her by her subject from then on', async () => {
    const userId = await world.person('joan@example.org', { envId: tenant });
    upstream.person = { sub: 'joan-1', email: 'Joan@example.org', email_verified: true };
    const browser = world.browser(HOST);
    const url = new URL(await begin(browser, { client_id: 'console', ui_locales: 'de' }));
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      scope: 'openid email profile',
      redirect_uri: REDIRECT,
      ui_locales: 'de',
    });
    const answer = await signIn(browser, { return_to: '/account' });
    expect(answer.json).toMatchObject({ status: 'ok', next: '/account' });
    expect((await browser.get('/v1/account')).json).toMatchObject({ email: 'joan@example.org' });
    await world.audited('auth.sso.linked', userId);
    // Her address changes there; she is who she was.
    upstream.person = { sub: 'joan-1', email: 'other@example.org', email_verified: true };
    const later = world.browser(HOST).as(FIREFOX);
    expect((await signIn(later)).json['status']).toBe('ok');
    expect((await world.mails('joan@example.org')).map(({ subject }) => subject)).toEqual(['A sign-in from a new device']);
    expect((await later.get('/v1/account')).json).toMatchObject({ email: 'joan@example.org' });
  });

  test('claims that stand in the identity token serve as well', async () => {
    await using other = await Upstream.open([REDIRECT], { inIdToken: true });
    await set({ issuer: other.issuer });
    await world.person('ida@example.org', { envId: tenant });
    other.person = { sub: 'ida-1', email: 'ida@example.org', email_verified: true };
    const browser = world.browser(HOST);
    const back = await other.visit(await begin(browser));
    expect((await finish(browser, Object.fromEntries(back.searchParams))).json['status']).toBe('ok');
  });

  test('a second factor that is set up here is still asked for', async () => {
    await world.person('kay@example.org', { envId: tenant });
    const own = world.browser(HOST);
    await own.post('/v1/sign-in', { email: 'kay@example.org', password: CHOSEN, oauth: {} });
    await AuthenticatorApp.enrol(world, own, CHOSEN);
    upstream.person = { sub: 'kay-1', email: 'kay@example.org', email_verified: true };
    expect((await signIn()).json).toMatchObject({ status: 'mfa_required' });
  });

  test('nobody gets an account of somebody else, or a new one, that was not meant to', async () => {
    upstream.person = { sub: 'eve-1', email: 'eve@example.org', email_verified: true };
    expect(code(await signIn())).toEqual([403, 'sso_no_account']);
    await world.person('ada@example.org', { envId: tenant });
    // Not confirmed there.
    upstream.person = { sub: 'eve-2', email: 'ada@example.org', email_verified: false };
    expect(code(await signIn())).toEqual([403, 'sso_no_account']);
    upstream.person = { sub: 'eve-3' };
    expect(code(await signIn())).toEqual([403, 'sso_no_account']);
    // Not confirmed here: somebody may have opened it in her name.
    const early = await world.person('ann@example.org', { envId: tenant });
    await world.sql`update users set email_verified = false where user_id = ${early}`;
    upstream.person = { sub: 'ann-1', email: 'ann@example.org', email_verified: true };
    expect(code(await signIn())).toEqual([403, 'sso_no_account']);
    // Closed.
    const closed = await world.person('bob@example.org', { envId: tenant, status: 'disabled' });
    upstream.person = { sub: 'bob-1', email: 'bob@example.org', email_verified: true };
    expect(code(await signIn())).toEqual([401, 'sso_refused']);
    expect(await world.sql<object[]>`select 1 from users where env_id = ${tenant} and email_ci = 'eve@example.org'`).toEqual([]);
    expect(closed).toEqual(expect.any(String));
  });

  test('where it is allowed a new account is opened, confirmed, without a password', async () => {
    await set({ allow_sign_up: true });
    upstream.person = { sub: 'new-1', email: 'new@example.org', email_verified: true, name: ' New Person ' };
    const browser = world.browser(HOST);
    expect((await signIn(browser)).json['status']).toBe('ok');
    expect((await browser.get('/v1/account')).json).toMatchObject({
      email: 'new@example.org',
      email_verified: true,
      display_name: 'New Person',
    });
    const [row] = await world.sql<
      { user_id: string }[]
    >`select user_id from users where env_id = ${tenant} and email_ci = 'new@example.org'`;
    const userId = row?.user_id as string;
    expect(await world.host.events('platform:auth:user:created', 1, ({ payload }) => payload['user_id'] === userId)).toHaveLength(1);
    expect(code(await world.browser(HOST).post('/v1/sign-in', { email: 'new@example.org', password: CHOSEN, oauth: {} }))).toEqual([
      401,
      'invalid_credentials',
    ]);
    await world.audited('auth.user.signed_up', userId);
  });

  test('[H-13] an answer counts once: of twelve at the same time one signs in', async () => {
    await world.person('liz@example.org', { envId: tenant });
    upstream.person = { sub: 'liz-1', email: 'liz@example.org', email_verified: true };
    const browser = world.browser(HOST);
    const answer = await answerOf(browser);
    const done = await Promise.all(Array.from({ length: 12 }, () => finish(browser, answer)));
    expect(done.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
  });

  test('an answer is taken from the browser that began, with its state, from this provider, and only from the page', async () => {
    await world.person('mia@example.org', { envId: tenant });
    upstream.person = { sub: 'mia-1', email: 'mia@example.org', email_verified: true };
    const browser = world.browser(HOST);
    expect(code(await finish(world.browser(HOST), await answerOf(browser)))).toEqual([410, 'token_expired']);
    expect(code(await finish(browser, { ...(await answerOf(browser)), state: 'another' }))).toEqual([410, 'token_expired']);
    // RFC 9207: the provider says that it names itself, so it has to.
    const { iss, ...nameless } = await answerOf(browser);
    expect(iss).toBe(upstream.issuer);
    expect(code(await finish(browser, nameless))).toEqual([401, 'sso_refused']);
    expect(code(await finish(browser, { ...(await answerOf(browser)), iss: 'https://evil.example' }))).toEqual([401, 'sso_refused']);
    expect(code(await finish(browser, { ...(await answerOf(browser)), code: 'another' }))).toEqual([401, 'sso_refused']);
    expect(code(await finish(browser, { ...(await answerOf(browser)), error: 'access_denied' }))).toEqual([401, 'sso_refused']);
    const good = await answerOf(browser);
    browser.origin = 'https://evil.example';
    expect(code(await finish(browser, good))).toEqual([403, 'bad_origin']);
    browser.origin = `https://${HOST}:8443`;
    expect((await finish(browser, good)).json['status']).toBe('ok');
  });
});
