import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Locale } from '../../signin/messages.ts';
import { ROUTED } from '../../signin/step.ts';
import { openAccount } from '../fixtures/account.ts';
import { Application } from '../fixtures/application.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { lookAt } from '../fixtures/browser/page-sight.ts';
import { Platform } from '../fixtures/platform.ts';

const EMAIL = 'hedy@example.org';
const PASSWORD = 'frequencies hop like a pianola';
/** A refused sign-in, an answer of a provider nobody set up and the page of an unknown address are answers, not faults of a page. */
const EXPECTED = /status of 401|status of 404 .*\/(?:nowhere\?|sso$)/;
const CONTEXT = 'client_id=console&scope=openid&state=s1';

interface Face {
  readonly name: string;
  readonly path: string;
  /** What a person does until the page shows this face. */
  readonly reach?: (page: Page) => Promise<void>;
}

/** Every step, and the faces it has besides the first. */
const STRANGER: readonly Face[] = [
  ...ROUTED.filter(step => !['consent', 'device', 'ciba', 'account', 'account/mfa'].includes(step)).map(step => ({
    name: step,
    path: `/${step}?${CONTEXT}`,
  })),
  { name: 'not-found', path: '/nowhere' },
  { name: 'sign-up closed', path: '/sign-up' },
  { name: 'error named', path: '/error?error=invalid_request&correlation_id=auth-1' },
  { name: 'sign-in refused', path: '/sign-in', reach: page => page.locator('[data-form] [type=submit]').click() },
  { name: 'sign-in wrong', path: '/sign-in', reach: page => refused(page) },
  { name: 'sign-in noticed', path: '/sign-in?notice=password_reset' },
  { name: 'sign-in sso', path: '/sign-in', reach: page => page.locator('[data-sso]').click() },
  { name: 'mfa recovery', path: '/mfa?methods=totp,recovery_code', reach: page => page.locator('[data-method]').click() },
  { name: 'verify-email link', path: '/verify-email#token=x' },
  { name: 'password-reset sent', path: '/password-reset', reach: page => sent(page) },
  { name: 'device', path: '/device' },
];

async function refused(page: Page): Promise<void> {
  await page.locator('#email').fill('nobody@example.org');
  await page.locator('#password').fill('whatever it may be');
  await page.locator('[data-form] [type=submit]').click();
  await page.locator('[data-alert]:visible').waitFor();
}

async function sent(page: Page): Promise<void> {
  await page.locator('#email').fill('nobody@example.org');
  await page.locator('[type=submit]').click();
  await page.locator('[data-notice]:visible').waitFor();
}

const loaded = (page: Page) => page.locator('[data-loaded]:visible').waitFor();

describe('every hosted page, in both themes, narrow and wide, from left to right and from right to left', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  let browser: Browser;
  let application: Application;
  const complaints: string[] = [];

  beforeAll(async () => {
    await platform.start();
    await inDatabaseOf(platform.dataDir, 'sys', sql => sql`update app_instances set allow_signup = true where slug = 'console'`);
    await openAccount(platform.dataDir, EMAIL, PASSWORD);
    application = await Application.register(platform);
    browser = await openBrowser(platform);
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await application?.[Symbol.asyncDispose]();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  const auth = (path: string) => new URL(path, platform.ready.auth).href;
  const open = async () => {
    const page = await (await browser.newContext()).newPage();
    page.on(
      'console',
      message =>
        ['error', 'warning'].includes(message.type()) &&
        !EXPECTED.test(`${message.text()} ${page.url()}`) &&
        complaints.push(`${page.url()}: ${message.text()}`),
    );
    page.on('pageerror', error => complaints.push(`${page.url()}: ${error.message}`));
    return page;
  };
  const inLanguage = (path: string, locale: Locale) => {
    const url = new URL(path, platform.ready.auth);
    url.searchParams.set('ui_locales', locale);
    return url.href;
  };

  test('SGN-002 SGN-003 SGN-004 SGN-005 SGN-006 SGN-010 SGN-024 pages before a sign-in', async () => {
    const found: string[] = [];
    const page = await open();
    for (const { name, path, reach } of STRANGER) {
      for (const locale of ['en', 'ar', 'de'] as const) {
        await page.goto(inLanguage(path, locale));
        await page.locator('body:not(:has([type=submit]:disabled))').waitFor();
        await reach?.(page);
        found.push(...(await lookAt(page, name, locale)));
      }
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  }, 600_000);

  test('SGN-007 SGN-008 SGN-009 SGN-026 pages of somebody who is signed in', async () => {
    const found: string[] = [];
    const page = await open();
    await page.goto(auth('/sign-in?return_to=/account'));
    await page.locator('#email').fill(EMAIL);
    await page.locator('#password').fill(PASSWORD);
    await page.locator('[type=submit]').click();
    await page.waitForURL(url => url.pathname === '/account');
    const other = await open();
    await other.goto(auth('/sign-in?return_to=/account'));
    await other.locator('#email').fill(EMAIL);
    await other.locator('#password').fill(PASSWORD);
    await other.locator('[type=submit]').click();
    await other.waitForURL(url => url.pathname === '/account');
    for (const locale of ['en', 'ar', 'de'] as const) {
      await page.goto(application.authorizeUrl({ ui_locales: locale, prompt: 'consent' }));
      await loaded(page);
      found.push(...(await lookAt(page, 'consent', locale)));
      const { auth_req_id = '' } = await application.post('/oauth/bc-authorize', {
        scope: 'openid',
        login_hint: EMAIL,
        binding_message: 'Order 4711',
      });
      await page.goto(inLanguage(`/ciba?${new URLSearchParams({ auth_req_id })}`, locale));
      await loaded(page);
      found.push(...(await lookAt(page, 'ciba', locale)));
      await page.locator('button[value=approve]').click();
      await page.locator('[data-notice]:visible').waitFor();
      found.push(...(await lookAt(page, 'ciba decided', locale)));
      const { verification_uri_complete = '' } = await application.post('/oauth/device_authorization', { scope: 'openid' });
      await page.goto(inLanguage(verification_uri_complete, locale));
      await page.locator('[data-form] [type=submit]').click();
      await page.locator('[data-decision]:visible').waitFor();
      found.push(...(await lookAt(page, 'device found', locale)));
      await page.locator('[data-decision] button[value=approve]').click();
      await page.locator('[data-notice]:visible').waitFor();
      await page.goto(inLanguage('/account', locale));
      await loaded(page);
      expect(await page.locator('[data-applications] li, [data-devices] li').count()).toBeGreaterThan(1);
      found.push(...(await lookAt(page, 'account', locale)));
      await page.locator('[data-factor-link]').click();
      await page.locator('[data-step-password]:visible').waitFor();
      expect(new URL(page.url()).searchParams.get('ui_locales')).toBe(locale);
      found.push(...(await lookAt(page, 'account-mfa', locale)));
      await page.locator('#password').fill(PASSWORD);
      await page.locator('[data-step-password] [type=submit]:not([value=remove])').click();
      await page.locator('[data-step-app] svg').waitFor();
      found.push(...(await lookAt(page, 'account-mfa app', locale)));
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  }, 600_000);

  test('SGN-017 SGN-028 a language is changed in place, without a script, and the context goes along to the end', async () => {
    const context = await browser.newContext({ locale: 'ar-EG', javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(auth(`/sign-in?${CONTEXT}&login_hint=a@example.org`));
    expect(await page.locator('html').getAttribute('dir')).toBe('rtl');
    await page.getByRole('link', { name: 'Deutsch' }).click();
    const { pathname, searchParams } = new URL(page.url());
    expect([pathname, Object.fromEntries(searchParams)]).toEqual([
      '/sign-in',
      { client_id: 'console', scope: 'openid', state: 's1', login_hint: 'a@example.org', ui_locales: 'de' },
    ]);
    await page.getByRole('link', { name: 'Konto anlegen' }).click();
    expect(await page.locator('html').getAttribute('lang')).toBe('de');
    await context.close();
    // What an application asks for holds up to consent, and what the person chose on the way wins.
    const person = await open();
    await person.goto(application.authorizeUrl({ ui_locales: 'fr ar en', prompt: 'consent' }));
    expect(await person.locator('html').getAttribute('lang')).toBe('ar');
    await person.getByRole('link', { name: 'Deutsch' }).click();
    await person.locator('html[lang=de]').waitFor();
    await person.locator('#email').fill(EMAIL);
    await person.locator('#password').fill(PASSWORD);
    await person.locator('[type=submit]').click();
    await person.waitForURL('**/consent?**');
    expect(await person.locator('html').getAttribute('lang')).toBe('de');
    // A mail's token stays in the browser and goes along.
    await person.goto(auth('/password-reset/confirm#token=abc'));
    await person.getByRole('link', { name: 'العربية' }).click();
    await person.locator('html[lang=ar]').waitFor();
    expect(new URL(person.url()).hash).toBe('#token=abc');
  }, 60_000);

  test('SGN-018 SGN-020 each page asks for its branding once, paints before it is there, and works when it hangs or fails', async () => {
    const page = await open();
    for (const step of ROUTED.filter(each => !['account', 'account/mfa', 'consent', 'ciba'].includes(each))) {
      let asked = 0;
      await page.route('**/v1/branding', () => {
        asked += 1;
      });
      await page.goto(auth(`/${step}?${CONTEXT}`));
      await expect.poll(() => asked).toBe(1);
      await expect.poll(() => page.evaluate(() => performance.getEntriesByName('first-contentful-paint').length)).toBe(1);
      await page.locator('body:not(:has([type=submit]:disabled))').waitFor();
      expect([step, asked]).toEqual([step, 1]);
      await page.unrouteAll();
      await page.route('**/v1/branding', route => route.fulfill({ status: 503, json: {} }));
      await page.goto(auth(`/${step}?${CONTEXT}`));
      await page.locator('body:not(:has([type=submit]:disabled))').waitFor();
      await page.unrouteAll();
    }
  }, 120_000);
});
