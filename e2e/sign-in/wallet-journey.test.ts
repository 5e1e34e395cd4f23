import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Wallet } from '../../plugins/identity/test/fixtures/wallet.ts';
import { CHOSEN, World } from '../../plugins/identity/test/fixtures/world.ts';
import { findChromium } from '../fixtures/browser/chromium.ts';
import { watchBrowser } from '../fixtures/watched.ts';
import { serveOrigin } from '../fixtures/service-origin.ts';
import { axeFindings, tabStops } from '../fixtures/browser/page-sight.ts';
import { shoot } from '../fixtures/browser/shots.ts';

const HOST = 'auth.prod.wallets.localhost';
const ORIGIN = `https://${HOST}:8443`;
const OWNER = 'vitalia@example.org';

describe('a wallet in a browser', () => {
  const wallet = new Wallet();
  let world: World;
  let browser: Browser;
  let envId: string;

  beforeAll(async () => {
    world = await World.start();
    envId = await world.environment(HOST);
    await world.person(OWNER, { envId });
    await world.registry.putRealm({ params: { env_id: envId }, body: { host: HOST, org_id: world.org, wallet_sign_in: 'linked' } });
    const executablePath = findChromium();
    browser = watchBrowser(await chromium.launch({ ...(executablePath ? { executablePath } : {}), args: ['--no-sandbox'] }));
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  }, 60_000);

  /** A window with a wallet in it (EIP-1193) that says yes, or no. */
  const windowOf = async (context: BrowserContext, answers: { declines?: boolean } = {}): Promise<Page> => {
    const page = await context.newPage();
    await serveOrigin(page, world, HOST);
    await page.exposeFunction('signWithKey', (hex: string) => wallet.sign(Buffer.from(hex.slice(2), 'hex').toString('utf8')));
    await page.addInitScript(
      ({ address, declines }) => {
        const sign = (hex: string) => (window as unknown as { signWithKey(hex: string): Promise<string> }).signWithKey(hex);
        const request = async ({ method, params = [] }: { method: string; params?: string[] }) => {
          if (declines) throw Object.assign(new Error('User rejected the request.'), { code: 4001 });
          if (method === 'eth_requestAccounts') return [address];
          if (method === 'personal_sign' && params[1] === address) return sign(params[0] as string);
          throw Object.assign(new Error('not supported'), { code: 4200 });
        };
        Object.assign(window, { ethereum: { request } });
      },
      { address: wallet.address, declines: answers.declines ?? false },
    );
    return page;
  };
  test('1 is linked on the account page with the password', async () => {
    const page = await windowOf(await browser.newContext());
    await page.goto(`${ORIGIN}/sign-in?return_to=/account`);
    await page.getByLabel('Email').fill(OWNER);
    await page.getByLabel('Password', { exact: true }).fill(CHOSEN);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL(`${ORIGIN}/account`);
    const section = page.locator('[data-wallets-section]');
    await section.getByRole('heading', { name: 'Wallets' }).waitFor();
    await section.getByLabel('Your password, to link or remove one').fill('not the password');
    await section.getByRole('button', { name: 'Link a wallet' }).click();
    await section.getByText('This is not the password of your account.').waitFor();
    await section.getByLabel('Your password, to link or remove one').fill(CHOSEN);
    await section.getByRole('button', { name: 'Link a wallet' }).click();
    await section.getByText(`${wallet.address.slice(0, 8)}…${wallet.address.slice(-6)}`).waitFor();
    await shoot(page, 'account-wallets');
  }, 60_000);

  test('2 SGN-010 IDN-005 signs in from the wallet page and goes on where it was wanted', async () => {
    const page = await windowOf(await browser.newContext());
    await page.goto(`${ORIGIN}/sign-in?return_to=/account`);
    await shoot(page, 'sign-in-wallet');
    await page.getByRole('link', { name: 'Sign in with a wallet' }).click();
    await page.getByRole('heading', { name: 'Sign in with a wallet' }).waitFor();
    await shoot(page, 'wallet');
    await page.getByRole('button', { name: 'Connect wallet' }).click();
    await page.waitForURL(`${ORIGIN}/account`);
    await page.getByText(OWNER).waitFor();
  }, 60_000);

  test('3 that says no, or is not linked, leaves the person on the page with a sentence', async () => {
    const refusing = await windowOf(await browser.newContext(), { declines: true });
    await refusing.goto(`${ORIGIN}/wallet`);
    await refusing.getByRole('button', { name: 'Connect wallet' }).click();
    await refusing.getByText('The wallet did not answer. Unlock it, and allow what it asks.').waitFor();
    await world.sql`update wallets set address = '0x0000000000000000000000000000000000000001'
      where address = ${wallet.address.toLowerCase()}`;
    const stranger = await windowOf(await browser.newContext());
    await stranger.goto(`${ORIGIN}/wallet`);
    await stranger.getByRole('button', { name: 'Connect wallet' }).click();
    await stranger.getByText('No account signs in with this wallet.').waitFor();
    expect(new URL(stranger.url()).pathname).toBe('/wallet');
    expect(await stranger.context().cookies()).toEqual([]);
    await world.sql`update wallets set address = ${wallet.address.toLowerCase()}
      where address = '0x0000000000000000000000000000000000000001'`;
  }, 60_000);

  test('4 is removed on the account page', async () => {
    const page = await windowOf(await browser.newContext());
    await page.goto(`${ORIGIN}/wallet?return_to=/account`);
    await page.getByRole('button', { name: 'Connect wallet' }).click();
    await page.waitForURL(`${ORIGIN}/account`);
    const section = page.locator('[data-wallets-section]');
    await section.getByLabel('Your password, to link or remove one').fill(CHOSEN);
    await section.getByRole('button', { name: `Remove ${wallet.address}` }).click();
    await expect.poll(() => section.getByRole('listitem').count()).toBe(0);
    expect(await world.sql`select 1 from wallets`).toHaveLength(0);
  }, 60_000);

  test('5 of an account without a password: no form asks for one, and each says what to do', async () => {
    await world.registry.putRealm({
      params: { env_id: envId },
      body: { host: HOST, org_id: world.org, wallet_sign_in: 'sign_up', passkeys: true },
    });
    const page = await windowOf(await browser.newContext());
    await page.goto(`${ORIGIN}/wallet?return_to=/account`);
    await page.getByRole('button', { name: 'Connect wallet' }).click();
    await page.waitForURL(`${ORIGIN}/account`);
    const passkeys = page.locator('[data-passkeys]');
    await passkeys.getByText('This account has no password. For this you sign in a moment before.').waitFor();
    expect([await page.locator('input[type=password]').count(), await axeFindings(page)]).toEqual([0, []]);
    const { expected, walked, unseen } = await tabStops(page);
    expect([walked, unseen]).toEqual([expected, []]);
    await shoot(page, 'account-no-password');
    await world.sql`update session_devices set proven_at = now() - interval '1 hour'`;
    await passkeys.getByLabel('Name of the new passkey').fill('Laptop');
    await passkeys.getByRole('button', { name: 'Add a passkey' }).click();
    await passkeys.getByText('Sign in again, and then do this within five minutes.').waitFor();
    await passkeys.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByRole('link', { name: 'Sign in with a wallet' }).click();
    await page.getByRole('button', { name: 'Connect wallet' }).click();
    await page.waitForURL(`${ORIGIN}/account`);
    await page.getByRole('link', { name: 'Change', exact: true }).click();
    await page.getByText('This account has no password.').waitFor();
    await shoot(page, 'account-mfa-no-password');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('[data-step-app] svg').waitFor();
  }, 60_000);
});
