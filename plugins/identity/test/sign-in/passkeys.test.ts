import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { type Browser, FIREFOX } from '../fixtures/browser.ts';
import { PasskeyDevice } from '../fixtures/passkey.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
const OFF = 'auth.prod.paper.localhost';
const ON = 'auth.prod.keys.localhost';
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_PASSKEYS: 'true' } });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const signedIn = async (host = world.authHost, envId?: string) => {
  const email = `key-${(count += 1)}@example.org`;
  const userId = await world.person(email, envId ? { envId } : {});
  const browser = world.browser(host);
  const answer = await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth: {} });
  expect(answer.status).toBe(200);
  return { email, userId, browser };
};
const owner = async () => {
  const person = await signedIn();
  const device = new PasskeyDevice(world.authHost);
  const added = await device.enrol(person.browser, CHOSEN);
  expect([added.status, added.text]).toEqual([200, expect.any(String)]);
  return { ...person, device, passkeyId: String(added.json['passkey_id']) };
};
const list = async (browser: Browser) => (await browser.get('/v1/account/passkeys')).json['items'] as Record<string, unknown>[];
const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];

describe('passkeys', () => {
  test('are set up at the own account with the password once more, told to their owner, and recorded', async () => {
    const { browser, email, userId } = await signedIn();
    const device = new PasskeyDevice(world.authHost);
    expect(code(await device.enrol(browser, 'not the password'))).toEqual([403, 'wrong_password']);
    expect(code(await device.enrol(world.browser(), CHOSEN))).toEqual([401, 'session_required']);
    const begun = await browser.post('/v1/account/passkeys/begin', { password: CHOSEN });
    expect(begun.json).toMatchObject({
      rp_id: world.authHost,
      user: { name: email },
      exclude: [],
      challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    const credential = device.attest(begun.json as { challenge: string; user: { id: string } });
    const kept = await browser.post('/v1/account/passkeys/finish', { credential, name: ' Laptop ' });
    expect(kept.json).toMatchObject({ name: 'Laptop', synced: false, suspended: false, last_used_at: null });
    expect((await browser.post('/v1/account/passkeys/begin', { password: CHOSEN })).json['exclude']).toEqual([credential.id]);
    expect((await world.mails(email)).map(({ subject }) => subject)).toEqual(['A passkey was added']);
    expect(await world.audited('auth.passkey.added', userId)).toMatchObject({ details: { passkey_id: kept.json['passkey_id'] } });
    const changed = await world.host.events('platform:auth:user:updated', 1, ({ payload }) => payload['user_id'] === userId);
    expect(changed).toHaveLength(1);
  });

  test('sign in to an application without a password, as both factors', async () => {
    const { browser, email, device, userId } = await owner();
    await AuthenticatorApp.enrol(world, browser, CHOSEN);
    const fresh = world.browser().as(FIREFOX);
    const { verifier, state, oauth } = await world.begin(fresh);
    const answer = await device.signIn(fresh, oauth);
    expect(answer.json).toMatchObject({ status: 'ok', session_token_id: expect.any(String) });
    const landed = new URL((await fresh.get(String(answer.json['next']))).location).searchParams;
    expect(landed.get('state')).toBe(state);
    expect((await world.mails(email)).at(-1)?.subject).toBe('A sign-in from a new device');
    const tokens = await world.redeem(landed.get('code') as string, verifier);
    expect(claimsOf(String(tokens.json['id_token']))).toMatchObject({ sub: userId });
    const told = () =>
      world.host.audits
        .filter(({ action, resource }) => action === 'auth.signed_in' && (resource as { id?: string }).id === userId)
        .map(({ details }) => (details as { amr: string[] }).amr);
    await expect.poll(told).toEqual([['pwd'], ['pop', 'user', 'mfa']]);
    expect((await list(browser))[0]).toMatchObject({ last_used_at: expect.stringMatching(/^\d{4}-/) });
    // The password alone still asks for the app.
    expect((await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} })).json['status']).toBe('mfa_required');
  });

  test('[H-13] a challenge is used once: of twelve at the same time one signs in', async () => {
    const { device } = await owner();
    const challenge = (await world.browser().post('/v1/passkey/challenge', {})).json as { challenge: string };
    const credential = device.assert(challenge);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => world.browser().post('/v1/passkey/sign-in', { credential, oauth: {} })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
  });

  test('[H-13] of twelve set-ups with one challenge one is kept', async () => {
    const { browser } = await signedIn();
    const begun = (await browser.post('/v1/account/passkeys/begin', { password: CHOSEN })).json as {
      challenge: string;
      user: { id: string };
    };
    const answers = await Promise.all(
      Array.from({ length: 12 }, () =>
        browser.post('/v1/account/passkeys/finish', { credential: new PasskeyDevice(world.authHost).attest(begun), name: 'One' }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
    expect(await list(browser)).toHaveLength(1);
  });

  test('are refused without user verification, from another origin, for another host, with somebody else’s handle, and when they are unknown', async () => {
    const { device, userId } = await owner();
    const other = await owner();
    const refused = async (change: (bad: PasskeyDevice) => void) => {
      const kept = { host: device.host, origin: device.origin, verifies: device.verifies, userHandle: device.userHandle };
      change(device);
      const answer = await device.signIn(world.browser());
      Object.assign(device, kept);
      return code(answer);
    };
    expect(await refused(bad => (bad.verifies = false))).toEqual([401, 'passkey_refused']);
    expect(await refused(bad => (bad.userHandle = other.device.userHandle))).toEqual([401, 'passkey_refused']);
    // The library looks at the origin after the challenge: it is used up all the same.
    expect(await refused(bad => (bad.origin = 'https://auth.evil.example'))).toEqual([401, 'passkey_refused']);
    expect(await refused(bad => (bad.host = 'auth.evil.example'))).toEqual([401, 'passkey_refused']);
    const stranger = new PasskeyDevice(world.authHost);
    stranger.userHandle = device.userHandle;
    expect(code(await stranger.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
    // A challenge of a set-up is none of a sign-in.
    const begun = (await other.browser.post('/v1/account/passkeys/begin', { password: CHOSEN })).json as { challenge: string };
    expect(code(await world.browser().post('/v1/passkey/sign-in', { credential: device.assert(begun), oauth: {} }))).toEqual([
      410,
      'token_expired',
    ]);
    await world.sql`update users set status = 'disabled' where user_id = ${userId}`;
    expect(code(await device.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
  });

  test('a counter that goes back tells of a copy: the passkey is stopped, its owner told, and it stays stopped', async () => {
    const { browser, email, device, userId, passkeyId } = await owner();
    device.counter = 7;
    expect((await device.signIn(world.browser())).status).toBe(200);
    device.counter = 8;
    expect((await device.signIn(world.browser())).status).toBe(200);
    device.counter = 8;
    expect(code(await device.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
    device.counter = 9;
    expect(code(await device.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
    expect((await list(browser))[0]).toMatchObject({ passkey_id: passkeyId, suspended: true });
    expect(await world.audited('auth.passkey.cloned', userId)).toMatchObject({ outcome: 'denied', details: { passkey_id: passkeyId } });
    expect((await world.mails(email)).filter(({ subject }) => subject === 'A passkey was stopped')).toHaveLength(1);
  });

  test('are listed, renamed and removed by their owner alone', async () => {
    const { browser, device, userId, passkeyId } = await owner();
    const other = await owner();
    for (const path of ['rename', 'remove']) {
      expect(
        code(await other.browser.post(`/v1/account/passkeys/${passkeyId}/${path}`, path === 'rename' ? { name: 'Mine' } : {})),
      ).toEqual([404, 'passkey_not_found']);
    }
    expect((await browser.post(`/v1/account/passkeys/${passkeyId}/rename`, { name: 'Phone' })).json).toMatchObject({ name: 'Phone' });
    expect((await list(browser)).map(({ name }) => name)).toEqual(['Phone']);
    browser.origin = 'https://evil.example';
    expect(code(await browser.post(`/v1/account/passkeys/${passkeyId}/remove`, {}))).toEqual([403, 'bad_origin']);
    browser.origin = world.issuer;
    expect((await browser.post(`/v1/account/passkeys/${passkeyId}/remove`, {})).status).toBe(204);
    expect(await list(browser)).toEqual([]);
    expect(await list(other.browser)).toHaveLength(1);
    expect(code(await device.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
    await world.audited('auth.passkey.removed', userId);
  });

  test('twenty are the most a person has', async () => {
    const { browser, userId } = await owner();
    await world.sql`
      insert into passkeys (passkey_id, env_id, user_id, credential_id, public_key, counter, transports, name, synced)
      select gen_random_uuid(), env_id, user_id, sha256(n::text::bytea), public_key, 0, transports, 'more', false
        from passkeys, generate_series(2, 20) n where user_id = ${userId}`;
    expect(code(await new PasskeyDevice(world.authHost).enrol(browser, CHOSEN))).toEqual([409, 'too_many_passkeys']);
  });

  test('are off until an environment turns them on, and then its own alone', async () => {
    const off = await world.environment(OFF);
    const person = await signedIn(OFF, off);
    const device = new PasskeyDevice(OFF);
    expect(code(await device.signIn(world.browser(OFF)))).toEqual([404, 'passkeys_off']);
    expect(code(await device.enrol(person.browser, CHOSEN))).toEqual([404, 'passkeys_off']);
    expect((await person.browser.get('/sign-in')).text).not.toContain('data-passkey');
    const on = await world.environment(ON);
    await world.registry.putRealm({ params: { env_id: on }, body: { host: ON, org_id: world.org, passkeys: true } });
    // What is not said stays as it was.
    expect(await world.registry.putRealm({ params: { env_id: on }, body: { host: ON, org_id: world.org } })).toMatchObject({
      passkeys: true,
    });
    const tenant = await signedIn(ON, on);
    const key = new PasskeyDevice(ON);
    expect((await key.enrol(tenant.browser, CHOSEN)).status).toBe(200);
    expect((await key.signIn(world.browser(ON))).json).toMatchObject({ status: 'ok' });
    expect((await tenant.browser.get('/sign-in')).text).toContain('data-passkey');
    // A key of one realm opens nothing in another.
    const abroad = new PasskeyDevice(world.authHost);
    Object.assign(abroad, { id: key.id, userHandle: key.userHandle });
    expect(code(await abroad.signIn(world.browser()))).toEqual([401, 'passkey_refused']);
  });
});
