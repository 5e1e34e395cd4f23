import type { Page } from 'playwright';
import { SYSTEM } from '@platform/sdk';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { shoot } from '../fixtures/browser/shots.ts';
import { Witness } from '../fixtures/witness.ts';

describe(`a tenant from its look to its end, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;
  let org = '';
  let env = '';
  let witness: Witness;
  let traffic: Page;

  beforeAll(() => {
    ada = visit.page;
    witness = new Witness(ada.context());
  });

  const shot = (name: string) => visit.shot(`tenants-${name}`);
  const open = (path: string) => visit.goTo(path);

  test('1 an organization and its environment', async () => {
    await enterAsFirstAdministrator(ada, platform);
    // Open from the beginning: the minute that it waits for goes by while the rest happens.
    traffic = await visit.browser.newPage({ storageState: await ada.context().storageState() });
    await traffic.goto(`${platform.ready.console}/#/stat/traffic?env=${SYSTEM.envId}`);
    await traffic.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor();
    await visit.createOrganization('Harbour');
    org = new URLSearchParams(ada.url().split('?')[1]).get('org') ?? '';
    await ada.getByRole('link', { name: 'Create environment' }).click();
    await ada.getByLabel('Environment name').fill('Production');
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create environment' }).click();
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
    env = new URLSearchParams(ada.url().split('?')[1]).get('env') ?? '';
    expect([org, env].every(id => id.length === 36)).toBe(true);
  });

  test('F-12 F-55 F-57 what the platform needs stays on, and each page is shown where it belongs', async () => {
    await open(`home?env=${env}`);
    await expect.poll(() => ada.getByRole('switch', { name: 'Tenant registry enabled' }).isDisabled()).toBe(true);
    await shot('services');
    await open(`sys/domains?env=${env}`);
    await ada.getByText("Everything answers under the platform's own domain").waitFor();
    await shot('domains');
    await open(`sys/work?env=${env}`);
    await ada.getByText('This page belongs to the platform').waitFor();
    expect(await ada.getByRole('navigation').getByRole('link', { name: 'Work' }).count()).toBe(0);
    await shot('elsewhere');
    await ada.getByRole('link', { name: 'Open it for the platform' }).click();
    await ada.getByRole('heading', { name: 'Work', level: 1 }).waitFor();
    const job = ada.getByRole('row').filter({ hasText: 'Look again for the DNS records' });
    await job.getByRole('button', { name: 'Run now' }).click();
    await shot('work');
    await job.getByText('Ok', { exact: true }).waitFor();
    await ada.getByRole('navigation').getByRole('link', { name: 'Certificates' }).waitFor();
    await open(`members?org=${org}`);
    await ada.getByRole('button', { name: 'Invite', exact: true }).click();
    await ada.getByRole('dialog').getByLabel('They join as').waitFor();
    await shot('invite');
    await ada.keyboard.press('Escape');
    await open(`sys/applications?org=${org}`);
    await ada.getByText('Applications belongs to an environment.').waitFor();
    await shot('choose');
  });

  test('2 how its people sign in is said on a page, with the keyboard alone, and holds at once', async () => {
    await open(`auth/sign_in?env=${env}`);
    await ada.getByRole('heading', { name: 'Sign-in settings', level: 1 }).waitFor();
    await ada.getByLabel('Passkeys').focus();
    await ada.keyboard.press('Space');
    await ada.keyboard.press('Tab');
    await ada.keyboard.type('Linked wallets');
    await ada.keyboard.press('Tab');
    await ada.keyboard.type('After a wait and');
    await shot('sign-in');
    await ada.getByLabel('Hours a recovery waits').fill('1');
    await ada.keyboard.press('Enter');
    await ada.getByText('Enter 24 or more.').waitFor();
    await ada.getByLabel('Hours a recovery waits').fill('48');
    await ada.keyboard.press('Enter');
    await ada.getByText(/Save settings.*done|saved/i).waitFor();
    await ada.reload();
    await expect.poll(() => ada.getByLabel('Passkeys').isChecked()).toBe(true);
    expect(await ada.getByLabel('Account recovery').inputValue()).toBe('wait_and_approval');
    expect(await ada.getByLabel('Hours a recovery waits').inputValue()).toBe('48');
    const visitor = await visit.browser.newPage();
    await visitor.goto(`${platform.ready.auth.replace('auth.ops.sys.', `auth.production.harbour.`)}/sign-in`);
    await visitor.locator('[data-passkey]').waitFor();
    await visitor.goto(`${platform.ready.auth.replace('auth.ops.sys.', `auth.production.harbour.`)}/account-recovery`);
    await visitor.getByRole('button', { name: 'Recover the account' }).waitFor();
    await visitor.close();
  });

  test('3 REG-090 CON-005 the look is previewed as it is typed, merged with what the organization set', async () => {
    await open(`branding?org=${org}`);
    await ada.getByLabel('Font family').fill('Georgia, serif');
    await ada.getByRole('button', { name: 'Save branding' }).click();
    await ada.getByText('Branding saved').waitFor();
    await open(`branding?env=${env}`);
    await ada.getByText('organization', { exact: true }).waitFor();
    await ada.getByLabel('Logo address').fill('https://logo.example/harbour.svg');
    const preview = ada.getByRole('img', { name: 'Preview of a sign-in page with this branding' });
    await expect.poll(() => preview.evaluate(element => getComputedStyle(element).fontFamily)).toContain('Georgia');
    await ada.getByText('this environment', { exact: true }).waitFor();
    await shot('branding');
    // The word of the save before may still be on screen: the answer says that this one is done.
    const answered = ada.waitForResponse(response => response.url().includes('branding') && response.request().method() !== 'GET');
    await ada.getByRole('button', { name: 'Save branding' }).click();
    expect((await answered).ok()).toBe(true);
    await ada.getByText('Branding saved').last().waitFor();
  });

  test('4 who can do something here is asked on a page, and unfinished work has one', async () => {
    await open(`sys/access?env=${env}`);
    await ada.getByLabel('Action').first().fill('sys:env:admin');
    await ada.keyboard.press('Enter');
    await ada.getByRole('cell', { name: platform.firstStart.email }).waitFor();
    await shot('access');
    await open(`sys/unfinished?env=${SYSTEM.envId}`);
    await ada.getByText('Everything has ended.').waitFor();
    await shot('unfinished');
  });

  test('5 REG-004 the trail of the environment is filtered and proven on its page', async () => {
    await open(`audit?env=${env}`);
    await ada.getByText('env.created').first().waitFor();
    await ada.getByRole('button', { name: /verify/i }).click();
    await ada.getByText('Nothing was changed.').waitFor();
    await shot('audit');
  });

  test('CON-004 organization and environment are renamed in their settings, and members are seen', async () => {
    for (const [where, from, to] of [
      [`org=${org}`, 'Harbour', 'Harbour Ltd'],
      [`env=${env}`, 'Production', 'Live'],
    ] as const) {
      await open(`settings?${where}`);
      const name = ada.getByLabel(/^Name/);
      await expect.poll(() => name.inputValue()).toBe(from);
      await name.fill(to);
      const saved = ada.waitForResponse(response => response.request().method() === 'PUT');
      await ada.getByRole('button', { name: 'Save name' }).click();
      expect((await saved).status()).toBe(200);
      await open(`home?${where}`);
      await ada.getByRole('heading', { name: to, level: 1 }).waitFor();
    }
    await open(`members?org=${org}`);
    await ada.getByRole('row').filter({ hasText: platform.firstStart.email }).getByText('Owner').waitFor();
    await shot('members');
    await open(`env/create?org=${org}`);
    await ada.getByLabel('Environment name').fill('Trial');
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create environment' }).click();
    await ada.getByRole('heading', { name: 'Trial', level: 1 }).waitFor();
    const statistics = ada.getByRole('switch', { name: 'Statistics enabled' });
    await statistics.click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Turn Statistics off' }).click();
    await expect.poll(() => statistics.isChecked()).toBe(false);
    await open(ada.url().split('#/')[1]?.replace('home', 'settings') ?? '');
    await ada.getByRole('button', { name: 'Delete environment' }).click();
    await ada.getByRole('dialog').getByRole('textbox').fill('trial');
    await ada.getByRole('dialog').getByRole('button', { name: 'Delete environment' }).click();
    await ada.getByText('Trial deleted').waitFor();
  });

  test('what this account may do is told by name, and whether the registry can do its work', async () => {
    await open('bootstrap');

    await ada.getByText('sys:org:admin', { exact: true }).waitFor();
    await ada.getByText('Up', { exact: true }).waitFor();
    await shot('access-of-mine');
  });

  test('the fleet is seen live: what each service needs is a small line, and what can be done to it names it', async () => {
    await open(`captain/overview?env=${SYSTEM.envId}`);
    const registry = ada.getByRole('row').filter({ hasText: 'Tenant registry' }).first();
    await registry.getByText('Active', { exact: true }).waitFor();
    await registry.locator('svg.spark').nth(2).waitFor();
    await shot('fleet');
    for (const [tab, text] of [
      ['Machines', '127.0.0.1'],
      ['Alerts', 'No '],
      ['Upgrades', 'No upgrade runs'],
    ] as const) {
      await ada.getByRole('tab', { name: tab }).click();
      await ada.getByText(text).first().waitFor();
    }
    await shot('fleet-upgrades');
  });

  test('G-PROXY-06 screening of an environment is switched on at its page, and its hosts refuse an attack from then on', async () => {
    const visitor = await visit.browser.newPage();
    const auth = `https://auth.production.harbour.localhost:${new URL(platform.ready.console).port}`;
    const attacked = async () =>
      (await visitor.goto(`${auth}/?q=${encodeURIComponent("1' union select password from users--")}`))?.status();
    await open(`proxy/settings?env=${env}`);
    const screening = ada.getByLabel('Screening');
    await expect.poll(() => screening.inputValue()).toBe('default');
    expect(await attacked()).not.toBe(403);
    await shot('ingress-settings');
    await screening.selectOption({ label: 'Block: findings are recorded, requests are refused' });
    await ada.getByLabel('Requests per second of one address').fill('50');
    await ada.getByRole('button', { name: 'Save settings' }).click();
    await expect.poll(attacked).toBe(403);
    await ada.getByRole('tab', { name: 'In force' }).click();
    await ada.getByText('Block', { exact: true }).waitFor();
    await shot('ingress-settings-in-force');
    await ada.reload();
    await expect.poll(() => screening.inputValue()).toBe('block');
    await screening.selectOption('default');
    await ada.getByRole('button', { name: 'Save settings' }).click();
    await expect.poll(attacked).not.toBe(403);
    await visitor.close();
  });

  test('every page in the navigation opens, of the platform and of an environment', { timeout: 120_000 }, async () => {
    for (const place of [SYSTEM.envId, env]) {
      await open(`home?env=${place}`);
      await ada.getByRole('navigation').getByRole('link', { name: 'Audit' }).first().waitFor();
      const links = await ada
        .getByRole('navigation')
        .getByRole('link')
        .evaluateAll(all => all.map(link => (link as HTMLAnchorElement).hash));
      expect(links.length).toBeGreaterThan(20);
      for (const link of new Set(links)) {
        await ada.goto(`${platform.ready.console}/${link}`);
        await ada.locator('main h1').first().waitFor();
        await expect.poll(() => ada.locator('main [role=status].loading').count()).toBe(0);
        expect([link, await ada.locator('main [role=alert]').allTextContents()]).toEqual([link, []]);
        if (/#\/(workflow|cron|func)\//.test(link)) await shot(`page-${link.replaceAll(/[^a-z]+/g, '-').slice(0, 40)}`);
      }
    }
  });

  test('6 G-SYS-02 suspended it can be read and not changed, and is resumed', async () => {
    await open(`settings?env=${env}`);
    await ada.getByRole('button', { name: 'Suspend environment' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
    await ada.getByRole('button', { name: 'Resume environment' }).waitFor();
    await shot('suspended');
    await ada.getByRole('button', { name: 'Resume environment' }).click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
    await ada.getByRole('button', { name: 'Suspend environment' }).waitFor();
  });

  test('7 H-32 REG-064 a delete says first what goes, asks for the slug, and leaves nothing to see', async () => {
    await open(`settings?org=${org}`);
    await ada.getByRole('button', { name: /Delete organization/ }).click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByText('1 environment').waitFor();
    await dialog.getByText(/auth\.production\.harbour/).waitFor();
    const confirm = dialog.getByRole('button', { name: 'Delete organization' });
    expect(await confirm.isDisabled()).toBe(true);
    await shot('delete');
    await dialog.getByRole('textbox').fill('harbour');
    await ada.keyboard.press('Enter');
    await ada.getByText('Harbour Ltd deleted').waitFor();
    await open(`home?org=${org}`);
    await expect.poll(() => ada.getByRole('heading', { name: /Harbour/, level: 1 }).count()).toBe(0);
  });

  test('CON-026 every call to the registry on the way went through the proxy, and each kind was among them', async () => {
    const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
    const calls = (await witness.saying('/proxy/sys/')).filter(
      ({ method, url }) => method !== 'OPTIONS' && url.pathname.startsWith('/proxy/sys/'),
    );
    const kinds = new Set(
      calls.map(
        ({ method, url }) =>
          `${method} ${url.pathname
            .replace('/proxy/sys', '')
            .replaceAll(uuid, '{id}')
            .replace(/slug-available\/[^/]+$/, 'slug-available/{slug}')}`,
      ),
    );
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        'GET /v1/bootstrap',
        'POST /v1/o',
        'GET /v1/o',
        'GET /v1/org/{id}',
        'PUT /v1/org/{id}',
        'DELETE /v1/org/{id}',
        'POST /v1/e',
        'GET /v1/env/{id}',
        'PUT /v1/env/{id}',
        'GET /v1/env/{id}/services',
        'GET /v1/org/{id}/memberships',
        'GET /v1/slug-available/{slug}',
        'GET /v1/verticals/services',
        'GET /v1/org/{id}/branding',
        'PUT /v1/org/{id}/branding',
        'GET /v1/env/{id}/branding',
        'PUT /v1/env/{id}/branding',
        'GET /v1/env/{id}/branding/merged',
        'GET /v1/audit',
        'GET /v1/readiness',
        'GET /v1/health',
        'GET /v1/scopes/catalog',
        'GET /v1/e',
        'DELETE /v1/env/{id}',
        'PUT /v1/env/{id}/services',
      ]),
    );
    // Never by another way: not at the registry's own host, not at the ingress.
    const elsewhere = witness.seen.filter(
      ({ url }) =>
        url.hostname.startsWith('sys.') ||
        (/^\/v1\/(o|e|org|env|bootstrap|audit)\b/.test(url.pathname) && !url.hostname.startsWith('auth.')),
    );
    expect(elsewhere.map(({ url }) => url.href)).toEqual([]);
  });

  test('STA-004 CON-038 services tell of their requests, and the page shows them when the minute is over', {
    timeout: 150_000,
  }, async () => {
    // The page is not reloaded: the snapshot of the minute moves it.
    await traffic.getByRole('row').filter({ hasText: 'sys' }).waitFor({ timeout: 130_000 });
    await shoot(traffic, 'stat-traffic');
  });
});
