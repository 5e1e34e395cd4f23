import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { openAccount } from '../fixtures/account.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { LiveWire } from '../fixtures/live-wire.ts';
import { outboxOf } from '../fixtures/outbox.ts';
import { Platform } from '../fixtures/platform.ts';
import { Witness } from '../fixtures/witness.ts';
import { SYSTEM } from '@platform/sdk';

const MAIN = fileURLToPath(new URL('../../kernel/main.ts', import.meta.url));
const split = process.env['PLATFORM_E2E_MODE'] === 'split';
const PASSWORD = 'a long walk by the sea 7';
const shots = process.env['PLATFORM_E2E_SHOTS'];

describe(`the first journey, ${split ? 'one process per service' : 'all in one process'}`, () => {
  // The vertical lives outside the repository, as somebody else's code would.
  const verticals = mkdtempSync(join(tmpdir(), 'platform-verticals-'));
  cpSync(fileURLToPath(new URL('../verticals', import.meta.url)), verticals, { recursive: true });
  // Code that others may read runs as a user of its own, where the platform may choose one.
  chmodSync(verticals, 0o755);
  const platform = new Platform({ split, pluginDirs: verticals });
  let browser: Browser;
  let ada: Page;
  let second: Page;
  let contextOfSecond: BrowserContext;
  let witness: Witness;
  let envUrl = '';
  let email = '';

  beforeAll(async () => {
    await platform.start();
    ({ email } = platform.firstStart);
    browser = await openBrowser(platform);
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    witness = new Witness(context);
    ada = await context.newPage();
  }, 180_000);

  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
    rmSync(verticals, { recursive: true, force: true });
  }, 60_000);

  const shot = async (page: Page, name: string) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  };
  const signIn = async (page: Page, password: string) => {
    await page.getByLabel('Email').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };

  test('1 a start prints where to go, and once who may sign in', () => {
    expect(platform.ready.plugins).toEqual(expect.arrayContaining(['acme', 'auth', 'sys', 'proxy', 'bus', 'bff', 'web', 'lending']));
    expect(platform.firstStart.email).toBe('admin@ops.sys.localhost');
    expect(platform.firstStart.password).toMatch(/^[A-Za-z0-9_-]{20,}$/);
  });

  test('2 CON-040 a person is sent to sign in, must choose a new password, and lands in the console with nothing but a cookie that no script reads', async () => {
    await ada.goto(platform.ready.console);
    await ada.waitForURL(`${platform.ready.auth}/sign-in**`);
    await shot(ada, 'sign-in');
    await signIn(ada, platform.firstStart.password);
    await ada.getByLabel('New password').fill('passwordpassword');
    await ada.getByRole('button', { name: 'Save password' }).click();
    await ada.getByText(/guessed first/).waitFor();
    await shot(ada, 'password-change');
    await ada.getByLabel('New password').fill(PASSWORD);
    await ada.getByRole('button', { name: 'Save password' }).click();
    await ada.getByRole('heading', { name: 'Organizations', level: 1 }).waitFor();
    expect(new URL(ada.url()).origin).toBe(platform.ready.console);
    const cookies = await ada.context().cookies();
    expect(cookies.find(({ name }) => name === 'bff-session')).toMatchObject({ httpOnly: true, secure: true });
    expect(await ada.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toMatch(
      /eyJ|bff-session/,
    );
  });

  test('3 CON-016 whatever page is opened without a session asks for one first, and the old one-time password is worth nothing any more', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${platform.ready.console}/#/home?org=01900000-0000-7000-8000-00000000abcd`);
    await page.waitForURL(`${platform.ready.auth}/sign-in**`);
    await signIn(page, platform.firstStart.password);
    await expect.poll(() => page.getByRole('alert').textContent()).toBeTruthy();
    await context.close();
  });

  test('4 CON-003 CON-022 an organization and an environment are created, the next click is authorized, and a second window sees it without reloading', async () => {
    contextOfSecond = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    second = await contextOfSecond.newPage();
    await second.goto(platform.ready.console);
    await signIn(second, PASSWORD);
    await second.getByRole('heading', { name: 'Organizations', level: 1 }).waitFor();
    await second.getByRole('status', { name: /Live updates: live/ }).waitFor();

    await ada.getByRole('link', { name: 'Create organization' }).first().click();
    await ada.getByLabel('Organization name').fill('Åkerö & Sons');
    await expect.poll(() => ada.getByLabel('Slug').inputValue()).toBe('akero-sons');
    await ada.getByText('Available', { exact: true }).waitFor();
    await shot(ada, 'org-create');
    await ada.getByRole('button', { name: 'Create organization' }).click();
    await ada.getByRole('heading', { name: 'Åkerö & Sons', level: 1 }).waitFor();
    await second.getByText('Åkerö & Sons').first().waitFor();

    await ada.getByRole('link', { name: 'Create environment' }).first().click();
    await ada.getByLabel('Environment name').fill('Production');
    await ada.getByText('Available', { exact: true }).waitFor();
    const created = ada.waitForRequest(request => request.method() === 'POST' && request.url().includes('/v1/e'));
    await ada.getByRole('button', { name: 'Create environment' }).click();
    expect((await created).headers()['x-bff-csrf']).toBeTruthy();
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
    envUrl = ada.url();
    await ada.getByRole('switch', { name: 'Lending enabled' }).waitFor();
    await shot(ada, 'env-home');
  });

  test('5 CON-006 the audit page shows what was done, with one correlation id from the click to the event', async () => {
    await ada.getByRole('list', { name: 'Environment' }).getByRole('link', { name: 'Audit' }).click();
    const row = ada.getByRole('row').filter({ hasText: 'env.created' });
    await row.waitFor();
    await shot(ada, 'audit');
    const [event] = await outboxOf(platform.dataDir, 'sys', 'platform:sys:env:created');
    expect(event?.relayed).toBe(true);
    expect(event?.correlation_id).toMatch(/^dsh-\d+-[a-z0-9]{8}$/);
    await expect.poll(() => row.textContent()).toContain(event?.correlation_id as string);
  });

  test('6 CON-002 CON-007 CON-029 CON-030 a vertical nobody compiled in has its pages in the navigation, drawn from what it declares, and works live', async () => {
    await ada.goto(envUrl);
    const loans = (page: Page) => page.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Loans' });
    await loans(ada).click();
    await ada.getByText('Nobody has applied for a loan yet.').waitFor();
    await ada.getByRole('button', { name: 'Apply for a loan' }).click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByLabel('Applicant').fill('Grace');
    await dialog.getByLabel('Amount in minor units').fill('250000');
    await dialog.getByRole('button', { name: 'Apply for a loan' }).click();
    await ada.getByRole('row').filter({ hasText: 'Grace' }).waitFor();

    await second.goto(ada.url());
    await second.getByRole('row').filter({ hasText: 'Grace' }).waitFor();
    await second.getByRole('status', { name: /Live updates: live/ }).waitFor();
    await shot(ada, 'loans');

    // From the row to the loan itself, where every act says whose loan it is about (F-46).
    await ada.getByRole('row').filter({ hasText: 'Grace' }).getByRole('link').click();
    await ada.getByRole('heading', { name: 'Loan of Grace' }).waitFor();
    await ada.getByRole('button', { name: 'Approve' }).click();
    await ada.getByRole('dialog').getByText('Approve the loan of Grace?').waitFor();
    await ada.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
    await ada.getByText('Approved', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Approve' }).waitFor({ state: 'hidden' });
    await second.getByRole('row').filter({ hasText: 'approved' }).waitFor();
    await shot(ada, 'loan');

    await ada.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Overview' }).click();
    await ada.getByRole('heading', { name: 'Applications by day' }).waitFor();
    await ada.getByRole('row').filter({ hasText: 'Grace' }).waitFor();
    await shot(ada, 'loans-overview');

    const asked = (await witness.saying('/proxy/lending/'))
      .filter(({ method }) => method !== 'OPTIONS')
      .map(({ method, url }) => `${method} ${url.pathname}`);
    expect([...new Set(asked)].map(line => line.replace(/[0-9a-f-]{36}/, 'ID'))).toEqual(
      expect.arrayContaining([
        'GET /proxy/lending/v1/admin/ui/loans',
        'GET /proxy/lending/v1/admin/loans',
        'POST /proxy/lending/v1/admin/loans',
        'GET /proxy/lending/v1/admin/loan/ID',
        'POST /proxy/lending/v1/admin/loan/ID/decideLoan',
      ]),
    );
    expect(asked.filter(line => !line.includes('/v1/admin/'))).toEqual([]);
  });

  test('6a H-22 a page that could not hear of a change reads it when the gateway begins to listen, when it is told of a loss, and once a failure is over', async () => {
    await ada.goto(envUrl);
    await ada.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Loans' }).click();
    const page = await contextOfSecond.newPage();
    const wire = await LiveWire.of(page);
    await page.goto(ada.url());
    await page.getByRole('row').filter({ hasText: 'Grace' }).waitFor();
    const loan = (of: Page) => of.getByRole('row').filter({ hasText: 'Edsger' });
    await ada.getByRole('button', { name: 'Apply for a loan' }).click();
    await ada.getByRole('dialog').getByLabel('Applicant').fill('Edsger');
    await ada.getByRole('dialog').getByLabel('Amount in minor units').fill('700');
    await ada.getByRole('dialog').getByRole('button', { name: 'Apply for a loan' }).click();
    await loan(ada).waitFor();
    expect(await loan(page).count()).toBe(0);
    wire.letAsk();
    await loan(page).waitFor();

    wire.loseEvents();
    await loan(ada).getByRole('link').click();
    await ada.getByRole('button', { name: 'Approve' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
    await ada.getByText('Approved', { exact: true }).waitFor();
    expect(await loan(page).filter({ hasText: 'approved' }).count()).toBe(0);
    const away = '**/proxy/lending/v1/admin/loans?**';
    await page.route(away, route => route.fulfill({ status: 503, json: { code: 'away', title: 'Away for a moment' } }));
    wire.say({ type: 'lag', skipped: 1, from: '', to: '' });
    await page.getByText('This may be out of date').waitFor();
    expect(await loan(page).count()).toBe(1);
    await page.unroute(away);
    await loan(page).filter({ hasText: 'approved' }).waitFor();
    await page.getByText('This may be out of date').waitFor({ state: 'hidden' });
    await page.close();
  });

  test('6b FUN-004 FUN-019 FUN-024 an author’s rule is built, uploaded, validated and activated in the console, and from then on decides', async () => {
    const rule = fileURLToPath(new URL('../functions/credit-rule', import.meta.url));
    const built = spawnSync(process.execPath, [MAIN, 'func', 'build', rule], { encoding: 'utf8' });
    expect([built.stderr, built.status]).toEqual(['', 0]);
    await ada.goto(envUrl);
    await ada.getByRole('list', { name: 'Functions' }).getByRole('link', { name: 'Modules' }).click();
    await ada.getByRole('button', { name: 'Upload a module' }).first().click();
    const upload = ada.getByRole('dialog');
    await upload.getByLabel('Domain').fill('lending');
    await upload.getByLabel('Product').fill('credit-rule');
    await upload.getByLabel('Language').selectOption('assemblyscript');
    await upload.getByLabel('Module').setInputFiles(join(rule, 'build', 'function.wasm'));
    await upload.getByLabel('Hooks').fill('["decide"]');
    await upload.getByLabel('Parameters').fill('{ "largest_minor": 1000000 }');
    await shot(ada, 'module-upload');
    await upload.getByRole('button', { name: 'Upload a module' }).click();
    await ada.getByRole('row').filter({ hasText: 'credit-rule' }).getByRole('link').click();
    await ada.getByRole('button', { name: 'Validate' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Validate' }).click();
    await ada.getByText('calls_host').waitFor();
    await shot(ada, 'module-validated');
    await ada.keyboard.press('Escape');
    await ada.getByRole('button', { name: 'Activate' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Activate' }).click();
    await ada.getByRole('button', { name: 'Deprecate' }).waitFor();
    await shot(ada, 'module');

    // Grace owes 250000 already, as the rule hears from the vertical.
    await ada.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Loans' }).click();
    await ada.getByRole('button', { name: 'Apply for a loan' }).click();
    const loan = ada.getByRole('dialog');
    await loan.getByLabel('Applicant').fill('Grace');
    await loan.getByLabel('Amount in minor units').fill('900000');
    await loan.getByRole('button', { name: 'Apply for a loan' }).click();
    await ada.getByRole('row').filter({ hasText: 'declined' }).getByRole('link').click();
    await ada.getByText('Nobody owes more than 1000000.').waitFor();
    await ada.getByRole('list', { name: 'Functions' }).getByRole('link', { name: 'Executions' }).click();
    await ada.getByRole('row').filter({ hasText: 'credit-rule' }).getByRole('link').click();
    await ada.getByRole('tab', { name: 'Logs' }).click();
    await ada.getByText('would owe 1150000 of 1000000').waitFor();
    await shot(ada, 'execution');
  });

  test('7 disabling the service takes it away everywhere, enabling brings it back, and nothing is restarted', async () => {
    const loans = (page: Page) => page.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Loans' });
    const call = () =>
      ada.evaluate(
        async ({ gateway, env }) =>
          (
            await fetch(`${gateway}/proxy/lending/v1/loans?target_env_id=${env}`, {
              credentials: 'include',
              headers: { 'X-BFF-Target-Env-Id': env },
            })
          ).status,
        {
          gateway: platform.ready.gateway,
          env: /env=([0-9a-f-]{36})/.exec(envUrl)?.[1] as string,
        },
      );
    await ada.goto(envUrl);
    expect(await ada.getByRole('switch', { name: 'Tenant registry enabled' }).isDisabled()).toBe(true);
    await ada.getByRole('switch', { name: 'Lending enabled' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Turn Lending off' }).click();
    await loans(ada).waitFor({ state: 'hidden' });
    await loans(second).waitFor({ state: 'hidden' });
    await expect.poll(call).toBe(403);
    await ada.getByRole('switch', { name: 'Lending enabled' }).click();
    await loans(ada).waitFor();
    await expect.poll(call).toBe(200);
  });

  test('CON-001 CON-009 CON-015 the console is one page whose every call goes to its gateway, and keeps no data', async () => {
    const [console_, gateway] = [platform.ready.console, platform.ready.gateway];
    const system = '00000000-0000-7000-8000-000000000002';
    await ada.getByRole('link', { name: 'Platform', exact: true }).click();
    await ada.getByRole('list', { name: 'Tenant registry' }).getByRole('link', { name: 'Unfinished work' }).click();
    await ada.getByRole('heading', { name: 'Unfinished work', level: 1 }).waitFor();
    const read = async () => (await witness.saying('/v1/admin/unfinished')).filter(({ method }) => method === 'GET');
    // The heading is there before the rows are asked for.
    await expect.poll(async () => (await read()).length).toBeGreaterThan(0);
    const data = await read();
    for (const { url, headers } of data)
      expect([headers['x-bff-target-env-id'], url.searchParams.get('target_env_id')]).toEqual([system, system]);
    const byConsole = witness.seen.filter(({ headers }) => headers['origin'] === console_ || headers['referer']?.startsWith(console_));
    expect(
      byConsole
        .filter(({ url, document }) => !document && url.origin !== console_ && url.origin !== gateway.replace('https:', url.protocol))
        .map(({ url }) => url.origin),
    ).toEqual([]);
    expect(await witness.kept(ada)).toMatchObject({
      local: {},
      session: expect.not.objectContaining({ orgs: expect.anything() }),
      databases: 0,
      caches: 0,
      readableCookies: '',
    });
    await ada.goto(envUrl);
  });

  test('CON-011 who is signed in, where and with which rights is known to the page alone: its own host is asked for files and told nothing', async () => {
    const {
      user,
      scopes,
      csrf_token: token,
      org_id: org,
    } = await ada.evaluate(
      async gateway =>
        (await (await fetch(`${gateway}/auth/session`, { credentials: 'include' })).json()) as {
          user: { user_id: string };
          scopes: string[];
          csrf_token: string;
          org_id: string;
        },
      platform.ready.gateway,
    );
    expect([user.user_id.length, scopes.length > 0, token.length > 20, org.length]).toEqual([36, true, true, 36]);
    // The page has them, and says them to its gateway…
    expect(
      (await witness.saying(token)).every(
        ({ url, headers }) => url.origin.endsWith(new URL(platform.ready.gateway).host) && headers['x-bff-csrf'] === token,
      ),
    ).toBe(true);
    expect((await witness.saying(token)).length).toBeGreaterThan(0);
    await ada.goto(`${platform.ready.console}/#/bootstrap`);
    await ada.getByText('Feature version').waitFor();
    await ada.getByText(scopes[0] as string).waitFor();
    // …while the host that the page comes from never hears of them; the cookie is a reference that the gateway alone can read.
    const own = witness.seen.filter(({ url }) => url.origin === platform.ready.console);
    expect(own.length).toBeGreaterThan(0);
    expect(
      own.filter(
        ({ method, url, body, headers }) =>
          method !== 'GET' ||
          body !== '' ||
          url.search !== '' ||
          !/^(bff-session=[\w-]+)?$/.test(headers['cookie'] ?? '') ||
          headers['authorization'] !== undefined,
      ),
    ).toEqual([]);
    for (const secret of [token, user.user_id, org])
      expect(own.filter(({ url, headers }) => JSON.stringify([url.href, headers]).includes(secret))).toEqual([]);
    const { local, session, markup } = await witness.kept(ada);
    for (const kept of [JSON.stringify(local), JSON.stringify(session), markup]) expect(kept).not.toContain(token);
    // Another visitor's browser gets the same bytes and no state with them.
    const stranger = await browser.newContext();
    const [mine, theirs] = await Promise.all(
      [ada, await stranger.newPage()].map(async page => (await page.goto(`${platform.ready.console}/console.json`))?.text()),
    );
    await stranger.close();
    expect(theirs).toBe(mine);
    await ada.goto(envUrl);
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
    await ada.getByRole('status', { name: /Live updates: live/ }).waitFor();
  });

  test('8 Ctrl-C stops everything, and the next start has all data', async () => {
    expect(await platform.stop()).toBe(0);
    await platform.start();
    expect(platform.output).not.toContain('First start');
    // Nobody reloads the page: it finds the platform again by itself.
    await ada.getByRole('status', { name: /Live updates: live/ }).waitFor();
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
  }, 180_000);

  test('9 after kill -9 nothing that was acknowledged is lost', async () => {
    await ada.goto(platform.ready.console);
    await ada.getByRole('link', { name: 'Create organization' }).first().click();
    await ada.getByLabel('Organization name').fill('Last Words');
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create organization' }).click();
    await ada.getByRole('heading', { name: 'Last Words', level: 1 }).waitFor();
    await platform.kill();
    await platform.start();
    await ada.goto(platform.ready.console);
    await ada.getByText('Last Words').first().waitFor();
    await expect
      .poll(async () => (await outboxOf(platform.dataDir, 'sys', 'platform:sys:org:created')).every(({ relayed }) => relayed))
      .toBe(true);
  }, 180_000);

  test('9b an operator takes the vertical out: it ends, its pages go, nothing of it is left; brought back, it has its data', async () => {
    const row = ada.getByRole('row').filter({ hasText: 'lending' });
    /** What the services remember of it, besides its own data. */
    const traces = async () => [
      await inDatabaseOf(platform.dataDir, 'auth', async sql => (await sql`select 1 from workloads where name = 'lending'`).count),
      await inDatabaseOf(platform.dataDir, 'bus', async sql => (await sql`select 1 from event_contracts where service = 'lending'`).count),
      await inDatabaseOf(platform.dataDir, 'sys', async sql => (await sql`select 1 from verticals where 'lending' = any(services)`).count),
    ];
    const decide = async (label: string) => {
      await row.getByRole('button', { name: label }).click();
      await shot(ada, `vertical-${label.toLowerCase().replace(' ', '-')}`);
      await ada.getByRole('dialog').getByRole('button', { name: label }).click();
    };
    expect(await traces()).toEqual([1, 1, 1]);
    await ada.goto(`${platform.ready.console}/#/sys/verticals?env=${SYSTEM.envId}`);
    await row.getByText('enabled').waitFor();
    await decide('Take out');
    await row.getByText('gone').waitFor();
    await shot(ada, 'verticals');
    await expect.poll(traces).toEqual([0, 0, 0]);
    await ada.goto(envUrl);
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
    await expect.poll(() => ada.getByRole('list', { name: 'Lending' }).count()).toBe(0);

    await ada.goto(`${platform.ready.console}/#/sys/verticals?env=${SYSTEM.envId}`);
    await decide('Bring back');
    await row.getByText('enabled').waitFor();
    await expect.poll(traces).toEqual([1, 1, 1]);
    await ada.goto(envUrl);
    await ada.getByRole('list', { name: 'Lending' }).getByRole('link', { name: 'Loans' }).click();
    await ada.getByRole('row').filter({ hasText: 'Grace' }).first().waitFor();
  });

  test('10 F-56 deleting an environment says what each service loses, and every service loses it', async () => {
    const env = /env=([0-9a-f-]{36})/.exec(envUrl)?.[1] as string;
    /** Services that were asked and have not answered that all is gone. */
    const waiting = () =>
      inDatabaseOf(
        platform.dataDir,
        'sys',
        async sql => (await sql`select 1 from work_tasks where name = 'purgeEnvironment' and payload ->> 'env_id' = ${env}`).count,
      );
    await ada.goto(`${platform.ready.console}/#/settings?env=${env}`);
    await ada.getByRole('button', { name: /Delete environment/ }).click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByText('Of Lending').waitFor();
    await dialog.getByText('loans: 3').waitFor();
    await shot(ada, 'env-delete');
    await dialog.getByRole('textbox').fill('production');
    await dialog.getByRole('button', { name: 'Delete environment' }).click();
    await ada.getByText('Production deleted').waitFor();
    await expect.poll(waiting).toBe(0);
  });

  test('11 F-11 whoever signs out is asked for the password again, and everywhere means the other window too', async () => {
    const asked = (page: Page) => page.getByLabel('Password', { exact: true }).waitFor();
    const leave = async (page: Page, item: string) => {
      await page.getByRole('button', { name: /^Account of/ }).click();
      await page.getByRole('link', { name: item, exact: true }).click();
    };
    await second.goto(platform.ready.console);
    await second.getByText('Last Words').first().waitFor();
    await leave(ada, 'Sign out');
    await ada.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await ada.getByRole('link', { name: 'Sign in' }).click();
    await asked(ada);
    await second.reload();
    await second.getByText('Last Words').first().waitFor();
    await signIn(ada, PASSWORD);
    await ada.getByText('Last Words').first().waitFor();
    await leave(ada, 'Sign out everywhere');
    await shot(ada, 'sign-out-everywhere');
    await ada.getByRole('button', { name: 'Sign out everywhere' }).click();
    await ada.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await second.goto('about:blank');
    await second.goto(platform.ready.console);
    await asked(second);
  });

  test('12 F-07 somebody in no group and without an invitation gets a page in words, and no session', async () => {
    await openAccount(platform.dataDir, 'stranger@example.org', PASSWORD);
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(platform.ready.console);
    await page.getByLabel('Email').fill('stranger@example.org');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    const answered = page.waitForResponse(response => response.url().includes('/auth/callback'));
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    expect((await answered).status()).toBe(403);
    await page.getByRole('heading', { name: 'This application is not open to you' }).waitFor();
    await shot(page, 'not-open');
    expect((await context.cookies()).map(({ name }) => name)).not.toContain('bff-session');
    await context.close();
  });
});
