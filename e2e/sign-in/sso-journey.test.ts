import type { Browser } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT, SECRET, Upstream } from '../../plugins/identity/test/fixtures/upstream.ts';
import { BrowserSession } from '../../scripts/bench/suites/faces/browser-session.ts';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { axeFindings } from '../fixtures/browser/page-sight.ts';
import { Platform } from '../fixtures/platform.ts';

const EMAIL = 'karen@example.org';

describe('single sign-on in a browser', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  let browser: Browser;
  let operator: BrowserSession;
  let upstream: Upstream;

  beforeAll(async () => {
    await platform.start();
    await openAccount(platform.dataDir, EMAIL, 'idf counts rare words more');
    upstream = await Upstream.open([`${platform.ready.auth}/sso`]);
    upstream.person = { sub: 'karen-1', email: EMAIL, email_verified: true };
    operator = new BrowserSession(platform.ready);
    await operator.signIn(platform.firstStart.email, platform.firstStart.password, 'a bench of oak and iron 9');
    browser = await openBrowser(platform);
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await operator?.close();
    await upstream?.[Symbol.asyncDispose]();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  test('SGN-022 the button explains itself until an operator sets up a provider; then it leads there and back, into the account', async () => {
    const page = await browser.newPage();
    await page.goto(`${platform.ready.auth}/sign-in?return_to=/account`);
    await page.getByRole('button', { name: 'Single sign-on' }).click();
    await page.getByText('Single sign-on is not set up here yet.').waitFor();
    const body = { issuer: upstream.issuer, client_id: CLIENT, client_secret: SECRET, label: 'the Guild' };
    const kept = await operator.fetch(`${platform.ready.gateway}/proxy/auth/v1/admin/sso`, {
      method: 'PUT',
      body,
      headers: { 'x-bff-csrf': operator.csrf, origin: platform.ready.console },
    });
    expect([kept.status, kept.text]).toEqual([200, expect.not.stringContaining(SECRET)]);
    // Processes hear of it within five seconds.
    await expect
      .poll(async () => {
        await page.reload();
        return page.getByRole('button', { name: 'Sign in with the Guild' }).count();
      })
      .toBe(1);
    await page.getByRole('button', { name: 'Sign in with the Guild' }).click();
    await page.waitForURL(url => url.pathname === '/account');
    await page.getByText(EMAIL).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    // Somebody the provider knows and the platform does not is told so, and what the provider answered is out of the address.
    await page.context().clearCookies();
    upstream.person = { sub: 'nobody-1', email: 'nobody@example.org', email_verified: true };
    await page.goto(`${platform.ready.auth}/sign-in`);
    await page.getByRole('button', { name: 'Sign in with the Guild' }).click();
    await page.getByText('There is no account for you here yet.').waitFor();
    expect(page.url()).toBe(`${platform.ready.auth}/sso`);
    expect(await axeFindings(page)).toEqual([]);
  }, 60_000);
});
