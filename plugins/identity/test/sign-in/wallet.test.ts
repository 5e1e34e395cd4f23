import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Browser, FIREFOX } from '../fixtures/browser.ts';
import { Wallet } from '../fixtures/wallet.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.wallets.localhost';
let world: World;
let envId: string;
let count = 0;
const setting = (wallet_sign_in?: 'off' | 'linked' | 'sign_up') =>
  world.registry.putRealm({
    params: { env_id: envId },
    body: { host: HOST, org_id: world.org, ...(wallet_sign_in ? { wallet_sign_in } : {}) },
  });
beforeAll(async () => {
  world = await World.start();
  envId = await world.environment(HOST);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.forgetTries();
  await setting('linked');
});
const there = () => world.browser(HOST);
const challenge = (browser: Browser, address: string) => browser.post('/v1/wallet/challenge', { address });
const answered = async (browser: Browser, wallet: Wallet) => {
  const { json } = await challenge(browser, wallet.address);
  return { challenge_id: String(json['challenge_id']), signature: wallet.sign(String(json['message'])) };
};
const signIn = async (wallet: Wallet, browser = there()) => browser.post('/v1/wallet/verify', await answered(browser, wallet));
/** Somebody with a password, signed in at the account page. */
const visitor = async () => {
  const email = `wallet-${(count += 1)}@example.org`;
  const userId = await world.person(email, { envId });
  const browser = there();
  await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth: { return_to: '/account' } });
  return { email, userId, browser };
};
const link = async ({ browser }: { browser: Browser }, wallet: Wallet) => {
  const { json } = await browser.post('/v1/account/wallets/challenge', { address: wallet.address, password: CHOSEN });
  return browser.post('/v1/account/wallets', { challenge_id: json['challenge_id'], signature: wallet.sign(String(json['message'])) });
};

describe('a wallet', () => {
  test('IDN-005 that its owner has linked signs in, and goes on where the application waits', async () => {
    const [owner, wallet] = [await visitor(), new Wallet()];
    const linked = await link(owner, wallet);
    expect([linked.status, linked.json]).toEqual([200, { address: wallet.address, linked_at: expect.any(String) }]);
    expect((await owner.browser.get('/v1/account/wallets')).json).toMatchObject({ enabled: true, items: [{ address: wallet.address }] });
    const browser = there().as(FIREFOX);
    const asked = await browser.post('/v1/wallet/challenge', { address: wallet.address.toLowerCase(), oauth: { return_to: '/account' } });
    const answer = await browser.post('/v1/wallet/verify', {
      challenge_id: asked.json['challenge_id'],
      signature: wallet.sign(String(asked.json['message'])),
    });
    expect([answer.status, answer.json['status'], answer.json['next']]).toEqual([200, 'ok', '/account']);
    expect((await browser.get('/v1/account')).json['email']).toBe(owner.email);
    const [session] = await world.sql<
      { amr: string[] }[]
    >`select payload -> 'amr' as amr from oidc_state where model = 'Session' and account_id = ${owner.userId} order by created_at desc
      limit 1`;
    expect(session?.amr).toEqual(['swk']);
    await world.audited('auth.wallet.linked', owner.userId);
    expect((await world.mails(owner.email)).map(({ subject }) => subject)).toEqual([
      'A wallet was linked to your account',
      'A sign-in from a new device',
    ]);
    expect((await world.host.events('platform:auth:user:updated')).some(({ payload }) => payload['user_id'] === owner.userId)).toBe(true);
  });

  test('is asked to sign what EIP-4361 says: this host, this page, a chain, a fresh nonce, five minutes', async () => {
    const wallet = new Wallet();
    const [first, second] = [await challenge(there(), wallet.address), await challenge(there(), wallet.address)];
    const lines = String(first.json['message']).split('\n');
    const issued = lines[9]?.slice('Issued At: '.length) as string;
    expect(lines).toEqual([
      `${HOST}:8443 wants you to sign in with your Ethereum account:`,
      wallet.address,
      '',
      'Sign in with this wallet.',
      '',
      `URI: https://${HOST}:8443/wallet`,
      'Version: 1',
      'Chain ID: 1',
      expect.stringMatching(/^Nonce: [0-9a-f]{32}$/),
      `Issued At: ${issued}`,
      `Expiration Time: ${new Date(Date.parse(issued) + 300_000).toISOString()}`,
      `Request ID: ${first.json['challenge_id']}`,
    ]);
    expect(first.json['expires_at']).toBe(new Date(Date.parse(issued) + 300_000).toISOString());
    expect(String(second.json['message']).split('\n')[8]).not.toBe(lines[8]);
  });

  test('H-13 of twelve answers to one challenge at once, one signs in', async () => {
    const wallet = new Wallet();
    await link(await visitor(), wallet);
    const browser = there();
    const body = await answered(browser, wallet);
    const answers = await Promise.all(Array.from({ length: 12 }, () => there().post('/v1/wallet/verify', body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 410)]);
  });

  test('that signs something else, or too late, or for another, does not', async () => {
    const [owner, wallet, other] = [await visitor(), new Wallet(), new Wallet()];
    await link(owner, wallet);
    const browser = there();
    const { json } = await challenge(browser, wallet.address);
    const verify = (challenge_id: unknown, signature: string) => browser.post('/v1/wallet/verify', { challenge_id, signature });
    expect((await verify(json['challenge_id'], other.sign(String(json['message'])))).json['code']).toBe('wallet_refused');
    // A wrong answer has used it up.
    expect((await verify(json['challenge_id'], wallet.sign(String(json['message'])))).json['code']).toBe('token_expired');
    const late = await answered(browser, wallet);
    await world.host.clock.advance('5m');
    expect((await verify(late.challenge_id, late.signature)).status).toBe(410);
    // What was signed to be linked signs nobody in.
    const begun = (await owner.browser.post('/v1/account/wallets/challenge', { address: wallet.address, password: CHOSEN })).json;
    expect((await verify(begun['challenge_id'], wallet.sign(String(begun['message'])))).status).toBe(410);
    expect((await verify('no-id', late.signature)).status).toBe(410);
    expect((await verify(late.challenge_id, '0x12')).status).toBe(400);
    expect(
      (
        await challenge(
          browser,
          wallet.address.replace(/[a-fA-F](?=[0-9]*[a-zA-Z])/, letter =>
            letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
          ),
        )
      ).json['code'],
    ).toBe('wallet_address_invalid');
  });

  test('that nobody linked, or whose account is closed, signs nobody in, and the challenge does not say so', async () => {
    const [owner, wallet, stranger] = [await visitor(), new Wallet(), new Wallet()];
    await link(owner, wallet);
    expect((await signIn(stranger)).json['code']).toBe('wallet_unknown');
    await world.sql`update users set status = 'disabled' where user_id = ${owner.userId}`;
    expect((await signIn(wallet)).json['code']).toBe('wallet_unknown');
    const shapes = await Promise.all(
      [wallet, stranger].map(async each => Object.keys((await challenge(there(), each.address)).json).sort()),
    );
    expect(shapes[0]).toEqual(shapes[1]);
  });

  test('opens an account where the environment wants it, once, and never in the place of a person who removed it', async () => {
    await setting('sign_up');
    const wallet = new Wallet();
    const answers = await Promise.all(Array.from({ length: 6 }, () => signIn(wallet)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
    const made = await world.sql<
      { user_id: string; email: string }[]
    >`select u.user_id, u.email from users u join wallets using (user_id) where address = ${wallet.address.toLowerCase()}`;
    expect(made.map(({ email }) => email)).toEqual([wallet.address]);
    await world.audited('auth.user.signed_up', made[0]?.user_id);
    await world.sql`delete from wallets where user_id = ${made[0]?.user_id}`;
    expect((await signIn(wallet)).json['code']).toBe('wallet_unknown');
  });

  test('is nothing where the environment does not want it: off unless it was turned on', async () => {
    const wallet = new Wallet();
    const owner = await visitor();
    await link(owner, wallet);
    const pending = await answered(there(), wallet);
    expect(await setting('off')).toMatchObject({ wallet_sign_in: 'off' });
    expect(await setting()).toMatchObject({ wallet_sign_in: 'off' });
    expect((await challenge(there(), wallet.address)).json['code']).toBe('wallet_disabled');
    expect((await there().post('/v1/wallet/verify', pending)).json['code']).toBe('wallet_disabled');
    expect((await owner.browser.post('/v1/account/wallets/challenge', { address: wallet.address, password: CHOSEN })).json['code']).toBe(
      'wallet_disabled',
    );
    expect((await challenge(world.browser(), wallet.address)).json['code']).toBe('wallet_disabled');
  });
});

describe('wallets of an account', () => {
  test('are linked and removed with the password alone, from the own page', async () => {
    const [owner, wallet] = [await visitor(), new Wallet()];
    const begin = (password: string) => owner.browser.post('/v1/account/wallets/challenge', { address: wallet.address, password });
    expect((await begin('not the password')).json['code']).toBe('wrong_password');
    expect((await there().post('/v1/account/wallets/challenge', { address: wallet.address, password: CHOSEN })).json['code']).toBe(
      'session_required',
    );
    await link(owner, wallet);
    const remove = (password: string) => owner.browser.post(`/v1/account/wallets/${wallet.address}/remove`, { password });
    expect((await remove('not the password')).json['code']).toBe('wrong_password');
    expect((await remove(CHOSEN)).status).toBe(204);
    expect((await remove(CHOSEN)).json['code']).toBe('wallet_not_found');
    await world.audited('auth.wallet.unlinked', owner.userId);
    expect((await signIn(wallet)).json['code']).toBe('wallet_unknown');
    owner.browser.origin = 'https://elsewhere.localhost:8443';
    for (const [path, body] of [
      ['/v1/account/wallets/challenge', { address: wallet.address, password: CHOSEN }],
      ['/v1/account/wallets', { challenge_id: 'x', signature: `0x${'0'.repeat(130)}` }],
      [`/v1/account/wallets/${wallet.address}/remove`, { password: CHOSEN }],
      ['/v1/wallet/challenge', { address: wallet.address }],
      ['/v1/wallet/verify', { challenge_id: 'x', signature: `0x${'0'.repeat(130)}` }],
    ] as const)
      expect([path, (await owner.browser.post(path, body)).json['code']]).toEqual([path, 'bad_origin']);
  });

  test('belong to one account, are at most ten, and each proves itself', async () => {
    const [owner, other, wallet] = [await visitor(), await visitor(), new Wallet()];
    await link(owner, wallet);
    expect((await link(other, wallet)).json['code']).toBe('wallet_taken');
    const begun = (await other.browser.post('/v1/account/wallets/challenge', { address: new Wallet().address, password: CHOSEN })).json;
    expect(
      (
        await other.browser.post('/v1/account/wallets', {
          challenge_id: begun['challenge_id'],
          signature: wallet.sign(String(begun['message'])),
        })
      ).json['code'],
    ).toBe('wallet_refused');
    await world.sql`insert into wallets (env_id, address, user_id) select ${envId}, '0x' || lpad(n::text, 40, '0'), ${owner.userId}
      from generate_series(1, 9) n`;
    expect((await link(owner, new Wallet())).json['code']).toBe('wallet_limit');
  });

  test('ask for the second factor too', async () => {
    const [owner, wallet] = [await visitor(), new Wallet()];
    await link(owner, wallet);
    await world.sql`insert into authenticators (user_id, sealed, confirmed_at) values (${owner.userId}, '{}', now())`;
    expect((await signIn(wallet)).json['status']).toBe('mfa_required');
  });
});
