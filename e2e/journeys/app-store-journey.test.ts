import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { Witness } from '../fixtures/witness.ts';

/** The smallest PNG there is: one pixel. */
const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

describe(`an application from its listing to its end, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;
  let env = '';
  let witness: Witness;

  beforeAll(() => {
    ada = visit.page;
    witness = new Witness(ada.context());
  });
  const shot = (name: string) => visit.shot(`app-${name}`);
  const open = (page: string) => visit.goTo(`app/${page}?env=${env}`);
  const row = (text: string) => ada.getByRole('row').filter({ hasText: text });
  const confirmed = (name: string) => ada.getByRole('dialog').getByRole('button', { name, exact: true }).click();

  test('1 somebody lists an application, gives it an image and publishes it', async () => {
    await enterAsFirstAdministrator(ada, platform);
    await visit.createOrganization('Foundry');
    await ada.getByRole('link', { name: 'Create environment' }).click();
    await ada.getByLabel('Environment name').fill('Production');
    await ada.getByText('Available', { exact: true }).waitFor();
    await ada.getByRole('button', { name: 'Create environment' }).click();
    await ada.getByRole('heading', { name: 'Production', level: 1 }).waitFor();
    env = new URLSearchParams(ada.url().split('?')[1]).get('env') ?? '';
    await open('listings');
    await ada.getByText('Nothing is listed yet.').waitFor();
    await shot('store-empty');
    await ada.getByRole('button', { name: 'List a release of an application' }).first().click();
    const form = ada.getByRole('dialog');
    await form.getByLabel('Application').fill('order-book');
    await form.getByLabel('Version').fill('1.4.0');
    await form.getByLabel('Name', { exact: false }).first().fill('Order book');
    await form.getByLabel('Backend address').fill('https://orders.example.com');
    await form.getByLabel('Who sees it').selectOption('env');
    await shot('create');
    await form.getByRole('button', { name: 'List a release of an application' }).click();
    await row('Order book').waitFor();
    await shot('store');
    await row('Order book').getByRole('link').click();
    await ada.getByRole('heading', { name: 'Order book 1.4.0' }).waitFor();
    await ada.getByRole('button', { name: 'Add an image' }).click();
    await form.getByLabel('What it shows').selectOption('icon');
    await form.getByLabel('Kind of image').selectOption('image/png');
    await form.locator('input[type=file]').setInputFiles({ name: 'icon.png', mimeType: 'image/png', buffer: PIXEL });
    await shot('image');
    await form.getByRole('button', { name: 'Add an image' }).click();
    await form.waitFor({ state: 'hidden' });
    await ada.getByRole('tab', { name: 'Images' }).click();
    await ada.getByText('1x1').waitFor();
    await ada.getByRole('button', { name: 'Publish' }).click();
    await confirmed('Publish');
    await ada.getByText('Published', { exact: true }).first().waitFor();
    await ada.getByRole('tab', { name: 'Roles' }).click();
    await shot('listing');
  });

  test('2 an administrator installs it on a form whose choices come from the service, and reads its secret once', async () => {
    await open('instances');
    await ada.getByText('Nothing is installed here yet.').waitFor();
    await ada.getByRole('button', { name: 'Install an application' }).click();
    const form = ada.getByRole('dialog');
    await form.getByLabel('Application').selectOption({ label: 'Order book 1.4.0' });
    await form.getByLabel('Name').fill('Our orders');
    await form.getByLabel('Slug').fill('orders');
    const auth = platform.ready.auth.replace('auth.ops.sys.', 'auth.production.foundry.').replace(/\/$/, '');
    await form.getByLabel('Where people sign in').selectOption(auth);
    await shot('install');
    const answered = ada.waitForResponse(
      response => response.request().method() === 'POST' && response.url().includes('/v1/admin/instances/install'),
    );
    await form.getByRole('button', { name: 'Install an application' }).click();
    const answer = (await (await answered).json()) as { client_secret?: string };
    const secret = answer.client_secret as string;
    expect(secret).toMatch(/^[\w-]{43}$/);
    await ada.getByText(new RegExp(secret)).waitFor();
    await shot('secret');
    await ada.keyboard.press('Escape');
    await row('Our orders').getByText('Active', { exact: true }).waitFor();
    // The head of a column sorts by keyboard, and says so.
    const name = ada.getByRole('columnheader', { name: /^Name/ });
    await name.getByRole('button').focus();
    for (const [sort, order] of [
      ['ascending', 'asc'],
      ['descending', 'desc'],
      ['none', null],
    ] as const) {
      const asked = ada.waitForRequest(
        request => request.url().includes('/v1/admin/instances') && new URL(request.url()).searchParams.get('order') === order,
      );
      await ada.keyboard.press('Enter');
      await asked;
      expect(await name.getAttribute('aria-sort')).toBe(sort);
    }
    await shot('instances');
    await row('Our orders').getByRole('link').first().click();
    await ada.getByRole('heading', { name: 'Our orders' }).waitFor();
    await ada.getByText('orders.production.foundry.localhost', { exact: true }).waitFor();
    expect(await ada.getByText(new RegExp(secret)).count()).toBe(0);
    await shot('instance');
  });

  test('3 a domain is asked for on its page, which says what to publish', async () => {
    await ada.getByRole('button', { name: 'Use a domain' }).click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByLabel('Domain').fill('orders.customer.example');
    await shot('domain-form');
    await dialog.getByRole('button', { name: 'Use a domain' }).click();
    await row('orders.customer.example').getByRole('button', { name: 'Details' }).click();
    await ada
      .getByText(/platform-verify=[0-9a-f]{64}/)
      .first()
      .waitFor();
    await shot('domain');
    await ada.keyboard.press('Escape');
    await visit.goTo(`sys/applications?env=${env}`);
    await row('Our orders').getByRole('button', { name: 'Archive' }).waitFor();
    await shot('applications');
    // A table that is wider than its page scrolls alone, and what can be done with its rows stays in sight.
    await ada.setViewportSize({ width: 900, height: 900 });
    const seen = await ada.evaluate(() => {
      const table = document.querySelector('.table-wrap') as HTMLElement;
      const end = (of: Element | null) => of?.getBoundingClientRect().right ?? Number.NaN;
      return {
        wider: table.scrollWidth > table.clientWidth,
        pageScrolls: document.documentElement.scrollWidth > window.innerWidth,
        inSight: end(table.querySelector('td.act button')) <= end(table),
      };
    });
    expect(seen).toEqual({ wider: true, pageScrolls: false, inSight: true });
    await ada.setViewportSize({ width: 1440, height: 900 });
    await open('instances');
  });

  test('4 it is uninstalled by name, and nothing of it is left', async () => {
    await open('instances');
    await row('Our orders').getByRole('link').first().click();
    await ada.getByRole('button', { name: 'Uninstall' }).click();
    await ada
      .getByRole('dialog')
      .getByText(/Uninstall Our orders from orders\.production\.foundry\.localhost/)
      .waitFor();
    await shot('uninstall');
    await confirmed('Uninstall');
    await ada.getByText('Nothing is installed here yet.').waitFor();
    await open('overview');
    await ada.getByText('Installs by application').waitFor();
    await shot('overview');
    await open('policy');
    await ada.getByRole('heading', { name: 'Policy', level: 1 }).waitFor();
    await shot('policy');
  });

  test('CON-028 listings, instances of an environment and the install are reached through the proxy, by the verbs of the documents', async () => {
    const call = (method: string, path: string, body?: object) =>
      ada.evaluate(
        async ({ gateway, method, path, body, env }) => {
          const session = (await (await fetch(`${gateway}/auth/session`, { credentials: 'include' })).json()) as Record<string, string>;
          const headers: Record<string, string> = {
            'X-BFF-Target-Env-Id': env,
            'X-BFF-CSRF': session['csrf_token'] ?? '',
            ...(body ? { 'content-type': 'application/json' } : {}),
          };
          const answer = await fetch(`${gateway}/proxy/app${path}`, {
            method,
            credentials: 'include',
            headers,
            ...(body ? { body: JSON.stringify(body) } : {}),
          });
          const text = await answer.text();
          return { status: answer.status, json: (text ? JSON.parse(text) : {}) as Record<string, never> };
        },
        { gateway: platform.ready.console.replace('://console.', '://bff.console.'), method, path, body, env },
      );
    const target = `target_env_id=${env}`;
    const made = await call('POST', `/v1/app/store/listings?${target}`, {
      app_slug: 'ledger',
      version: '1',
      name: 'Ledger',
      backend_url: 'https://ledger.example.com',
      visibility: 'env',
    });
    const listing = `/v1/app/store/listings/${String(made.json['listing_id'])}?${target}`;
    const published = await call('PUT', listing, { status: 'published' });
    const listed = await call('GET', `/v1/app/store/listings?${target}`);
    const auth_url = platform.ready.auth.replace('auth.ops.sys.', 'auth.production.foundry.').replace(/\/$/, '');
    const installed = await call('POST', `/v1/app/setup?${target}`, {
      app_slug: 'ledger',
      instance: { name: 'Ledger', slug: 'ledger' },
      auth_url,
      public_signup: false,
    });
    const instances = await call('GET', `/v1/app/admin/instances?envId=${env}&${target}`);
    const [{ instance_id = '' } = {}] = (instances.json['items'] as unknown as { instance_id: string }[] | undefined) ?? [];
    const shown = await call('GET', `/v1/app/admin/instances/${instance_id}?${target}`);
    const gone = await call('DELETE', `/v1/app/admin/instances/${instance_id}?${target}`);
    const deleted = await call('DELETE', listing);
    expect([made, published, listed, installed, instances, shown, gone, deleted].map(({ status }) => status)).toEqual([
      201, 200, 200, 201, 200, 200, 204, 204,
    ]);
    expect((listed.json['items'] as unknown as { app_slug: string }[]).map(({ app_slug }) => app_slug)).toEqual(['ledger', 'order-book']);
    // What the console itself asked on the way went the same way.
    const calls = (await witness.saying('/proxy/app/'))
      .filter(({ method }) => method !== 'OPTIONS')
      .map(({ method, url }) => `${method} ${url.pathname.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')}`);
    expect(calls).toEqual(
      expect.arrayContaining([
        'GET /proxy/app/v1/admin/listings',
        'POST /proxy/app/v1/admin/instances/install',
        'GET /proxy/app/v1/admin/instance/ID',
        'POST /proxy/app/v1/admin/instance/ID/deleteInstance',
      ]),
    );
  });
});
