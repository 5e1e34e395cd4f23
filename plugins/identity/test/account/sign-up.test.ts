import { randomBytes } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
const fresh = () => `new-${(count += 1)}@example.org`;
beforeAll(async () => {
  world = await World.start();
  world.apps.set('console', {
    auth_env: SYSTEM.envId,
    auth_mode: 'self_service',
    auth_group: 'platform:console:users',
    allow_signup: true,
  });
  world.apps.set('open-app', { auth_env: SYSTEM.envId, auth_mode: 'open', auth_group: null, allow_signup: true });
  world.apps.set('closed-app', { auth_env: SYSTEM.envId, auth_mode: 'open', auth_group: null, allow_signup: false });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const signUp = (email: string, changes: Record<string, unknown> = {}, oauth: Record<string, string> = { client_id: 'console' }) =>
  world.browser().post('/v1/sign-up', { email, password: CHOSEN, oauth, ...changes });
const users = async (email: string) => [
  ...(await world.sql<
    { user_id: string; email_verified: boolean; display_name: string | null }[]
  >`select user_id, email_verified, display_name from users where email_ci = ${email.toLowerCase()}`),
];
const said = ({ status, json: { correlation_id: _, instance: __, ...json }, headers }: Awaited<ReturnType<typeof signUp>>) => ({
  status,
  json,
  cookie: headers['set-cookie'],
});

describe('signing up', () => {
  test('IDN-005 SGN-041 opens an account that signs in after the address is confirmed, and completes no authorization itself', async () => {
    const email = fresh();
    const browser = world.browser();
    const { page, oauth, state } = await world.begin(browser, { screen_hint: 'signup' });
    expect(page.location).toMatch(/^\/sign-up\?/);
    const answer = await browser.post('/v1/sign-up', { email, password: CHOSEN, display_name: '  Grace\n Hopper ', oauth });
    // No session, no code: only the next page, with the whole context.
    expect(said(answer)).toEqual({
      status: 200,
      json: { status: 'verification_required', next: `/verify-email?${new URLSearchParams(oauth)}` },
      cookie: undefined,
    });
    const token = await world.token(email);
    expect(await users(email)).toMatchObject([{ email_verified: false, display_name: 'Grace Hopper' }]);
    const early = await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth });
    expect(said(early)).toEqual({
      status: 200,
      json: { status: 'verification_required', next: `/verify-email?${new URLSearchParams(oauth)}` },
      cookie: undefined,
    });
    expect((await browser.post('/v1/email/verify', { token })).status).toBe(200);
    const signedIn = await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth });
    // The browser is sent back through the protocol, which mints the code.
    expect(String(signedIn.json['next'])).toMatch(/^\/oauth\/authorize\//);
    const landed = await browser.get(String(signedIn.json['next']));
    const redirect = new URL(landed.location);
    expect([redirect.searchParams.get('state'), redirect.searchParams.has('code')]).toEqual([state, true]);
  });

  test('joins the group of the application, with the roles that signing up gives, and is told about by event and audit', async () => {
    const realm = { targetEnvId: SYSTEM.envId };
    await world.registry.putRole({ params: { role: 'app:reader' }, body: { scopes: ['lending:loans:read'] }, ...realm });
    await world.registry.putSignUpRole({ params: { group: 'platform:console:users', role: 'app:reader' }, ...realm });
    const email = fresh();
    await signUp(email);
    await world.answered();
    const [person] = await users(email);
    const userId = person?.user_id as string;
    const { groups } = await world.registry.userGroups({ params: { user_id: userId } });
    expect(groups).toEqual([{ name: 'platform:console:users', env_id: SYSTEM.envId }]);
    expect((await world.registry.userScopes({ params: { user_id: userId }, query: { env_id: SYSTEM.envId } })).scopes).toContain(
      'lending:loans:read',
    );
    await world.audited('auth.user.signed_up', userId);
    const told = () =>
      world.host.bus.find(({ event_type, payload }) => event_type === 'platform:auth:user:created' && payload['user_id'] === userId)
        ?.payload;
    while (!told()) await new Promise(resolve => setImmediate(resolve));
    expect(told()).toEqual({ user_id: userId, env_id: SYSTEM.envId });
    await world.registry.deleteSignUpRole({ params: { group: 'platform:console:users', role: 'app:reader' }, ...realm });
    const next = fresh();
    await signUp(next, {}, { client_id: 'open-app' });
    await world.answered();
    const [other] = await users(next);
    expect((await world.registry.userGroups({ params: { user_id: other?.user_id as string } })).groups).toEqual([]);
  });

  test('a sign-up role needs its group and its role', async () => {
    const put = (group: string, role: string) => world.registry.putSignUpRole({ params: { group, role }, targetEnvId: SYSTEM.envId });
    await expect(put('nobody', 'app:reader')).rejects.toMatchObject({ code: 'group_not_found' });
    await expect(put('platform:console:users', 'nothing')).rejects.toMatchObject({ code: 'role_not_found' });
  });

  test('the answer is the same where there is an account; its owner learns by mail, and nothing of it changes', async () => {
    const email = fresh();
    const userId = await world.person(email, { password: 'the password of before' });
    const [known, unknown] = [await signUp(email.toUpperCase()), await signUp(fresh())];
    expect(said(known)).toEqual(said(unknown));
    expect((await world.mails(email)).map(({ subject }) => subject)).toEqual(['You already have an account']);
    expect((await users(email)).map(({ user_id }) => user_id)).toEqual([userId]);
    expect((await world.browser().post('/v1/sign-in', { email, password: 'the password of before', oauth: {} })).json['status']).toBe('ok');
    expect((await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} })).status).toBe(401);
  });

  test('an address that is signed up with twice before it is confirmed keeps neither password: who reads its mail chooses one', async () => {
    const email = fresh();
    await signUp(email, { password: 'a stranger was here before you' });
    const early = await world.token(email);
    await signUp(email);
    const asked = (await world.mails(email)).at(-1);
    expect(asked?.subject).toBe('Choose a password for your account');
    const attempt = async (password: string) => (await world.browser().post('/v1/sign-in', { email, password, oauth: {} })).status;
    // The link of the first mail opens nothing any more.
    expect((await world.browser().post('/v1/email/verify', { token: early })).json['code']).toBe('token_expired');
    expect([await attempt('a stranger was here before you'), await attempt(CHOSEN)]).toEqual([401, 401]);
    expect(
      (await world.browser().post('/v1/password/reset', { token: await world.token(email), password: 'what the owner has chosen' })).status,
    ).toBe(200);
    expect([await attempt('a stranger was here before you'), await attempt(CHOSEN), await attempt('what the owner has chosen')]).toEqual([
      401, 401, 200,
    ]);
    const [person] = await users(email);
    await world.audited('auth.user.sign_up_contested', person?.user_id as string);
  });

  test('who has signed in before the realm asked for a confirmed address keeps the password, whoever signs up with it', async () => {
    const email = fresh();
    const userId = await world.person(email);
    await world.sql`update users set email_verified = false, last_sign_in_at = now() where user_id = ${userId}`;
    await signUp(email, { password: 'a stranger would have it else' });
    expect((await world.mails(email)).map(({ subject }) => subject)).toEqual(['Confirm your e-mail address']);
    await world.browser().post('/v1/email/verify', { token: await world.token(email) });
    const attempt = async (password: string) => (await world.browser().post('/v1/sign-in', { email, password, oauth: {} })).status;
    expect([await attempt('a stranger would have it else'), await attempt(CHOSEN)]).toEqual([401, 200]);
  });

  test('of eight at once with one address, one account comes', async () => {
    const email = fresh();
    await Promise.all(Array.from({ length: 8 }, () => signUp(email)));
    await world.answered();
    expect(await users(email)).toHaveLength(1);
  });

  test.each([
    ['short', 'eleven char', 'Use at least'],
    ['leaked', 'qwerty123456', 'guessed first'],
    ['the own name', 'rosalind.franklin.1920', 'e-mail address'],
  ])('a password that is %s is refused at its field, and no account comes', async (_, password, reason) => {
    const answer = await signUp('rosalind@example.org', { password });
    expect([answer.status, answer.json['code']]).toEqual([400, 'weak_password']);
    expect(answer.json['errors']).toMatchObject([{ pointer: '/password', message: expect.stringContaining(reason) }]);
    await world.answered();
    expect(await users('rosalind@example.org')).toEqual([]);
  });

  test('is open only where the application says so', async () => {
    for (const oauth of [{}, { client_id: 'closed-app' }, { client_id: 'nobody' }] as Record<string, string>[]) {
      const answer = await signUp(fresh(), {}, oauth);
      expect([oauth, answer.status, answer.json['code']]).toEqual([oauth, 403, 'signup_disabled']);
    }
    world.apps.set('tenant-app', {
      auth_env: '018f0000-0000-7000-8000-00000000e001',
      auth_mode: 'open',
      auth_group: null,
      allow_signup: true,
    });
    expect((await signUp(fresh(), {}, { client_id: 'tenant-app' })).json['code']).toBe('signup_disabled');
  });

  test('the page offers it only where it is open', async () => {
    const link = async (query: string) => (await world.browser().get(`/sign-in${query}`)).text.includes('href="/sign-up');
    expect([await link('?client_id=console'), await link('?client_id=closed-app'), await link('')]).toEqual([true, false, false]);
    const form = async (query: string) => (await world.browser().get(`/sign-up${query}`)).text.includes('data-form');
    expect([await form('?client_id=console'), await form('?client_id=closed-app')]).toEqual([true, false]);
  });

  test('without the registry nobody signs up, pages show, and it is said that later may help', async () => {
    world.apps.away = true;
    const answer = await signUp(fresh(), {}, { client_id: 'never-asked-before' });
    expect([answer.status, answer.json['code'], answer.headers['retry-after']]).toEqual([503, 'registry_away', '5']);
    expect((await world.browser().get('/sign-in?client_id=never-asked-either')).status).toBe(200);
    world.apps.away = false;
    await world.host.clock.advance('5s');
    expect((await world.browser().get('/sign-in?client_id=open-app')).text).toContain('href="/sign-up');
  });

  test('ten a minute for one address, then 429 with the time to wait', async () => {
    const email = fresh();
    const answers = [];
    for (let run = 0; run < 11; run++) answers.push(await signUp(email, { password: 'too short' }));
    expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 400), 429]);
    expect(Number(answers.at(-1)?.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('a request that a process left behind is answered later', async () => {
    const email = fresh();
    await world.sql`create function lose() returns trigger language plpgsql as $$ begin raise exception 'lost'; end $$`;
    await world.sql`create constraint trigger lose after insert on passwords deferrable initially deferred for each row execute function lose()`;
    await signUp(email);
    const tried = () => world.sql<object[]>`select 1 from work_tasks where name = 'answer' and state = 'waiting' and attempts = 1`;
    while ((await tried()).length === 0) await new Promise(resolve => setImmediate(resolve));
    expect(await users(email)).toEqual([]);
    await world.sql`drop trigger lose on passwords`;
    await world.host.clock.advance('10s');
    await world.answered();
    expect(await users(email)).toHaveLength(1);
  });
});

describe('somebody who was invited', () => {
  const invite = async (email = fresh(), open = true) => {
    const reference = randomBytes(32).toString('base64url');
    const grace = await world.person(fresh());
    world.invitations.set(reference, { org_name: 'Harbour & Sons', email, invited_by: grace, open });
    return {
      email,
      reference,
      inviter: (await world.sql<{ name: string }[]>`select display_name as name from users where user_id = ${grace}`)[0]?.name as string,
    };
  };
  const follow = async (reference: string) => {
    const browser = world.browser();
    const { page, oauth } = await world.begin(browser, { invitation: reference });
    return { browser, page, oauth, shown: await browser.get(page.location) };
  };

  test('F-51 without an account begins with one, on a page that says who invites where to', async () => {
    const { email, reference, inviter } = await invite();
    const { page, oauth, shown } = await follow(reference);
    expect(page.location).toMatch(/^\/sign-up\?/);
    expect(oauth['invitation']).toBe(reference);
    for (const text of ['Join Harbour &amp; Sons', `${inviter} invites you to join Harbour &amp; Sons.`, `value="${email}"`])
      expect(shown.text).toContain(text);
  });

  test('F-51 is a member with the click that proves the address, in one way, and is told so', async () => {
    const { email, reference } = await invite();
    const { browser, oauth } = await follow(reference);
    const answer = await browser.post('/v1/sign-up', { email, password: CHOSEN, oauth });
    expect([answer.status, answer.json['status']]).toEqual([200, 'verification_required']);
    const [mail] = await world.mails(email);
    const link = new URL(/https:\S+/.exec(mail?.body ?? '')?.[0] as string);
    expect([link.pathname, link.searchParams.get('invitation'), link.searchParams.get('client_id')]).toEqual([
      '/verify-email',
      reference,
      'console',
    ]);
    expect(world.invitations.get(reference)?.joined).toBeUndefined();
    // Another browser than the one that began: the mail is read on a telephone.
    const telephone = world.browser();
    const ready = await telephone.get(`${link.pathname}${link.search}`);
    expect(ready.text).toContain('you are a member of Harbour &amp; Sons');
    const verified = await telephone.post('/v1/email/verify', { token: await world.token(email) });
    expect([verified.status, verified.json]).toEqual([200, { status: 'ok', joined: true, email }]);
    const [person] = await users(email);
    expect(world.invitations.get(reference)?.joined).toEqual({ user_id: person?.user_id, email });
    expect((await telephone.post('/v1/sign-in', { email, password: CHOSEN, oauth: {} })).json['status']).toBe('ok');
  });

  test('F-51 with an account signs in, and the page says who invites', async () => {
    const { reference, inviter, email } = await invite();
    await world.person(email);
    const { page, shown } = await follow(reference);
    expect(page.location).toMatch(/^\/sign-in\?/);
    expect(shown.text).toContain(`${inviter} invites you to join`);
  });

  test('F-51 opens an account where nobody else does, with the invited address and while the invitation stands', async () => {
    const closed = { client_id: 'closed-app' };
    const { email, reference } = await invite();
    expect((await signUp(email, {}, closed)).json['code']).toBe('signup_disabled');
    expect((await signUp(fresh(), {}, { ...closed, invitation: reference })).json['code']).toBe('signup_disabled');
    const over = await invite(fresh(), false);
    expect((await signUp(over.email, {}, { ...closed, invitation: over.reference })).json['code']).toBe('signup_disabled');
    expect((await signUp(email.toUpperCase(), {}, { ...closed, invitation: reference })).json['status']).toBe('verification_required');
    const unknown = await follow(randomBytes(32).toString('base64url'));
    expect(unknown.page.location).toMatch(/^\/sign-in\?/);
    expect((await world.push({ invitation: 'no reference' })).answer.json['error']).toBe('invalid_request');
  });

  test('F-51 whose joining fails has a proved address all the same', async () => {
    const { email, reference } = await invite();
    await signUp(email, {}, { client_id: 'console', invitation: reference });
    const token = await world.token(email);
    world.invitations.delete(reference);
    expect((await world.browser().post('/v1/email/verify', { token })).json).toEqual({ status: 'ok', joined: false, email });
    expect(await users(email)).toMatchObject([{ email_verified: true }]);
  });
});
