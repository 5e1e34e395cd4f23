import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeAt, stepAt } from '../../plugins/identity/src/mfa/totp.ts';
import { AuthenticatorApp } from '../../plugins/identity/test/fixtures/authenticator.ts';
import { openBrowser } from '../fixtures/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { linkFor } from '../fixtures/mail.ts';
import { Platform } from '../fixtures/platform.ts';
import { Witness } from '../fixtures/witness.ts';

const split = process.env['PLATFORM_E2E_MODE'] === 'split';
const shots = process.env['PLATFORM_E2E_SHOTS'];
const GRACE = 'grace@example.org';
const PASSWORD = 'a compiler writes itself 1952';
const NEXT = 'nanoseconds of copper wire';
const SESSION_COOKIE = '__Host-platform-session';

describe(`somebody opens an account and keeps it, ${split ? 'one process per service' : 'all in one process'}`, () => {
  const platform = new Platform({ split, pluginDirs: '' });
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
    expect(callbacks.map(({ method, url, body }) => [method, url.origin, [...url.searchParams.keys()].sort(), body])).toEqual([['GET', platform.ready.gateway, ['code', 'iss', 'state'], '']]);
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
    expect(kept).toMatchObject({ local: {}, session: { 'platform.correlation': expect.stringMatching(/^sgn-[0-9a-f-]{36}$/) }, databases: 0, caches: 0, readableCookies: '' });
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
    await grace.getByLabel('Code', { exact: true }).fill(codeAt(secret, stepAt(new Date())));
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
    const other = await browser.newContext({ viewport: { width: 390, height: 780 }, colorScheme: 'dark' });
    const page = await other.newPage();
    await page.goto(platform.ready.console);
    await signIn(page, PASSWORD);
    await stepIs(page, 'mfa');
    await shot(page, 'mfa-390-dark');
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText(/This code is not right/).waitFor();
    // The step after this one is accepted too, and was not used yet.
    await page.getByLabel('Code', { exact: true }).fill(codeAt(secret, stepAt(new Date()) + 1));
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText('You are not a member of any organization yet').waitFor();

    await grace.goto(auth('/account'));
    await grace.getByText('This device').waitFor();
    await grace.getByText(/10 recovery codes/).waitFor();
    await shot(grace, 'account-devices');
    await grace.getByRole('button', { name: 'Sign out', exact: true }).click();
    await grace.getByRole('button', { name: 'Sign out', exact: true }).waitFor({ state: 'hidden' });
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
    expect((await seen.saying(token)).map(({ method, url, body }) => [method, url.href, body.includes(token)])).toEqual([['POST', auth('/v1/password/reset'), true]]);
    await grace.goto(auth('/account'));
    await stepIs(grace, 'sign-in');
    await signIn(page, PASSWORD);
    await page.getByText('Email and password do not match.').waitFor();
    await page.getByLabel('Password', { exact: true }).fill(NEXT);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await stepIs(page, 'mfa');
    await other.close();
  });

  test('8 SGN-002 SGN-010 SGN-016 each step is a page of its own, loaded whole', async () => {
    const page = await context.newPage();
    const loads: string[] = [];
    page.on('request', request => request.resourceType() === 'document' && loads.push(new URL(request.url()).pathname));
    await page.goto(auth('/sign-in?client_id=console&scope=openid'));
    await page.getByLabel('Password', { exact: true }).waitFor();
    const walk = async (name: string, step: string) => {
      await page.evaluate(() => Object.assign(window, { before: true }));
      await page.getByRole('link', { name }).click();
      await stepIs(page, step);
      // A page that was merely redrawn would still have it.
      expect(await page.evaluate(() => 'before' in window)).toBe(false);
      expect(new URL(page.url()).searchParams.get('client_id')).toBe('console');
    };
    await walk('Forgot your password?', 'password-reset');
    await walk('Back to sign in', 'sign-in');
    await walk('Create an account', 'sign-up');
    await walk('Sign in', 'sign-in');
    expect(loads).toEqual(['/sign-in', '/password-reset', '/sign-in', '/sign-up', '/sign-in']);
    await page.goto(auth('/wallet'));
    await page.getByRole('button', { name: 'Connect wallet' }).click();
    await page.getByText(/No wallet was found/).waitFor();
    await page.close();
  });

  test('9 SGN-018 SGN-020 SGN-021 branding is asked for once, holds nothing up, and may fail; until then the platform looks like itself', async () => {
    const page = await context.newPage();
    const accent = () => page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--accent').trim());
    let asked = 0;
    let answer: (() => void) | undefined;
    await page.route('**/v1/branding', async route => {
      asked += 1;
      await new Promise<void>(resolve => {
        answer = resolve;
      });
      await route.fulfill({ json: { primary_color: '#aa00aa', display_name: 'Acme' } });
    });
    await page.goto(auth('/sign-in'));
    await page.getByLabel('Email').fill('nobody@example.org');
    await expect.poll(() => page.getByRole('button', { name: 'Sign in', exact: true }).isEnabled()).toBe(true);
    const platformOwn = await accent();
    expect(platformOwn).not.toBe('#aa00aa');
    await expect.poll(() => answer !== undefined).toBe(true);
    answer?.();
    await expect.poll(accent).toBe('#aa00aa');
    await page.getByText('Acme', { exact: true }).waitFor();
    // What was typed meanwhile is still there.
    expect(await page.getByLabel('Email').inputValue()).toBe('nobody@example.org');
    expect(asked).toBe(1);
    await page.unroute('**/v1/branding');
    await page.route('**/v1/branding', route => route.abort());
    await page.goto(auth('/sign-in'));
    await page.getByLabel('Email').fill('nobody@example.org');
    await page.getByLabel('Password', { exact: true }).fill('whatever it may be');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText('Email and password do not match.').waitFor();
    expect(await accent()).toBe(platformOwn);
    await page.close();
  });

  test('10 SGN-040 SGN-046 SGN-047 the entry points for automation do what the buttons do; what a sign-in answers is kept in memory alone', async () => {
    const other = await browser.newContext();
    const seen = new Witness(other);
    const page = await other.newPage();
    // What the page is answered, heard on its way: the page is gone a moment later.
    let heard = '';
    await page.exposeFunction('hear', (id: string) => {
      heard = id;
    });
    await page.addInitScript(() => {
      const { fetch: send } = window;
      window.fetch = async (...args) => {
        const response = await send(...args);
        const { session_token_id: id } = (await response
          .clone()
          .json()
          .catch(() => ({}))) as { session_token_id?: string };
        if (id) await (window as unknown as { hear(id: string): Promise<void> }).hear(id);
        return response;
      };
    });
    await page.goto(auth('/sign-in?client_id=console&return_to=/account'));
    await expect
      .poll(() => page.evaluate(() => [typeof window.platformTestSignUp, typeof window.platformTestSignIn, typeof window.platformTestNavigate]))
      .toEqual(['function', 'function', 'function']);
    const rejected = await page.evaluate(
      email =>
        window.platformTestSignIn?.({ email, password: 'not the password' }).then(
          () => 'signed in',
          () => 'refused',
        ),
      GRACE,
    );
    expect(rejected).toBe('refused');
    // The form itself was filled and pressed: it says what went wrong, and has let go of the password.
    await page.getByRole('alert').getByText('Email and password do not match.').waitFor();
    expect([await page.getByLabel('Email').inputValue(), await page.getByLabel('Password', { exact: true }).inputValue()]).toEqual([GRACE, '']);
    // The app's code of this half minute may have been used: the next sign-in starts anew.
    await inDatabaseOf(platform.dataDir, 'auth', sql => sql`update authenticators set last_step = 0`);
    await page.evaluate(
      ([email, password, code]) => void window.platformTestSignIn?.({ email: email as string, password: password as string, code: code as string }),
      [GRACE, NEXT, codeAt(secret, stepAt(new Date()))],
    );
    await stepIs(page, 'account');
    const id = heard;
    await page.getByText(GRACE).waitFor();
    expect(id.length).toBeGreaterThan(20);
    expect(JSON.stringify(await seen.kept(page))).not.toContain(id);
    expect(JSON.stringify(await seen.cookies())).not.toContain(id);
    // A full page load has forgotten it: what is sent now goes without.
    const [sent] = await Promise.all([
      page.waitForRequest('**/v1/account/password'),
      (async () => {
        await page.getByLabel('Password', { exact: true }).fill('not the password');
        await page.getByLabel('New password').fill('yet another sentence here');
        await page.getByRole('button', { name: 'Save password' }).click();
      })(),
    ]);
    expect((await sent.allHeaders())['x-platform-csrf']).toBeUndefined();
    await page.evaluate(() => void window.platformTestNavigate?.('sign-up', { client_id: 'console' }));
    await stepIs(page, 'sign-up');
    await page.evaluate(password => void window.platformTestSignUp?.({ email: 'ida@example.org', password }), PASSWORD);
    await stepIs(page, 'verify-email');
    const told = (await seen.saying(PASSWORD)).map(({ method, url, body }) => [method, url.pathname, (JSON.parse(body) as { email: string }).email]);
    expect(told).toEqual([['POST', '/v1/sign-up', 'ida@example.org']]);
    await other.close();
  });
});
