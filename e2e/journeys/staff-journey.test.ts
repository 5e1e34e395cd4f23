import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '@platform/kernel/base/ids';
import { SealedBox } from '@platform/kernel/secrets/sealed-box';
import type { Sealed } from '@platform/sdk';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAccount } from '../fixtures/account.ts';
import { openBrowser } from '../fixtures/browser/browser.ts';
import { inDatabaseOf } from '../fixtures/database.ts';
import { inKeyValueOf } from '../fixtures/key-value.ts';
import { Platform } from '../fixtures/platform.ts';

const split = process.env['PLATFORM_E2E_MODE'] === 'split';
const PASSWORD = 'a long walk by the sea 7';
const CUSTOMER = 'customer@example.org';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}
interface Application {
  readonly app_instance_id: string;
  readonly hostname: string;
  readonly gateway_hostname: string;
}

describe(`staff at work, ${split ? 'one process per service' : 'all in one process'}`, () => {
  const platform = new Platform({ split, pluginDirs: '' });
  let browser: Browser;
  let ada: Page;
  let csrf = '';
  let org = '';
  let env = '';

  beforeAll(async () => {
    await platform.start();
    browser = await openBrowser(platform);
    ada = await (await browser.newContext()).newPage();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  }, 60_000);

  /** As the page of an application asks its gateway. */
  const ask = (
    page: Page,
    gateway: string,
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    page.evaluate(
      async ([url, init]) => {
        const response = await fetch(url as string, init as RequestInit);
        const text = await response.text();
        return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
      },
      [
        gateway + path,
        {
          method,
          credentials: 'include',
          headers: { 'content-type': 'application/json', 'x-bff-csrf': csrf, ...headers },
          ...(body ? { body: JSON.stringify(body) } : {}),
        },
      ] as const,
    );
  const call = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    ask(ada, platform.ready.gateway, method, path, body, headers);
  const auth = () => `https://auth.prod.harbour.localhost:${new URL(platform.ready.gateway).port}`;
  /** What the customer would be sent: the gateway tells nobody, and its key lies beside the data in development. */
  const requestOf = async (id: string): Promise<string> => {
    const box = new SealedBox([Buffer.from(readFileSync(join(platform.ready.data_dir, 'keys', 'bff.key'), 'utf8'), 'base64')]);
    let text: string | null = null;
    await inKeyValueOf(platform.ready.data_dir, async store => {
      text = await store.get(`bff:delegation:${id}`);
    });
    const { auth_req_enc: sealed } = JSON.parse(text ?? '{}') as { auth_req_enc: Sealed };
    return box.open(`delegation ${id} request`, sealed) as string;
  };
  const inEnv = () => ({ 'x-bff-target-env-id': env });

  test('1 an administrator signs in, and makes an environment', async () => {
    await ada.goto(platform.ready.console);
    await ada.getByLabel('Email').fill(platform.firstStart.email);
    await ada.getByLabel('Password', { exact: true }).fill(platform.firstStart.password);
    await ada.getByRole('button', { name: 'Sign in', exact: true }).click();
    await ada.getByLabel('New password').fill(PASSWORD);
    await ada.getByRole('button', { name: 'Save password' }).click();
    await ada.getByRole('link', { name: 'Create organization' }).first().waitFor();
    csrf = String((await call('GET', '/auth/session')).body['csrf_token']);
    const made = await call('POST', '/proxy/sys/v1/o', { slug: 'harbour', display_name: 'Harbour' });
    expect(made.status).toBe(200);
    org = String(made.body['org_id']);
    const environment = await call('POST', '/proxy/sys/v1/e', { org_id: org, slug: 'prod', display_name: 'Production' });
    expect(environment.status).toBe(200);
    env = String(environment.body['env_id']);
  });

  test('2 GWY-086 the delegator has registered itself, and its file is nobody else’s to read', async () => {
    const file = join(platform.ready.data_dir, 'bff', 'delegator.json');
    await expect.poll(() => JSON.parse(readFileSync(file, 'utf8')) as object).toMatchObject({ client_id: 'bff-delegator' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const answer = await call('GET', '/proxy/sys/v1/e', undefined, inEnv());
    expect([answer.status, answer.body['code']]).toEqual([200, undefined]);
  });

  test('3 BUS-077 BUS-078 BUS-079 an operator publishes into the environment through the producer', async () => {
    const event = { event_type: 'platform:desk:note:added', stream_family: 'desk', payload: { text: 'hello' } };
    const produced = await call('POST', '/bff/action/bus:produce', { params: event, target_env_id: env });
    expect([produced.status, produced.body]).toEqual([200, { message_id: expect.any(String), stream: expect.stringContaining(env) }]);
    const foreign = await call('POST', '/bff/action/bus:produce', {
      params: { ...event, event_type: 'acme:desk:note:added' },
      target_env_id: env,
    });
    expect([foreign.status, foreign.body['code']]).toEqual([403, 'event_ownership']);
  });

  test('4 GWY-036 GWY-038 a customer is asked at the own identity service, and the gateway asks with its key', async () => {
    const userId = await openAccount(platform.ready.data_dir, CUSTOMER, PASSWORD, env);
    await inDatabaseOf(
      platform.ready.data_dir,
      'auth',
      sql => sql`insert into user_roles ${sql({ env_id: env, user_id: userId, role: 'platform:env:viewer' })}`,
    );
    const nobody = await call('POST', '/delegate/start', { env_id: env, login_hint: 'nobody@example.org' });
    expect([nobody.status, nobody.body['code']]).toEqual([404, 'customer_not_found']);
    const started = await call('POST', '/delegate/start', {
      env_id: env,
      login_hint: CUSTOMER,
      scope: 'sys:read',
      binding_message: 'Order 4711',
    });
    expect([started.status, started.body]).toEqual([
      202,
      { delegation_id: expect.any(String), state: 'started', expires_in: expect.any(Number), interval: 5 },
    ]);
    const id = String(started.body['delegation_id']);
    const state = async () => (await call('GET', `/delegate/status?delegation_id=${id}`)).body['state'];
    const asCustomer = () => call('GET', '/proxy/sys/v1/o', undefined, { 'x-bff-delegation-id': id });
    const early = await asCustomer();
    expect([early.status, early.body['code']]).toEqual([403, 'delegation_not_approved']);
    const customer = await (await browser.newContext()).newPage();
    await customer.goto(`${auth()}/sign-in`);
    const signedIn = await customer.evaluate(
      async body => (await fetch('/v1/sign-in', { method: 'POST', headers: { 'content-type': 'application/json' }, body })).status,
      JSON.stringify({ email: CUSTOMER, password: PASSWORD, oauth: {} }),
    );
    expect(signedIn).toBe(200);
    await customer.goto(`${auth()}/ciba?${new URLSearchParams({ auth_req_id: await requestOf(id) })}`);
    await customer.getByText('Order 4711').waitFor();
    expect(await state()).toBe('started');
    await customer.locator('button[value=approve]:visible').click();
    await expect.poll(state).toBe('approved');
    const status = await call('GET', `/delegate/status?delegation_id=${id}`);
    expect(status.body).toMatchObject({
      customer: { user_id: userId, env_id: env },
      token: { present: true, scope: 'openid sys:read', jkt: expect.any(String) },
    });
    const reached = await asCustomer();
    expect([reached.status, (reached.body['items'] as { org_id: string }[] | undefined)?.map(({ org_id }) => org_id)]).toEqual([
      200,
      expect.any(Array),
    ]);
  });

  test("5 GWY-025 GWY-065 people sign in to a tenant's application through its gateway, and reach what it lists", async () => {
    const clientId = newId();
    const made = await call(
      'POST',
      `/proxy/sys/v1/env/${env}/applications`,
      {
        app_id: 'shop',
        slug: 'shop',
        name: 'Shop',
        auth_mode: 'open',
        allow_signup: true,
        oauth_client_id: clientId,
        service_whitelist: ['bus'],
        scope_whitelist: ['bus:read'],
      },
      inEnv(),
    );
    expect([made.status, made.body['code']]).toEqual([201, undefined]);
    const app = made.body as unknown as Application;
    const { port } = new URL(platform.ready.gateway);
    const gateway = `https://${app.gateway_hostname}:${port}`;
    const metadata = {
      client_name: 'Shop',
      redirect_uris: [`${gateway}/auth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=m2m-bff',
      require_pushed_authorization_requests: true,
      application_type: 'web',
      id_token_signed_response_alg: 'EdDSA',
      scope: 'openid email profile offline_access',
      first_party: true,
      app_instance_id: app.app_instance_id,
    };
    // As an install registers it.
    await inDatabaseOf(platform.ready.data_dir, 'auth', async sql => {
      await sql`insert into oauth_clients (env_id, client_id, metadata, registration_hash, registered_by)
        values (${env}, ${clientId}, ${sql.json(metadata)}, ${randomBytes(32)}, 'app')`;
    });
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${gateway}/auth/sign-up?return_to=/`);
    await expect.poll(() => new URL(page.url()).pathname).toContain('sign-up');
    await page.goto(`${gateway}/auth/login?return_to=/`);
    await page.getByLabel('Email').fill(CUSTOMER);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL(`https://${app.hostname}:${port}/**`);
    await page.goto(`${gateway}/auth/session`);
    const session = JSON.parse(await page.locator('body').innerText()) as Record<string, unknown>;
    expect(session).toMatchObject({ user: { email: CUSTOMER }, env_id: env, org_id: org });
    const refused = await ask(page, gateway, 'GET', '/proxy/sys/v1/o');
    expect([refused.status, refused.body['code']]).toEqual([403, 'not_whitelisted']);
    const cookie = (await page.context().cookies()).find(({ name }) => name === 'bff-session');
    expect(cookie).toMatchObject({ domain: `.${app.hostname}`, httpOnly: true, secure: true, sameSite: 'None' });
  });
});
