import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { Platform } from '../fixtures/platform.ts';
import { Witness } from '../fixtures/witness.ts';

const JOAN = 'joan@example.org';
const PASSWORD = 'punched cards in a shoebox';
const OTHER = 'a compiler writes itself 1952';

describe('the hosted pages in a browser', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    await platform.start();
    // What an operator sets at the application: people may open accounts themselves.
    await inDatabaseOf(platform.dataDir, 'sys', sql => sql`update app_instances set allow_signup = true where slug = 'console'`);
    await openAccount(platform.dataDir, JOAN, PASSWORD);
    browser = await openBrowser(platform);
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const auth = (path: string) => `${platform.ready.auth}${path}`;
  const stepIs = (page: Page, step: string) => page.waitForURL(url => url.origin === platform.ready.auth && url.pathname === `/${step}`);

  test('1 SGN-002 SGN-010 SGN-016 each step is a page of its own, loaded whole', async () => {
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

  test('2 SGN-018 SGN-020 SGN-021 branding is asked for once, holds nothing up, and may fail; until then the platform looks like itself', async () => {
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

  test('3 SGN-040 SGN-046 SGN-047 the entry points for automation do what the buttons do; what a sign-in answers is kept in memory alone', async () => {
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
      .poll(() =>
        page.evaluate(() => [typeof window.platformTestSignUp, typeof window.platformTestSignIn, typeof window.platformTestNavigate]),
      )
      .toEqual(['function', 'function', 'function']);
    const rejected = await page.evaluate(
      email =>
        window.platformTestSignIn?.({ email, password: 'not the password' }).then(
          () => 'signed in',
          () => 'refused',
        ),
      JOAN,
    );
    expect(rejected).toBe('refused');
    // The form itself was filled and pressed: it says what went wrong, and has let go of the password.
    await page.getByRole('alert').getByText('Email and password do not match.').waitFor();
    expect([await page.getByLabel('Email').inputValue(), await page.getByLabel('Password', { exact: true }).inputValue()]).toEqual([
      JOAN,
      '',
    ]);
    await page.evaluate(
      ([email, password]) => void window.platformTestSignIn?.({ email: email as string, password: password as string }),
      [JOAN, PASSWORD],
    );
    await stepIs(page, 'account');
    const id = heard;
    await page.getByText(JOAN).waitFor();
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
    await page.evaluate(password => void window.platformTestSignUp?.({ email: 'ida@example.org', password }), OTHER);
    await stepIs(page, 'verify-email');
    const told = (await seen.saying(OTHER)).map(({ method, url, body }) => [
      method,
      url.pathname,
      (JSON.parse(body) as { email: string }).email,
    ]);
    expect(told).toEqual([['POST', '/v1/sign-up', 'ida@example.org']]);
    await other.close();
  });
});
