import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { newId } from '@platform/kernel/base/ids';
import { SYSTEM } from '@platform/sdk';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { Platform } from '../fixtures/platform.ts';

const EMAIL = 'ada@example.org';
const PASSWORD = 'a long walk by the sea 7';
const REDIRECT = 'https://ledger.example.org/callback';
const SECRET = 'the application alone knows it';
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const CIBA = 'urn:openid:params:grant-type:ciba';
const shots = process.env['PLATFORM_E2E_SHOTS'];

describe('what a person decides about applications', () => {
  const platform = new Platform({ split: false, pluginDirs: '' });
  const keeper = createServer((_req, res) => {
    const accounts = ['Everyday', 'Savings', 'Card'].map((name, index) => ({ id: `a${index}`, name, mask: `••${index}`, type: 'checking' }));
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ accounts }));
  });
  let browser: Browser;
  let page: Page;
  let clientId: string;

  beforeAll(async () => {
    await new Promise<void>(resolve => keeper.listen(0, '127.0.0.1', resolve));
    await platform.start();
    await openAccount(platform.dataDir, EMAIL, PASSWORD);
    clientId = await anApplication(`http://127.0.0.1:${(keeper.address() as AddressInfo).port}/accounts`);
    browser = await openBrowser(platform);
    page = await (await browser.newContext({ viewport: { width: 900, height: 900 } })).newPage();
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
    await new Promise(resolve => keeper.close(resolve));
  }, 60_000);

  /** As an install registers it. */
  async function anApplication(accounts: string): Promise<string> {
    const id = newId();
    const metadata = {
      client_name: 'Ledger',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', DEVICE, CIBA],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
      application_type: 'web',
      id_token_signed_response_alg: 'EdDSA',
      scope: 'openid email',
      first_party: false,
      consent_accounts_uri: accounts,
      dpop_bound_access_tokens: true,
      backchannel_token_delivery_mode: 'poll',
    };
    const hash = (text: string) => createHash('sha256').update(text).digest();
    await inDatabaseOf(platform.dataDir, 'auth', async sql => {
      await sql`insert into oauth_clients (env_id, client_id, metadata, secret_hash, registration_hash, registered_by)
        values (${SYSTEM.envId}, ${id}, ${sql.json(metadata)}, ${hash(SECRET)}, ${hash(randomBytes(32).toString('hex'))}, 'app')`;
    });
    return id;
  }
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
  /** The application's own call, from its server. */
  const asApplication = (path: string, fields: Record<string, string>) => {
    const { hostname, host, port } = new URL(platform.ready.auth);
    const authorization = `Basic ${Buffer.from(`${clientId}:${encodeURIComponent(SECRET)}`).toString('base64')}`;
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      servername: hostname,
      agent: false as const,
      ca: readFileSync(join(platform.dataDir, 'ca', 'classical', 'root.crt')),
      headers: { host, authorization, 'content-type': 'application/x-www-form-urlencoded' },
    };
    return new Promise<Record<string, string>>((resolve, reject) => {
      request(options, answer => text(answer).then(body => resolve(JSON.parse(body) as Record<string, string>), reject))
        .on('error', reject)
        .end(new URLSearchParams(fields).toString());
    });
  };
  const pressed = (value: 'approve' | 'deny') => page.locator(`button[value=${value}]:visible`).click();

  test('SGN-007 SGN-026 SGN-029 SGN-043 consent shows what is asked and the accounts, all chosen, and forwards the choice', async () => {
    const query = {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: REDIRECT,
      scope: 'openid email',
      state: 's1',
      code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
      code_challenge_method: 'S256',
      consent_flow: 'fdx',
    };
    await page.goto(`${platform.ready.auth}/oauth/authorize?${new URLSearchParams(query)}`);
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
    expect(Object.fromEntries(new URL((await home).url()).searchParams)).toMatchObject({ state: 's1', code: expect.any(String), iss: platform.ready.auth });
    const kept = await inDatabaseOf(platform.dataDir, 'auth', sql => sql<{ account_ids: string[] }[]>`select account_ids from consents where client_id = ${clientId}`);
    expect(kept.map(({ account_ids }) => account_ids)).toEqual([['a0', 'a2']]);
  }, 60_000);

  test('SGN-008 a device is let in by its code, after a sign-in on the way', async () => {
    const started = await asApplication('/oauth/device_authorization', { scope: 'openid' });
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
    const started = await asApplication('/oauth/bc-authorize', { scope: 'openid', login_hint: EMAIL, binding_message: 'Order 4711' });
    await page.goto(`${platform.ready.auth}/ciba?${new URLSearchParams({ auth_req_id: String(started['auth_req_id']) })}`);
    await page.getByText('Order 4711').waitFor();
    await shot('ciba');
    await pressed('approve');
    await page.getByText('Allowed. You can close this page.').waitFor();
    // Decided is decided.
    await page.reload();
    await page.locator('[data-alert]:visible').waitFor();
  }, 60_000);
});
