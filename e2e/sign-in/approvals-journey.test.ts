import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAccount } from '../fixtures/account.ts';
import { Application, REDIRECT } from '../fixtures/application.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { Platform } from '../fixtures/platform.ts';

const EMAIL = 'ada@example.org';
const PASSWORD = 'a long walk by the sea 7';
const shots = process.env['PLATFORM_E2E_SHOTS'];

describe('what a person decides about applications', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  let application: Application;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    await platform.start();
    await openAccount(platform.dataDir, EMAIL, PASSWORD);
    application = await Application.register(platform);
    browser = await openBrowser(platform);
    page = await (await browser.newContext({ viewport: { width: 900, height: 900 } })).newPage();
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
    await application[Symbol.asyncDispose]();
  }, 60_000);

  const shot = async (name: string) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  };
  const signIn = async () => {
    await page.getByLabel('Email').fill(EMAIL);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const pressed = (value: 'approve' | 'deny') => page.locator(`button[value=${value}]:visible`).click();

  test('SGN-007 SGN-026 SGN-029 SGN-036 SGN-042 SGN-043 consent shows what is asked and the accounts, all chosen, and forwards the choice', async () => {
    const called: string[] = [];
    page.on('request', request => {
      const { origin, pathname } = new URL(request.url());
      if (origin === platform.ready.auth) called.push(`${request.method()} ${pathname}`);
    });
    await page.goto(application.authorizeUrl());
    await signIn();
    await page.waitForURL('**/consent?**');
    await page.getByText('Ledger asks to:').waitFor();
    expect(await page.locator('.scopes li').allInnerTexts()).toEqual(['Know that it is you', 'See your e-mail address']);
    expect(new URL(page.url()).searchParams.get('consent_flow')).toMatch(/^fdx\./);
    // Its own layout: wide, and no form of a sign-in.
    expect(await page.locator('main[data-wide]').count()).toBe(1);
    const boxes = page.locator('input[name=account]');
    const chosen = () => boxes.evaluateAll(all => all.map(box => (box as HTMLInputElement).checked));
    expect(await chosen()).toEqual([true, true, true]);
    await shot('consent');
    await page.locator('[data-none]').click();
    expect(await chosen()).toEqual([false, false, false]);
    await page.locator('[data-all]').click();
    expect(await chosen()).toEqual([true, true, true]);
    await boxes.nth(1).uncheck();
    // The application's host is nowhere; what counts is where the browser was sent.
    const home = page.waitForRequest(request => request.url().startsWith(REDIRECT));
    await pressed('approve');
    expect(Object.fromEntries(new URL((await home).url()).searchParams)).toMatchObject({
      state: 's1',
      code: expect.any(String),
      iss: platform.ready.auth,
    });
    // The protocol interrupts for a page and is continued by it; everything else a page asks for is under /v1.
    expect(called).toContain('POST /oauth/authorize/continue');
    expect(called.filter(call => call === 'GET /v1/consent/accounts')).toHaveLength(1);
    expect(called.filter(call => /^GET \/oauth\/authorize\/[\w-]+$/.test(call))).toHaveLength(2);
    expect(
      called.filter(call => !/^(GET \/(sign-in|consent|signin-assets\/[\w.-]+)|(GET|POST) \/(v1|oauth)\/[\w/-]+)$/.test(call)),
    ).toEqual([]);
    page.removeAllListeners('request');
    const kept = await inDatabaseOf(
      platform.dataDir,
      'auth',
      sql => sql<{ account_ids: string[] }[]>`select account_ids from consents where client_id = ${application.clientId}`,
    );
    expect(kept.map(({ account_ids }) => account_ids)).toEqual([['a0', 'a2']]);
  }, 60_000);

  test('SGN-008 a device is let in by its code, after a sign-in on the way', async () => {
    const started = await application.post('/oauth/device_authorization', { scope: 'openid' });
    expect(started).toMatchObject({ user_code: expect.any(String) });
    await page.context().clearCookies();
    await page.goto(String(started['verification_uri_complete']));
    await page.locator('[data-form] button').click();
    await page.waitForURL('**/sign-in?**');
    await signIn();
    await page.waitForURL('**/device?**');
    expect(await page.getByLabel('Device code').inputValue()).toBe(started['user_code']);
    await page.locator('[data-form] button').click();
    await page.getByText('Ledger wants to connect as you.').waitFor();
    await shot('device');
    await pressed('approve');
    await page.getByText('The device is connected.').waitFor();
  }, 60_000);

  test('SGN-009 an assisted sign-in shows who asks and its message, and ends with the decision', async () => {
    const started = await application.post('/oauth/bc-authorize', { scope: 'openid', login_hint: EMAIL, binding_message: 'Order 4711' });
    await page.goto(`${platform.ready.auth}/ciba?${new URLSearchParams({ auth_req_id: String(started['auth_req_id']) })}`);
    await page.getByText('Order 4711').waitFor();
    await shot('ciba');
    await pressed('approve');
    await page.getByText('Allowed. You can close this page.').waitFor();
    // Decided is decided.
    await page.reload();
    await page.locator('[data-alert]:visible').waitFor();
  }, 60_000);

  test('SGN-042 a consent without a flow asks for no accounts', async () => {
    const called: string[] = [];
    page.on('request', request => called.push(new URL(request.url()).pathname));
    await page.goto(`${platform.ready.auth}/consent?${new URLSearchParams({ client_id: application.clientId, scope: 'openid' })}`);
    await page.getByText('Ledger asks to:').waitFor();
    expect([called.includes('/v1/consent'), called.includes('/v1/consent/accounts')]).toEqual([true, false]);
    page.removeAllListeners('request');
  }, 60_000);

  test('what was allowed stands at the account and is taken back there; the application has to ask again', async () => {
    await page.goto(`${platform.ready.auth}/account`);
    const row = page.locator('[data-applications] li');
    await row.getByText('Ledger').waitFor();
    expect(await row.count()).toBe(1);
    await shot('account-applications');
    await page.getByRole('button', { name: 'Take back what Ledger may do' }).click();
    await page.getByText('Ledger may not act for you any more.').waitFor();
    await page.getByText('No application acts for you.').waitFor();
    await page.goto(application.authorizeUrl());
    await page.waitForURL('**/consent?**');
  }, 60_000);
});
