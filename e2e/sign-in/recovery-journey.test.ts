import { SYSTEM } from '@platform/sdk';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeAt } from '../../plugins/identity/src/mfa/totp.ts';
import { AuthenticatorApp } from '../../plugins/identity/test/fixtures/authenticator.ts';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { linkFor } from '../fixtures/mail.ts';
import { axeFindings, lookAt } from '../fixtures/browser/page-sight.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { Platform } from '../fixtures/platform.ts';
import { shoot } from '../fixtures/browser/shots.ts';

const KAY = 'kay@example.org';
const PASSWORD = 'mauchly drew it on a napkin';
const NEXT = 'six of us wired the machine';

describe('somebody lost the phone and gets the account back', () => {
  process.env['PLATFORM_AUTH_ACCOUNT_RECOVERY'] = 'wait_and_approval';
  const platform = new Platform({ split: false, pluginDirs: '' });
  let browser: Browser;
  let context: BrowserContext;
  let kay: Page;

  beforeAll(async () => {
    await platform.start();
    await openAccount(platform.dataDir, KAY, PASSWORD);
    browser = await openBrowser(platform);
    context = await browser.newContext({ viewport: { width: 900, height: 900 }, locale: 'en-GB' });
    kay = await context.newPage();
  }, 180_000);
  afterAll(async () => {
    delete process.env['PLATFORM_AUTH_ACCOUNT_RECOVERY'];
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const auth = (path: string) => `${platform.ready.auth}${path}`;
  const stepIs = (page: Page, step: string) => page.waitForURL(url => url.origin === platform.ready.auth && url.pathname === `/${step}`);
  const signIn = async (password: string) => {
    await kay.goto(auth('/sign-in?return_to=/account'));
    await kay.getByLabel('Email').fill(KAY);
    await kay.locator('#password').fill(password);
    await kay.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const mailed = async (path: string) => {
    await expect.poll(() => linkFor(platform.dataDir, KAY, 'auth').catch(() => '')).toContain(path);
    return linkFor(platform.dataDir, KAY, 'auth');
  };
  /** What axe finds on a page of the console, but for the frame around every page. */
  const ofThePage = async (page: Page) => (await axeFindings(page)).filter(finding => !/class="(?:switcher|avatar)"/.test(finding));
  const state = () =>
    inDatabaseOf(
      platform.dataDir,
      'auth',
      async sql => (await sql<{ status: string }[]>`select status from account_recoveries order by created_at desc limit 1`)[0]?.status,
    );

  test('1 the way there is on the page that asks for the code; the answer says nothing of the account', async () => {
    await signIn(PASSWORD);
    await stepIs(kay, 'account');
    await kay.goto(auth('/account/mfa'));
    await kay.locator('#password').fill(PASSWORD);
    await kay.getByRole('button', { name: 'Continue' }).click();
    await kay.locator('[data-step-app] svg').waitFor();
    const secret = AuthenticatorApp.typed(((await kay.locator('[data-secret]').textContent()) ?? '').replace(/\s/g, ''));
    await kay.locator('#code').fill(codeAt(secret, new Date()));
    await kay.getByRole('button', { name: 'Confirm' }).click();
    await kay.locator('[data-codes] li').first().waitFor();
    await context.clearCookies();
    await signIn(PASSWORD);
    await stepIs(kay, 'mfa');
    await kay.getByRole('link', { name: 'Recover your account' }).click();
    await stepIs(kay, 'account-recovery');
    await kay.getByLabel('Email').fill(KAY);
    await kay.getByRole('button', { name: 'Recover the account' }).click();
    await kay.getByText('If this address belongs to an account and is confirmed').waitFor();
    expect(await kay.getByLabel('Email').isVisible()).toBe(false);
  }, 60_000);

  test('2 [H-08] opening the link of the mail confirms nothing; its button does, and says what follows', async () => {
    const link = await mailed('/account-recovery/confirm#token=');
    await kay.goto(link);
    await kay.reload();
    await kay.getByRole('heading', { name: 'Confirm the recovery' }).waitFor();
    expect(await state()).toBe('asked');
    await kay.getByRole('button', { name: 'Confirm' }).click();
    await kay.getByText(/An administrator decides now\. Once it is approved, and not before \w+ \d+, \d{4}/).waitFor();
    expect(await state()).toBe('waiting');
    await kay.goto('about:blank');
    await kay.goto(link);
    await kay.getByRole('button', { name: 'Confirm' }).click();
    await kay.getByText('This link has expired. Ask for a new one.').waitFor();
  }, 60_000);

  test('3 an administrator sees it in the console, and approves with a reason', async () => {
    const ada = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await enterAsFirstAdministrator(ada, platform);
    await ada.goto(`${platform.ready.console}/#/auth/recoveries?env=${SYSTEM.envId}`);
    const row = ada.getByRole('row').filter({ hasText: KAY });
    await row.getByText('Awaiting approval').waitFor();
    await shoot(ada, 'identity-recoveries');
    expect(await ofThePage(ada)).toEqual([]);
    // The three days are over.
    await inDatabaseOf(platform.dataDir, 'auth', sql => sql`update account_recoveries set wait_until = now()`);
    await row.getByRole('button', { name: 'Approve' }).click();
    await ada.getByRole('dialog').getByLabel('Reason').fill('She called, and everybody knows her voice.');
    await ada.setViewportSize({ width: 320, height: 800 });
    expect(await ada.getByRole('dialog').evaluate(dialog => dialog.scrollWidth <= dialog.clientWidth)).toBe(true);
    await shoot(ada, 'identity-recovery-approve');
    expect(await ofThePage(ada)).toEqual([]);
    await ada.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
    await row.getByText('offered').waitFor();
    expect(await row.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    await ada.close();
  }, 120_000);

  test('4 the last mail leads to a new password, and nobody asks for a code any more', async () => {
    await kay.goto(await mailed('/account-recovery/finish#token='));
    await kay.getByLabel('New password').fill(NEXT);
    await kay.getByRole('button', { name: 'Save password' }).click();
    await stepIs(kay, 'sign-in');
    await kay.getByText('Your account is recovered.').waitFor();
    await signIn(NEXT);
    await stepIs(kay, 'account');
    await kay.getByText('Signing in asks for the password alone.').waitFor();
  }, 60_000);

  test('5 whoever did not want it ends it with the link of the mail', async () => {
    await context.clearCookies();
    await kay.goto(auth('/account-recovery'));
    await kay.getByLabel('Email').fill(KAY);
    await kay.getByRole('button', { name: 'Recover the account' }).click();
    await kay.locator('[data-notice]:visible').waitFor();
    await kay.goto(await mailed('/account-recovery/confirm#token='));
    await kay.getByRole('button', { name: 'Confirm' }).click();
    await kay.locator('[data-notice]:visible').waitFor();
    await kay.goto(await mailed('/account-recovery/cancel#token='));
    await kay.getByRole('button', { name: 'End the recovery' }).click();
    await kay.getByText('The recovery is ended. Nothing was changed.').waitFor();
    expect(await state()).toBe('cancelled');
  }, 60_000);

  test('6 whoever is signed in sees at the own account that one is under way, and ends it there', async () => {
    await signIn(NEXT);
    await stepIs(kay, 'account');
    const stranger = await (await browser.newContext()).newPage();
    await stranger.goto(auth('/account-recovery'));
    await stranger.getByLabel('Email').fill(KAY);
    await stranger.getByRole('button', { name: 'Recover the account' }).click();
    await stranger.locator('[data-notice]:visible').waitFor();
    await expect.poll(async () => (await state()) === 'asked' && (await mailed('/account-recovery/confirm#token='))).toBeTruthy();
    await stranger.goto(await mailed('/account-recovery/confirm#token='));
    await stranger.getByRole('button', { name: 'Confirm' }).click();
    await stranger.locator('[data-notice]:visible').waitFor();
    await stranger.close();
    const found: string[] = [];
    for (const locale of ['ar', 'de', 'en'] as const) {
      await kay.goto(auth(`/account?ui_locales=${locale}`));
      await kay.locator('[data-recovery-end]').waitFor();
      found.push(...(await lookAt(kay, 'account recovery', locale)));
    }
    expect(found).toEqual([]);
    await kay.getByRole('button', { name: 'End the recovery' }).focus();
    await kay.keyboard.press('Enter');
    await kay.getByText('The recovery is ended. Nothing was changed.').waitFor();
    expect([await state(), await kay.evaluate(() => document.activeElement?.textContent)]).toEqual([
      'cancelled',
      'The recovery is ended. Nothing was changed.',
    ]);
    await kay.reload();
    await kay.locator('[data-factor]').waitFor();
    expect(await kay.locator('[data-recovery]').isVisible()).toBe(false);
  }, 120_000);

  test('7 every face of its pages, in both themes, narrow and wide, from left to right and from right to left', async () => {
    const found: string[] = [];
    const complaints: string[] = [];
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', error => complaints.push(`${page.url()}: ${error.message}`));
    page.on('console', message => message.type() === 'error' && complaints.push(`${page.url()}: ${message.text()}`));
    await page.route('**/v1/recovery/**', route =>
      route.fulfill({
        json: route.request().url().endsWith('/confirm')
          ? { needs_approval: true, ready_at: new Date(Date.now() + 86_400_000).toISOString() }
          : { status: 'ok' },
      }),
    );
    for (const locale of ['en', 'ar', 'de'] as const) {
      const open = async (path: string) => {
        const url = new URL(path, platform.ready.auth);
        url.searchParams.set('ui_locales', locale);
        await page.goto('about:blank');
        await page.goto(url.href);
        await page.locator('body:not(:has([type=submit]:disabled))').waitFor();
      };
      const see = async (name: string) => void found.push(...(await lookAt(page, name, locale)));
      const press = async () => {
        await page.locator('[type=submit]').click();
        await page.locator('[data-notice]:visible').waitFor();
      };
      await open('/account-recovery');
      await see('recovery asked');
      await page.locator('#email').fill(KAY);
      await press();
      await see('recovery sent');
      await open('/account-recovery/confirm#token=x');
      await see('recovery confirm');
      await press();
      await see('recovery confirmed');
      await open('/account-recovery/cancel#token=x');
      await see('recovery cancel');
      await press();
      await see('recovery cancelled');
      await open('/account-recovery/finish#token=x');
      await see('recovery finish');
      await open('/account-recovery/finish');
      await page.locator('[data-alert]:visible').waitFor();
      await see('recovery link broken');
      await open('/password-reset');
      await see('recovery from reset');
      await open('/sign-in?notice=account_recovered');
      await see('recovery done');
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  }, 600_000);
});
