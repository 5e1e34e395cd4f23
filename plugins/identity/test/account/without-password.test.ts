import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import type { Browser } from '../fixtures/browser.ts';
import { PasskeyDevice } from '../fixtures/passkey.ts';
import { CLIENT, SECRET, Upstream } from '../fixtures/upstream.ts';
import { Wallet } from '../fixtures/wallet.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.keyless.localhost';
let world: World;
let upstream: Upstream;
let envId: string;
let count = 0;
beforeAll(async () => {
  world = await World.start();
  envId = await world.environment(HOST);
  const admin = world.host.by(as.userIn(envId, 'auth:realms:admin', 'auth:users:admin', 'auth:users:read'));
  await admin.putSignInSettings({ body: { ...(await admin.signInSettings()), passkeys: true, wallet_sign_in: 'sign_up' } });
  upstream = await Upstream.open([`https://${HOST}:8443/sso`]);
  await admin.putUpstream({
    body: { issuer: upstream.issuer, client_id: CLIENT, client_secret: SECRET, label: 'Guild', allow_sign_up: true },
  });
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
beforeEach(() => world.forgetTries());

const code = ({ status, json }: { status: number; json: Record<string, unknown> }) => [status, json['code']];
const bySso = async (browser: Browser, oauth: object = { return_to: '/account' }, bend: (asked: URL) => void = () => undefined) => {
  const { json } = await browser.post('/v1/sso/begin', { oauth });
  const address = new URL(String(json['redirect_to']));
  bend(address);
  const back = await upstream.visit(address.href);
  await browser.post('/v1/sso/finish', Object.fromEntries(back.searchParams));
  return address.searchParams;
};
const byWallet = async (wallet: Wallet, browser = world.browser(HOST)) => {
  const { json } = await browser.post('/v1/wallet/challenge', { address: wallet.address });
  await browser.post('/v1/wallet/verify', { challenge_id: json['challenge_id'], signature: wallet.sign(String(json['message'])) });
  return browser;
};
const visitor = async (oauth?: object) => {
  upstream.person = { sub: `keyless-${(count += 1)}`, email: `keyless-${count}@example.org`, email_verified: true };
  const browser = world.browser(HOST);
  const asked = await bySso(browser, oauth);
  return { browser, asked };
};
const olderBy = (seconds: number) => world.sql`update session_devices set proven_at = proven_at - make_interval(secs => ${seconds})`;

describe('an account without a password', () => {
  test('that the provider has just let in adds a passkey and an authenticator app; five minutes later it signs in again first', async () => {
    const { browser, asked } = await visitor();
    expect([asked.get('prompt'), asked.get('max_age')]).toEqual(['login', '0']);
    expect((await browser.get('/v1/account')).json['has_password']).toBe(false);
    const passkey = new PasskeyDevice(HOST);
    expect((await passkey.enrol(browser, undefined)).status).toBe(200);
    await olderBy(301);
    expect(code(await browser.post('/v1/account/passkeys/begin', {}))).toEqual([403, 'sign_in_again']);
    expect(code(await browser.post('/v1/account/mfa/begin', {}))).toEqual([403, 'sign_in_again']);
    // Whatever is typed is no password of this account.
    expect(code(await browser.post('/v1/account/mfa/begin', { password: CHOSEN }))).toEqual([403, 'sign_in_again']);
    await bySso(browser);
    const app = await AuthenticatorApp.enrol(world, browser);
    const again = world.browser(HOST);
    expect((await passkey.signIn(again, { return_to: '/account' })).json['status']).toBe('ok');
    expect((await again.post('/v1/account/mfa/recovery-codes', {})).status).toBe(200);
    await olderBy(301);
    expect(code(await again.post('/v1/account/mfa/remove', {}))).toEqual([403, 'sign_in_again']);
    expect(app.recoveryCodes.length).toBeGreaterThan(5);
  });

  test('whose provider does not say when it last asked, or says an hour ago, has not signed in a moment ago', async () => {
    const { browser, asked } = await visitor({});
    expect([asked.get('prompt'), asked.get('max_age')]).toEqual([null, null]);
    expect((await browser.get('/v1/account')).status).toBe(200);
    expect(code(await browser.post('/v1/account/passkeys/begin', {}))).toEqual([403, 'sign_in_again']);
    upstream.askedAt = Math.floor(Date.now() / 1_000) - 3_600;
    // Whoever sits at the browser writes the address as they like.
    await bySso(browser, undefined, address => {
      address.searchParams.delete('prompt');
      address.searchParams.set('max_age', '7200');
    });
    upstream.askedAt = undefined;
    expect(code(await browser.post('/v1/account/passkeys/begin', {}))).toEqual([403, 'sign_in_again']);
    await bySso(browser);
    expect((await browser.post('/v1/account/passkeys/begin', {})).status).toBe(200);
    await world.sql`update session_devices set proven_at = null`;
    expect(code(await browser.post('/v1/account/passkeys/begin', {}))).toEqual([403, 'sign_in_again']);
  });

  test('that a wallet opened adds a passkey, and keeps the last thing it signs in with', async () => {
    const wallet = new Wallet();
    const browser = await byWallet(wallet);
    const passkey = new PasskeyDevice(HOST);
    const unlink = () => browser.post(`/v1/account/wallets/${wallet.address}/remove`, {});
    expect(code(await unlink())).toEqual([409, 'last_means']);
    expect((await passkey.enrol(browser, undefined)).status).toBe(200);
    expect((await unlink()).status).toBe(204);
    const { items } = (await browser.get('/v1/account/passkeys')).json as { items: { passkey_id: string }[] };
    expect(code(await browser.post(`/v1/account/passkeys/${items[0]?.passkey_id}/remove`, {}))).toEqual([409, 'last_means']);
    const anew = world.browser(HOST);
    expect((await passkey.signIn(anew)).json['status']).toBe('ok');
    const other = new Wallet();
    const { json } = await anew.post('/v1/account/wallets/challenge', { address: other.address });
    expect(
      (await anew.post('/v1/account/wallets', { challenge_id: json['challenge_id'], signature: other.sign(String(json['message'])) }))
        .status,
    ).toBe(200);
    expect((await anew.post(`/v1/account/passkeys/${items[0]?.passkey_id}/remove`, {})).status).toBe(204);
  });

  test('[H-13] that gives up its two wallets at once, twelve times, keeps one', async () => {
    const [first, second] = [new Wallet(), new Wallet()];
    const browser = await byWallet(first);
    const { json } = await browser.post('/v1/account/wallets/challenge', { address: second.address });
    await browser.post('/v1/account/wallets', { challenge_id: json['challenge_id'], signature: second.sign(String(json['message'])) });
    await Promise.all(
      Array.from({ length: 12 }, (_, index) => browser.post(`/v1/account/wallets/${(index % 2 ? first : second).address}/remove`, {})),
    );
    expect(((await browser.get('/v1/account/wallets')).json['items'] as object[]).length).toBe(1);
  });

  test('has none to change, and is told where it gets one', async () => {
    const { browser } = await visitor();
    const refused = await browser.post('/v1/account/password', { current_password: 'x', password: 'a sentence nobody has guessed' });
    expect([...code(refused), refused.json['detail']]).toEqual([403, 'wrong_password', expect.stringContaining('resets')]);
  });
});

test('an account with a password shows it, however it has signed in', async () => {
  const email = `both-${(count += 1)}@example.org`;
  await world.person(email, { envId });
  upstream.person = { sub: email, email, email_verified: true };
  const browser = world.browser(HOST);
  await bySso(browser);
  expect((await browser.get('/v1/account')).json).toMatchObject({ email, has_password: true });
  expect(code(await browser.post('/v1/account/passkeys/begin', {}))).toEqual([403, 'wrong_password']);
  expect((await new PasskeyDevice(HOST).enrol(browser, CHOSEN)).status).toBe(200);
});
