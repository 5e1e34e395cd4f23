import { defineContract } from '@platform/sdk';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { claimsOf, World } from '../fixtures/world.ts';

/** A service that lets the registry call it without being named by it. */
const answering = defineContract({
  id: 'desk',
  title: 'Desk',
  placement: { tier: 40 },
  actions: { 'desk:steps:execute': { title: 'Answer', principals: ['machine'], callers: ['sys'] }, 'desk:read': { title: 'Read' } },
  problems: {},
  events: {},
  routes: {},
});

let world: World;
let owner: string;
let ownerToken: string;
let tenant: string;
beforeAll(async () => {
  world = await World.start({ contracts: [answering] });
  owner = await world.person('owner@example.org');
  tenant = await world.environment('auth.prod.acme.localhost');
  await world.registry.provisionAccess({ body: { template: 'org', org_id: world.org, owner } });
  await world.registry.provisionAccess({ body: { template: 'env', org_id: world.org, env_id: tenant } });
  ownerToken = (await world.tokens(world.browser(), 'owner@example.org')).access_token;
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

describe('a workload', () => {
  test('GWY-072 IDN-022 IDN-026 IDN-027 gets a token bound to its certificate, in its own name, with its vertical and at most its scopes', async () => {
    const answer = await world.mtls('/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'bff-delegator' }, 'bff-delegator');
    expect(answer.status).toBe(200);
    const claims = claimsOf(String(answer.json['access_token']));
    expect(Object.keys(claims).sort()).toEqual([
      'aud',
      'client_id',
      'cnf',
      'exp',
      'iat',
      'iss',
      'jti',
      'nbf',
      'scope',
      'sub',
      'token_type',
      'vertical',
    ]);
    expect(claims).toMatchObject({
      sub: 'bff-delegator',
      client_id: 'bff-delegator',
      token_type: 'm2m',
      vertical: 'platform',
      iss: world.issuer,
      cnf: { 'x5t#S256': await world.thumbprint('bff-delegator') },
    });
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(900);
    expect(String(claims['scope']).split(' ').sort()).toEqual(['delegate:read', 'scim:read', 'scim:write', 'sys:instances:read']);
    expect(answer.json['scope']).toBe(claims['scope']);
  });

  test('asks for less and gets less, under either spelling; asking for what it may not have is refused', async () => {
    expect(claimsOf(await world.machineToken('bff-delegator', { scope: 'platform:sys:instances:read' }))['scope']).toBe(
      'sys:instances:read',
    );
    expect(claimsOf(await world.machineToken('bff-delegator', { scope: 'sys:instances:read auth:membership:write' }))['scope']).toBe(
      'sys:instances:read',
    );
    const refused = await world.mtls(
      '/mtls/oauth/token',
      { grant_type: 'client_credentials', client_id: 'bff-delegator', scope: 'auth:membership:write' },
      'bff-delegator',
    );
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_scope']);
  });

  test('IDN-022 is who its certificate says, nobody else', async () => {
    const other = await world.mtls('/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'sys' }, 'bff');
    expect([other.status, other.json['error']]).toEqual([401, 'invalid_client']);
    const nobody = await world.host.fetch('/mtls/oauth/token', {
      method: 'POST',
      host: world.authHost,
      body: 'grant_type=client_credentials&client_id=bff',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect([nobody.status, nobody.json['error']]).toEqual([401, 'invalid_client']);
    const unknown = await world.mtls('/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'nowhere' }, 'nowhere');
    expect([unknown.status, unknown.json['error']]).toEqual([401, 'invalid_client']);
  });

  test("the certificate opens /mtls only, never what the ingress forwards, never beside a person's token", async () => {
    const form = { grant_type: 'client_credentials', client_id: 'bff' };
    expect((await world.mtls('/oauth/token', form, 'bff')).json['error']).toBe('invalid_client');
    // Whoever stands before the ingress would otherwise be the ingress.
    expect((await world.mtls('/mtls/oauth/token', { ...form, client_id: 'proxy' }, 'proxy')).json['error']).toBe('invalid_client');
    expect((await world.mtls('/oauth/token', { ...form, client_id: 'proxy' }, 'proxy')).json['error']).toBe('invalid_client');
    // A browser's request that the gateway forwards carries the gateway's certificate and the person's token.
    expect((await world.mtls('/mtls/oauth/token', form, 'bff', { headers: { authorization: `Bearer ${ownerToken}` } })).status).toBe(400);
    expect((await world.mtls('/mtls/oauth/authorize', form, 'bff')).status).toBe(404);
  });

  test("of a tenant's sign-in host gets none: workloads belong to the platform", async () => {
    const answer = await world.mtls('/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'bff' }, 'bff', {
      host: 'auth.prod.acme.localhost',
      headers: { 'x-platform-service': 'auth', 'x-platform-hostname': 'auth.prod.acme.localhost', host: world.authHost },
    });
    expect([answer.status, answer.json['error']]).toEqual([401, 'invalid_client']);
  });

  test('of a workload of the platform holds what other services give it by the callers of an action, and nothing else of theirs', async () => {
    const { scopes } = await world.registry.getWorkload({ params: { name: 'sys' } });
    expect(scopes.filter(scope => scope.startsWith('desk:'))).toEqual(['desk:steps:execute']);
    expect((await world.registry.getWorkload({ params: { name: 'bff' } })).scopes.filter(scope => scope.startsWith('desk:'))).toEqual([]);
    expect((claimsOf(await world.machineToken('sys'))['scope'] as string).split(' ')).toContain('desk:steps:execute');
  });

  test('of a vertical is what the host registered, and can not be named like a part of the platform', async () => {
    const body = { vertical: 'acme', scopes: ['bus:produce', 'platform:bus:consume'] };
    expect(await world.registry.putWorkload({ params: { name: 'lending' }, body })).toEqual({
      name: 'lending',
      vertical: 'acme',
      scopes: ['bus:produce', 'bus:consume'],
    });
    expect(await world.registry.getWorkload({ params: { name: 'lending' } })).toEqual({
      name: 'lending',
      vertical: 'acme',
      scopes: ['bus:produce', 'bus:consume'],
    });
    expect(claimsOf(await world.machineToken('lending'))).toMatchObject({
      sub: 'lending',
      vertical: 'acme',
      scope: 'bus:produce bus:consume',
    });
    for (const [name, vertical, scopes] of [
      ['bff', 'acme', []],
      ['sys-evil', 'acme', []],
      ['lending', 'platform', []],
      ['lending', 'acme', ['platform:auth:membership:write']],
    ] as const) {
      await expect(world.registry.putWorkload({ params: { name }, body: { vertical, scopes: [...scopes] } })).rejects.toMatchObject({
        code: 'workload_reserved',
      });
    }
    await expect(world.registry.getWorkload({ params: { name: 'nobody' } })).rejects.toMatchObject({ code: 'workload_not_found' });
    const exchange = await world.exchange(ownerToken, {}, 'lending');
    expect(exchange.status).toBe(400);
  });

  test('of a service that is gone is taken back with what it gave to roles; what its successor was given since then stays', async () => {
    const scope = 'acme:ledger:book:read';
    const body = { vertical: 'acme', scopes: ['bus:produce'] };
    for (const name of ['ledger', 'ledger-post', 'keeper']) await world.registry.putWorkload({ params: { name }, body });
    await world.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [{ scope, grants: 'read' }] } });
    const gone = (service: string, since: string) => world.says({ service, vertical: 'acme', life: 'gone', since });
    const known = async () =>
      (await world.sql<{ name: string }[]>`select name from workloads where vertical = 'acme' order by name`).map(({ name }) => name);
    const grants = () => world.sql`select 1 from vertical_grants where scope = ${scope}`;
    const token = await world.machineToken('ledger');
    await gone('ledger', '2100-01-01T00:00:00.000Z');
    await expect.poll(known).not.toContain('ledger-post');
    expect([await known(), await grants()]).toEqual([expect.arrayContaining(['keeper']), []]);
    await expect(world.registry.getWorkload({ params: { name: 'ledger' } })).rejects.toMatchObject({ code: 'workload_not_found' });
    expect(token).toEqual(expect.any(String));

    await world.registry.putWorkload({ params: { name: 'ledger' }, body });
    await gone('ledger', '2020-01-01T00:00:00.000Z');
    await gone('keeper', '2100-01-01T00:00:00.000Z');
    await expect.poll(known).not.toContain('keeper');
    expect(await known()).toContain('ledger');
  });
});

describe('token exchange', () => {
  test("IDN-010 IDN-021 IDN-026 puts the workload in the person's place: one environment, one service, at most her scopes there", async () => {
    const answer = await world.exchange(ownerToken, { resource: `urn:platform:env:${tenant}`, audience: 'sys' });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ token_type: 'Bearer', issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' });
    const claims = claimsOf(String(answer.json['access_token']));
    expect(claims).toMatchObject({
      token_type: 'delegated',
      sub: 'bff-delegator',
      client_id: 'bff-delegator',
      act: { sub: owner },
      env_id: tenant,
      aud: ['sys'],
      iss: world.issuer,
    });
    expect(Number(claims['exp']) - Number(claims['iat'])).toBeLessThanOrEqual(600);
    const scopes = String(claims['scope']).split(' ');
    expect(scopes).toEqual(expect.arrayContaining(['sys:read', 'sys:env:admin']));
    expect(scopes).not.toContain('sys:sys:admin');
    expect(scopes.every(scope => scope.startsWith('sys:') || scope.startsWith('audit:') || scope.startsWith('tenants:'))).toBe(true);
  });

  test('IDN-021 asks for less and gets less', async () => {
    const answer = await world.exchange(ownerToken, {
      resource: `urn:platform:env:${tenant}`,
      scope: 'platform:sys:read sys:sys:admin bus:admin',
    });
    expect(claimsOf(String(answer.json['access_token']))['scope']).toBe('sys:read');
  });

  test('IDN-021 is refused where the person has no access, with a 403 that no retry changes', async () => {
    const elsewhere = await world.environment('auth.prod.other.localhost');
    for (const changes of [
      { resource: `urn:platform:env:${elsewhere}` },
      { resource: `urn:platform:env:${newId()}` },
      { resource: `urn:platform:env:${tenant}`, audience: 'nothing' },
    ]) {
      const answer = await world.exchange(ownerToken, changes);
      expect([answer.status, answer.json['error']]).toEqual([403, 'invalid_target']);
    }
  });

  test("the platform's administrator may go anywhere that exists", async () => {
    const admin = await world.person('root@example.org');
    await world.registry.putUserRole({ params: { user_id: admin, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    const { access_token: token } = await world.tokens(world.browser(), 'root@example.org');
    const elsewhere = await world.environment('auth.prod.third.localhost');
    const answer = await world.exchange(token, { resource: `urn:platform:env:${elsewhere}`, scope: 'sys:sys:admin' });
    expect(claimsOf(String(answer.json['access_token']))).toMatchObject({ env_id: elsewhere, scope: 'sys:sys:admin' });
    expect((await world.exchange(token, { resource: `urn:platform:env:${newId()}` })).status).toBe(403);
  });

  test("needs the workload's own token on the workload's own certificate, and a person's", async () => {
    const machine = await world.machineToken('bff-delegator');
    expect((await world.exchange(ownerToken, { subject_token: await world.machineToken('bff') })).json['error']).toBe('invalid_grant');
    expect((await world.exchange(ownerToken, { subject_token: ownerToken })).json['error']).toBe('invalid_grant');
    expect((await world.exchange(machine)).json['error']).toBe('invalid_grant');
    expect((await world.exchange(`${ownerToken.slice(0, -4)}AAAA`)).json['error']).toBe('invalid_grant');
    const [, body = ''] = ownerToken.split('.');
    const unsigned = `${Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url')}.${body}.`;
    expect((await world.exchange(unsigned)).json['error']).toBe('invalid_grant');
    const delegated = String((await world.exchange(ownerToken)).json['access_token']);
    expect((await world.exchange(delegated)).json['error']).toBe('invalid_grant');
    // A certificate of the same workload is still another certificate (RFC 8705).
    const stolen = await world.exchange(ownerToken, { subject_token: machine }, 'bff-delegator', { renewed: true });
    expect([stolen.status, stolen.json['error']]).toEqual([400, 'invalid_grant']);
    expect((await world.exchange(ownerToken, {}, 'sys')).status).toBe(400);
  });
});

describe('about tokens', () => {
  const token = () => world.mtls('/mtls/oauth/introspect', { client_id: 'bff', token: ownerToken }, 'bff');

  test('introspection says what a token of ours carries, and of others only that they are not active', async () => {
    expect((await token()).json).toMatchObject({ active: true, sub: owner, token_type: 'access' });
    const answer = await world.mtls('/mtls/oauth/introspect', { client_id: 'bff', token: `${ownerToken.slice(0, -4)}AAAA` }, 'bff');
    expect(answer.json).toEqual({ active: false });
    expect((await world.mtls('/mtls/oauth/introspect', { client_id: 'sys', token: ownerToken }, 'bff')).status).toBe(401);
  });

  test("userinfo tells a token's owner who she is", async () => {
    const answer = await world.host.fetch('/oauth/userinfo', { token: ownerToken, host: world.authHost });
    expect(answer.json).toEqual({ sub: owner, email: 'owner@example.org', email_verified: true, name: 'owner' });
    for (const bad of ['x.y.z', await world.machineToken('bff')]) {
      const refused = await world.host.fetch('/oauth/userinfo', { token: bad, host: world.authHost });
      expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, 'Bearer realm="platform", error="invalid_token"']);
    }
  });

  test('IDN-018 a revoked refresh token refreshes nothing; revocation says 200 to anything', async () => {
    const { refresh_token: refresh } = await world.tokens(world.browser(), 'owner@example.org');
    const revoke = (value: string, hint: string) =>
      world.mtls('/mtls/oauth/revoke', { client_id: 'console', token: value, token_type_hint: hint });
    expect([
      (await revoke(refresh, 'refresh_token')).status,
      (await revoke(refresh, 'refresh_token')).status,
      (await revoke('no such token', 'refresh_token')).status,
      (await revoke(ownerToken, 'access_token')).status,
    ]).toEqual([200, 200, 200, 200]);
    expect((await world.refresh(refresh)).json['error']).toBe('invalid_grant');
  });

  test('F-15 an exchanged token ends with the person’s own at the latest', async () => {
    const { access_token: token } = await world.tokens(world.browser(), 'owner@example.org');
    const { exp } = claimsOf(token) as { exp: number };
    await world.host.clock.leap(`${Math.floor(exp - 60 - world.host.clock.now().getTime() / 1_000)}s`);
    const answer = await world.exchange(token, { resource: `urn:platform:env:${tenant}`, audience: 'sys' });
    expect([answer.status, Number(claimsOf(String(answer.json['access_token']))['exp'])]).toEqual([200, exp]);
    expect(Number(answer.json['expires_in'])).toBeLessThanOrEqual(61);
  });
});

describe('F-11 logout by the application (RP-Initiated Logout)', () => {
  const end = (form: Record<string, string>, workload = 'bff', headers: Record<string, string> = {}) =>
    world.mtls('/mtls/oauth/end-session', { client_id: 'console', ...form }, workload, { headers });
  const signedIn = async (email: string) => {
    const browser = world.browser();
    const { id_token, access_token, refresh_token } = await world.tokens(browser, email);
    return { browser, hint: String(id_token), sid: String(claimsOf(access_token)['sid']), refresh: String(refresh_token) };
  };
  /** Whether a sign-in of this browser asks for nothing. */
  const passes = async ({ browser }: Awaited<ReturnType<typeof signedIn>>) =>
    !(await world.begin(browser)).page.location.startsWith('/sign-in');

  test('F-11 ends the sign-in session that the id token came from, with its tokens; the browser is asked for the password again', async () => {
    await world.person('leaver@example.org');
    const [here, there] = [await signedIn('leaver@example.org'), await signedIn('leaver@example.org')];
    expect([await passes(here), await passes(there)]).toEqual([true, true]);
    expect((await end({ id_token_hint: here.hint, logout_hint: here.sid })).status).toBe(204);
    expect([await passes(here), await passes(there), (await world.refresh(here.refresh)).status]).toEqual([false, true, 400]);
    // Once more says the same.
    expect((await end({ id_token_hint: here.hint, logout_hint: here.sid })).status).toBe(204);
    expect((await end({ id_token_hint: here.hint, logout_hint: here.sid, everywhere: 'true' })).status).toBe(204);
    expect([await passes(there), (await world.refresh(there.refresh)).status]).toEqual([false, 400]);
  });

  test('F-11 ends nothing for another client, another person, a token that is not its own, or without the certificate', async () => {
    await world.person('stays@example.org');
    await world.person('other@example.org');
    const [stays, other] = [await signedIn('stays@example.org'), await signedIn('other@example.org')];
    const form = { id_token_hint: stays.hint, logout_hint: stays.sid };
    const refused = [
      await end(form, 'sys'),
      await end({ ...form, client_id: 'sys' }, 'sys'),
      await end({ ...form, id_token_hint: `${stays.hint.slice(0, -8)}AAAAAAAA` }),
      await end({ ...form, id_token_hint: 'x' }),
      await end(form, 'bff', { authorization: 'Bearer x' }),
    ];
    expect(refused.map(({ status, json }) => `${status} ${json['error']}`)).toEqual([
      '401 invalid_client',
      '400 invalid_request',
      '400 invalid_request',
      '400 invalid_request',
      expect.stringMatching(/^40\d /),
    ]);
    expect((await end({ id_token_hint: other.hint, logout_hint: stays.sid })).status).toBe(204);
    expect(await passes(stays)).toBe(true);
  });
});
