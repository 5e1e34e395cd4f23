import { as } from '@platform/testing';
import * as oauth from 'oauth4webapi';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appStore, application, authorize, fetchOf, REDIRECT, register } from '../fixtures/applications.ts';
import { World } from '../fixtures/world.ts';

let world: World;
const HOST = 'auth.prod.acme.localhost';
let tenant: string;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  tenant = await world.environment(HOST);
  await world.person('ada@example.org', { envId: tenant });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const metadata = { client_name: 'Ledger', redirect_uris: [REDIRECT], scope: 'openid email sys:read' };
const manage = async (
  answer: { json: Record<string, unknown> },
  method: string,
  body?: object,
  token = String(answer.json['registration_access_token']),
) => {
  const { pathname } = new URL(String(answer.json['registration_client_uri']));
  return world.reach(pathname, { method, host: HOST, token, ...(body ? { body: JSON.stringify(body) } : {}) });
};

describe('registration', () => {
  test('IDN-001 the app store registers an application with a token of its own, and the secret is told once and kept as a hash', async () => {
    const answer = await register(world, metadata, { host: HOST });
    expect(answer.status).toBe(201);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.json).toMatchObject({
      ...metadata,
      client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      client_secret_expires_at: 0,
      client_id_issued_at: expect.any(Number),
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
      registration_client_uri: `https://${HOST}:8443/oauth/register/${String(answer.json['client_id'])}`,
    });
    const [row] = await world.sql<
      { all: string }[]
    >`select row_to_json(c)::text as all from oauth_clients c where client_id = ${String(answer.json['client_id'])}`;
    expect(row?.all).not.toContain(String(answer.json['client_secret']));
    expect(row?.all).not.toContain(String(answer.json['registration_access_token']));
    const isOfIt = ({ payload }: { payload: Readonly<Record<string, unknown>> }) => payload['client_id'] === answer.json['client_id'];
    const [event] = await world.host.events('platform:auth:client:created', 1, isOfIt);
    expect(event?.payload).toEqual({ client_id: answer.json['client_id'], env_id: tenant });
  });

  test('IDN-001 oauth4webapi registers by itself, over mutual TLS with the certificate its token is bound to', async () => {
    const issuer = new URL(`https://${HOST}:8443`);
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { [oauth.customFetch]: fetchOf(world) as never }),
    );
    const response = await oauth.dynamicClientRegistrationRequest(server, metadata, {
      initialAccessToken: await world.machineToken('app'),
      [oauth.customFetch]: fetchOf(world, 'app') as never,
    });
    expect(await oauth.processDynamicClientRegistrationResponse(response)).toMatchObject({
      client_name: 'Ledger',
      client_secret: expect.any(String),
    });
  });

  test('a workload registers twenty clients a minute and is asked to wait', async () => {
    const answers = [];
    for (let run = 0; run < 21; run++) answers.push(await register(world, metadata, { host: HOST }));
    expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 20 }, () => 201), 429]);
    const last = answers.at(-1);
    expect([last?.json['error'], last?.headers['ratelimit-policy']]).toEqual(['temporarily_unavailable', '"registration";q=20;w=60']);
    expect(Number(last?.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('IDN-001 needs a token of a workload that may, on its own certificate, and each token registers once', async () => {
    const token = await world.machineToken('app');
    expect((await register(world, metadata, { host: HOST, token })).status).toBe(201);
    const again = await register(world, metadata, { host: HOST, token });
    expect([again.status, again.json['error']]).toEqual([401, 'invalid_token']);
    const other = await register(world, metadata, { host: HOST, token: await world.machineToken('bff') });
    expect([other.status, other.json['error']]).toEqual([401, 'invalid_token']);
    const stolen = await world.reach('/oauth/register', {
      method: 'POST',
      host: HOST,
      token: await world.machineToken('app'),
      body: JSON.stringify(metadata),
    });
    expect([stolen.status, stolen.json['error']]).toEqual([401, 'invalid_token']);
    const unscoped = await world.reach('/oauth/register', {
      method: 'POST',
      host: HOST,
      token: await world.machineToken('bff'),
      workload: 'bff',
      body: JSON.stringify(metadata),
    });
    expect([unscoped.status, unscoped.json['error']]).toEqual([403, 'insufficient_scope']);
    const nobody = await world.reach('/oauth/register', { method: 'POST', host: HOST, body: JSON.stringify(metadata) });
    expect([nobody.status, nobody.headers['www-authenticate']]).toEqual([401, 'Bearer realm="platform", error="invalid_token"']);
  });

  test.each([
    ['a wildcard', ['https://*.example.org/cb']],
    ['a fragment', ['https://a.example.org/cb#x']],
    ['credentials', ['https://u:p@a.example.org/cb']],
    ['plain http', ['http://a.example.org/cb']],
    ['a scheme of its own', ['javascript:alert(1)']],
    ['nothing', []],
    ['no text', [7]],
  ])('refuses a redirect with %s', async (_what, redirect_uris) => {
    const answer = await register(world, { redirect_uris }, { host: HOST });
    expect([answer.status, answer.json['error']]).toEqual([400, 'invalid_redirect_uri']);
  });

  test.each([
    ['the implicit grant', { grant_types: ['implicit'] }],
    ['a response type nobody serves', { response_types: ['code id_token'] }],
    ['rights of machines', { grant_types: ['client_credentials'] }],
    ['a scope only workloads hold', { scope: 'openid auth:membership:write' }],
    ['a scope nobody declares', { scope: 'nothing:at:all' }],
    ['a symmetric signature', { id_token_signed_response_alg: 'HS256' }],
    ['keys to be fetched', { jwks_uri: 'https://a.example.org/jwks' }],
    [
      'a private key',
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'x', d: 'secret' }] } },
    ],
    ['a name that turns around', { client_name: 'a\u202Eb' }],
    ['accounts over plain http', { consent_accounts_uri: 'http://accounts.example.org/' }],
  ])('refuses %s', async (_what, change) => {
    const answer = await register(world, { ...metadata, ...change }, { host: HOST });
    expect([answer.status, answer.json['error']]).toEqual([400, 'invalid_client_metadata']);
    expect(answer.text).not.toContain('secret"');
  });

  test('answers in the words of the standard to what is no registration at all', async () => {
    const send = async (init: object) =>
      world.reach('/oauth/register', { method: 'POST', host: HOST, token: await world.machineToken('app'), workload: 'app', ...init });
    expect((await send({ body: '{' })).json['error']).toBe('invalid_client_metadata');
    expect((await send({ body: '[]' })).json['error']).toBe('invalid_client_metadata');
    expect((await send({ body: 'x=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } })).status).toBe(415);
    expect((await send({ body: JSON.stringify({ client_name: 'x'.repeat(70_000) }) })).status).toBe(413);
    expect((await world.reach('/oauth/register', { host: HOST })).headers['allow']).toBe('POST');
  });

  test('a client reads, changes and deletes itself; its secret is never told again, and its rights never grow', async () => {
    const answer = await register(world, metadata, { host: HOST });
    const read = await manage(answer, 'GET');
    expect([read.status, read.json['client_name']]).toEqual([200, 'Ledger']);
    expect(read.json).not.toHaveProperty('client_secret');
    const changed = await manage(answer, 'PUT', {
      ...metadata,
      client_id: answer.json['client_id'],
      client_secret: answer.json['client_secret'],
      client_name: 'General ledger',
    });
    expect([changed.status, changed.json['client_name']]).toEqual([200, 'General ledger']);
    expect(changed.json).not.toHaveProperty('client_secret');
    const wider = { ...metadata, client_id: answer.json['client_id'] };
    for (const more of [
      { scope: 'openid email sys:read sys:sys:admin' },
      { first_party: true },
      { consent_accounts_uri: 'https://evil.example/' },
      { grant_types: ['authorization_code', 'refresh_token'] },
    ]) {
      const refused = await manage(answer, 'PUT', { ...wider, ...more });
      expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_client_metadata']);
    }
    expect((await manage(answer, 'PUT', { ...wider, client_secret: 'guessed' })).status).toBe(400);
    expect((await manage(answer, 'PUT', { ...wider, client_id: 'another' })).status).toBe(400);
    expect((await manage(answer, 'GET', undefined, 'not-the-token')).status).toBe(401);
    expect((await manage(answer, 'DELETE')).status).toBe(204);
    expect((await manage(answer, 'GET')).status).toBe(401);
    const deleted = (await world.host.events('platform:auth:client:deleted')).find(
      ({ payload }) => payload['client_id'] === answer.json['client_id'],
    );
    expect(deleted?.payload).toEqual({ client_id: answer.json['client_id'], env_id: tenant });
  });

  test('a change of method makes a secret, or takes it away', async () => {
    const answer = await register(world, { ...metadata, token_endpoint_auth_method: 'none' }, { host: HOST });
    expect(answer.json).not.toHaveProperty('client_secret');
    const put = (token_endpoint_auth_method: string) =>
      manage(answer, 'PUT', { ...metadata, client_id: answer.json['client_id'], token_endpoint_auth_method });
    expect((await put('client_secret_post')).json['client_secret']).toMatch(/^[\w-]{43}$/);
    await put('none');
    const [row] = await world.sql<
      { secret_hash: unknown }[]
    >`select secret_hash from oauth_clients where client_id = ${String(answer.json['client_id'])}`;
    expect(row?.secret_hash).toBeNull();
  });

  test('H-31 H-33 the next request of another process knows a new client, and knows no more of a deleted one', async () => {
    await using second = await world.another();
    const answer = await register(world, { ...metadata, grant_types: ['authorization_code', 'refresh_token'] }, { host: HOST });
    const clientId = String(answer.json['client_id']);
    const push = async () => {
      const body = new URLSearchParams({
        client_id: clientId,
        response_type: 'code',
        redirect_uri: REDIRECT,
        scope: 'openid',
        code_challenge: 'x'.repeat(43),
        code_challenge_method: 'S256',
      });
      const basic = Buffer.from(`${clientId}:${String(answer.json['client_secret'])}`).toString('base64');
      const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${basic}` };
      return (await world.reach('/oauth/par', { method: 'POST', host: HOST, at: second, headers, body: body.toString() })).status;
    };
    expect(await push()).toBe(201);
    await manage(answer, 'DELETE');
    expect(await push()).toBe(401);
    const left = await world.sql<{ n: number }[]>`
      select (select count(*) from oidc_state where payload ->> 'clientId' = ${clientId})::int + (select count(*) from oauth_clients
        where client_id = ${clientId})::int as n`;
    expect(left).toEqual([{ n: 0 }]);
  });

  test('from inside, by the typed call: register in a realm, delete, and nothing is left', async () => {
    const store = world.host.by(as.machine('app', 'auth:clients:write'));
    const made = (await store.registerClient({ body: metadata, targetEnvId: tenant })) as Record<string, string>;
    expect(made).toMatchObject({
      client_id: expect.any(String),
      client_secret: expect.any(String),
      registration_access_token: expect.any(String),
    });
    await store.deleteClient({ params: { client_id: made['client_id'] as string }, targetEnvId: tenant });
    await store.deleteClient({ params: { client_id: made['client_id'] as string }, targetEnvId: tenant });
    expect(await world.sql`select 1 from oauth_clients where client_id = ${made['client_id'] as string}`).toHaveLength(0);
    await expect(store.registerClient({ body: { redirect_uris: ['x'] }, targetEnvId: tenant })).rejects.toMatchObject({
      code: 'client_metadata_invalid',
    });
    await expect(store.registerClient({ body: metadata, targetEnvId: '018f0000-0000-7000-8000-00000000ffff' })).rejects.toMatchObject({
      code: 'realm_not_found',
    });
    await expect(store.registerClient({ body: metadata })).rejects.toMatchObject({ code: 'target_env_missing' });
  });

  test('a workload is told over mutual TLS which client it is', async () => {
    const ask = async (path: string, workload: string, host = world.authHost) =>
      world.reach(path, { method: 'POST', host, workload, body: JSON.stringify({ token_endpoint_auth_method: 'tls_client_auth' }) });
    const delegator = await ask('/mtls/oauth/register', 'bff-delegator');
    expect([delegator.status, delegator.json]).toEqual([
      201,
      expect.objectContaining({ client_id: 'bff-delegator', token_endpoint_auth_method: 'tls_client_auth' }),
    ]);
    expect((await ask('/mtls/oauth/register', 'nowhere')).status).toBe(401);
    // Whoever stands before the ingress would otherwise be the ingress.
    expect((await ask('/mtls/oauth/register', 'proxy')).status).toBe(401);
    expect((await ask('/oauth/register', 'bff-delegator')).status).toBe(401);
  });

  test('a registered application signs a person in, and its wrong secret is refused', async () => {
    const config = await application(world, { first_party: true, grant_types: ['authorization_code', 'refresh_token'] }, HOST);
    const browser = world.browser(HOST);
    const { page, oauth: context, redeem } = await authorize(config, browser);
    const signedIn = await browser.post('/v1/sign-in', {
      email: 'ada@example.org',
      password: 'a sentence nobody has guessed',
      oauth: context(),
    });
    expect(page.location).toMatch(/^\/sign-in/);
    const back = await browser.get(String(signedIn.json['next']));
    const tokens = await redeem(back.location);
    expect(tokens.claims()).toMatchObject({ iss: `https://${HOST}:8443`, email: 'ada@example.org' });
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) }).toString();
    const guess = Buffer.from(`${config.clientMetadata().client_id}:guess`).toString('base64');
    const refused = await world.reach('/oauth/token', {
      method: 'POST',
      host: HOST,
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${guess}` },
    });
    expect([refused.status, refused.json['error']]).toEqual([401, 'invalid_client']);
  });
});
