import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeAt } from '../../plugins/identity/src/mfa/totp.ts';
import { AuthenticatorApp } from '../../plugins/identity/test/fixtures/authenticator.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { linkFor } from '../fixtures/mail.ts';
import { Platform } from '../fixtures/platform.ts';
import { Witness } from '../fixtures/witness.ts';

const shots = process.env['PLATFORM_E2E_SHOTS'];
const GRACE = 'grace@example.org';
const PASSWORD = 'a compiler writes itself 1952';
const NEXT = 'nanoseconds of copper wire';
const SESSION_COOKIE = '__Host-platform-session';
/** How another browser names itself. */
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

describe('somebody opens an account and keeps it', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  let browser: Browser;
  let context: BrowserContext;
  let witness: Witness;
  let grace: Page;
  let secret: Buffer;
  let codes: string[] = [];

  beforeAll(async () => {
    await platform.start();
    // What an operator sets at the application: people may open accounts themselves.
    await inDatabaseOf(platform.dataDir, 'sys', sql => sql`update app_instances set allow_signup = true where slug = 'console'`);
    browser = await openBrowser(platform);
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    witness = new Witness(context);
    grace = await context.newPage();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const shot = async (page: Page, name: string) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `people-${name}.png`), fullPage: true });
  };
  const auth = (path: string) => `${platform.ready.auth}${path}`;
  const stepIs = (page: Page, step: string) => page.waitForURL(url => url.origin === platform.ready.auth && url.pathname === `/${step}`);
  const signIn = async (page: Page, password: string) => {
    await page.getByLabel('Email').fill(GRACE);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const mailed = async () => {
    await expect.poll(() => linkFor(platform.dataDir, GRACE, 'auth').catch(() => '')).toContain('#token=');
    return linkFor(platform.dataDir, GRACE, 'auth');
  };

  test('1 SGN-003 SGN-006 SGN-041 opening an account ends at the page that asks to confirm the address, without a session and without a code', async () => {
    await grace.goto(platform.ready.console);
    await stepIs(grace, 'sign-in');
    await grace.getByRole('link', { name: 'Create an account' }).click();
    await stepIs(grace, 'sign-up');
    await grace.getByLabel('Email').fill(GRACE);
    await grace.getByLabel('Your name').fill('Grace');
    await grace.getByLabel('New password').fill('passwordpassword');
    await grace.getByRole('button', { name: 'Create an account' }).click();
    await grace.getByText(/guessed first/).waitFor();
    await shot(grace, 'sign-up');
    await grace.getByLabel('New password').fill(PASSWORD);
    await grace.getByRole('button', { name: 'Create an account' }).click();
    await stepIs(grace, 'verify-email');
    await grace.getByRole('button', { name: 'Send another link' }).waitFor();
    await shot(grace, 'verify-asked');
    expect((await witness.cookies()).some(({ name }) => name === SESSION_COOKIE)).toBe(false);
    expect(witness.seen.filter(({ url }) => url.searchParams.has('code'))).toEqual([]);
    // The context came along, so that signing in goes on where it began.
    expect(new URL(grace.url()).searchParams.get('client_id')).toBe('console');
    expect(new URL(grace.url()).searchParams.get('uid')).toBeTruthy();
  });

  test('2 H-08 the link of the mail shows; its button confirms; then the password signs in and the authorization goes on', async () => {
    const link = await mailed();
    const opened = await context.newPage();
    await opened.goto(link);
    await opened.getByRole('button', { name: 'Confirm the address' }).waitFor();
    await shot(opened, 'verify-link');
    // Nobody has confirmed by looking.
    await grace.getByRole('link', { name: 'Back to sign in' }).click();
    await signIn(grace, PASSWORD);
    await stepIs(grace, 'verify-email');
    await opened.getByRole('button', { name: 'Confirm the address' }).click();
    await opened.getByText('Your email address is confirmed.').waitFor();
    await opened.close();
    await grace.getByRole('link', { name: 'Back to sign in' }).click();
    await signIn(grace, PASSWORD);
    await grace.getByText('You are not a member of any organization yet').waitFor();
    expect(new URL(grace.url()).origin).toBe(platform.ready.console);
  });

  test('3 SGN-013 SGN-014 password and session cookie went to the identity service alone; the application got code and state at its address', async () => {
    const told = await witness.saying(PASSWORD);
    expect(told.map(({ method, url }) => [method, url.origin, url.pathname])).toEqual([
      ['POST', platform.ready.auth, '/v1/sign-up'],
      ['POST', platform.ready.auth, '/v1/sign-in'],
      ['POST', platform.ready.auth, '/v1/sign-in'],
    ]);
    const cookie = (await witness.cookies()).find(({ name }) => name === SESSION_COOKIE);
    expect(cookie).toBeDefined();
    for (const { url } of await witness.saying(cookie?.value as string)) expect(url.origin).toBe(platform.ready.auth);
    const callbacks = witness.seen.filter(({ url }) => url.pathname === '/auth/callback');
    expect(callbacks.map(({ method, url, body }) => [method, url.origin, [...url.searchParams.keys()].sort(), body])).toEqual([
      ['GET', platform.ready.gateway, ['code', 'iss', 'state'], ''],
    ]);
  });

  test('4 SGN-044 SGN-045 SGN-048 SGN-049 the password was in its control and one body; the session is a cookie no script reads; nothing durable is kept', async () => {
    for (const { url, headers, body } of await witness.saying(PASSWORD)) {
      expect(decodeURIComponent(url.href)).not.toContain(PASSWORD);
      expect(Object.values(headers).join(' ')).not.toContain(PASSWORD);
      expect(body.split(PASSWORD)).toHaveLength(2);
    }
    await grace.goto(auth('/account'));
    await grace.getByText(GRACE).waitFor();
    await shot(grace, 'account');
    const kept = await witness.kept(grace);
    expect(kept).toMatchObject({
      local: {},
      session: { 'platform.correlation': expect.stringMatching(/^sgn-[0-9a-f-]{36}$/) },
      databases: 0,
      caches: 0,
      readableCookies: '',
    });
    expect(Object.keys(kept.session)).toEqual(['platform.correlation']);
    expect(JSON.stringify(kept)).not.toContain(PASSWORD);
    const cookies = (await witness.cookies()).filter(({ domain }) => domain === new URL(platform.ready.auth).hostname);
    expect(cookies.filter(({ httpOnly, secure }) => !httpOnly || !secure)).toEqual([]);
    // Host-only: its domain is the exact host, without the dot of a shared one.
    expect(cookies.find(({ name }) => name === SESSION_COOKIE)).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' });
    expect(witness.consoleLines.join('\n')).not.toContain(PASSWORD);
    const logs = join(platform.dataDir, 'logs');
    for (const file of readdirSync(logs)) expect(readFileSync(join(logs, file), 'utf8')).not.toContain(PASSWORD);
  });

  test('5 an authenticator app is set up: password, picture, code, recovery codes', async () => {
    await grace.getByRole('link', { name: 'Change' }).click();
    await stepIs(grace, 'account/mfa');
    await grace.getByLabel('Password', { exact: true }).fill('not the password');
    await grace.getByRole('button', { name: 'Continue' }).click();
    await grace.getByText('This is not the password of your account.').waitFor();
    await grace.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await grace.getByRole('button', { name: 'Continue' }).click();
    await grace.getByRole('img', { name: 'QR code' }).waitFor();
    const typed = (await grace.locator('[data-secret]').innerText()).replaceAll(' ', '');
    secret = AuthenticatorApp.typed(typed);
    const drawn = await grace.locator('[data-qr] path').boundingBox();
    expect(Math.min(drawn?.width ?? 0, drawn?.height ?? 0)).toBeGreaterThan(120);
    await shot(grace, 'mfa-app');
    await grace.getByLabel('Code', { exact: true }).fill(codeAt(secret, new Date()));
    await grace.getByRole('button', { name: 'Confirm' }).click();
    await grace.getByText(/Keep these recovery codes/).waitFor();
    await shot(grace, 'mfa-codes');
    codes = await grace.locator('[data-codes] li').allInnerTexts();
    expect(codes).toHaveLength(10);
    // The secret was drawn here: nobody was asked to.
    expect(await witness.saying(typed)).toEqual([]);
    expect(witness.seen.filter(({ url }) => !url.hostname.endsWith('localhost'))).toEqual([]);
  });

  test('6 SGN-004 another device signs in with password and code; the account page sees both and ends one', async () => {
    const other = await browser.newContext({ viewport: { width: 390, height: 780 }, colorScheme: 'dark', userAgent: FIREFOX });
    const page = await other.newPage();
    await page.goto(platform.ready.console);
    await signIn(page, PASSWORD);
    await stepIs(page, 'mfa');
    await shot(page, 'mfa-390-dark');
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText(/This code is not right/).waitFor();
    // The step after this one is accepted too, and was not used yet.
    await page.getByLabel('Code', { exact: true }).fill(codeAt(secret, new Date(Date.now() + 30_000)));
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText('You are not a member of any organization yet').waitFor();

    // A mail tells of the device, and leads to the page where it is signed out.
    await expect.poll(() => linkFor(platform.dataDir, GRACE, 'auth')).toBe(auth('/account'));
    await grace.goto(auth('/account'));
    await grace.getByText('This device').waitFor();
    await grace.getByText(/10 recovery codes/).waitFor();
    await shot(grace, 'account-devices');
    await grace.getByRole('button', { name: /^Sign out: / }).click();
    await grace.getByRole('button', { name: /^Sign out: / }).waitFor({ state: 'hidden' });
    await page.goto(auth('/account'));
    await stepIs(page, 'sign-in');
    // And back to where it was wanted, with a recovery code.
    await signIn(page, PASSWORD);
    await stepIs(page, 'mfa');
    await page.getByRole('button', { name: 'Use a recovery code instead' }).click();
    await page.getByLabel('Recovery code').fill(codes[0] as string);
    await page.getByRole('button', { name: 'Confirm' }).click();
    await stepIs(page, 'account');
    await page.getByText(/9 recovery codes/).waitFor();
    await shot(page, 'account-390-dark');
    await other.close();
  });

  test('7 SGN-005 SGN-035 a forgotten password is replaced by the link of a mail; everybody is signed out', async () => {
    const other = await browser.newContext();
    const seen = new Witness(other);
    const page = await other.newPage();
    await page.goto(platform.ready.console);
    await page.getByRole('link', { name: 'Forgot your password?' }).click();
    await stepIs(page, 'password-reset');
    await page.getByLabel('Email').fill(GRACE);
    await page.getByRole('button', { name: 'Send the link' }).click();
    await page.getByText(/If this address belongs to an account/).waitFor();
    expect(seen.seen.map(({ method, url }) => `${method} ${url.pathname}`)).toContain('POST /v1/password/reset-request');
    await expect.poll(() => linkFor(platform.dataDir, GRACE, 'auth')).toContain('/password-reset/confirm#token=');
    const link = await linkFor(platform.dataDir, GRACE, 'auth');
    await page.goto(link);
    await page.getByLabel('New password').fill(NEXT);
    await shot(page, 'reset-confirm');
    await page.getByRole('button', { name: 'Save password' }).click();
    await page.getByText('You can sign in with it now.').waitFor();
    // The token stood behind #: the one body that used it is all that was ever sent of it.
    const token = new URL(link).hash.slice('#token='.length);
    expect((await seen.saying(token)).map(({ method, url, body }) => [method, url.href, body.includes(token)])).toEqual([
      ['POST', auth('/v1/password/reset'), true],
    ]);
    await grace.goto(auth('/account'));
    await stepIs(grace, 'sign-in');
    await signIn(page, PASSWORD);
    await page.getByText('Email and password do not match.').waitFor();
    await page.getByLabel('Password', { exact: true }).fill(NEXT);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await stepIs(page, 'mfa');
    await other.close();
  });
});
