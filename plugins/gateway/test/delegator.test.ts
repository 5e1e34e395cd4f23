import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@platform/kernel/storage/fixtures/eventually';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { gateway } from '../contract/index.ts';
import { FakeIdentity } from './fixtures/fake-identity.ts';
import { type Browser, codeOf, ENV, Store, World } from './fixtures/world.ts';

let store: Store;
let world: World;
let browser: Browser;
beforeAll(async () => {
  store = await Store.start();
}, 60_000);
afterAll(() => store[Symbol.asyncDispose]());
beforeEach(async () => {
  world = await World.start(store);
  browser = await world.signIn();
});
afterEach(() => world[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}) =>
  world.ask('GET', path, { headers: { cookie: browser.cookie, ...headers } });
const later = (seconds: number) => {
  world.offsetMs += seconds * 1_000;
};

describe('the delegator', () => {
  const file = () => join(world.dataDir, 'bff', 'delegator.json');

  test('GWY-086 registers itself when the gateway starts, and leaves a file that only its user reads', async () => {
    await eventually(async () => world.identity.registrations.length).toBe(1);
    expect(world.identity.registrations[0]).toMatchObject({
      as: 'delegator',
      metadata: { token_endpoint_auth_method: 'tls_client_auth', tls_client_auth_subject_dn: 'CN=m2m-bff-delegator' },
    });
    await eventually(async () => JSON.parse(readFileSync(file(), 'utf8')) as object).toMatchObject({
      client_id: 'bff-delegator',
      issuer: 'https://auth.ops.sys.localhost:8443',
    });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  test('GWY-086 is who the file says it is, without asking again, unless the file is of somebody else', async () => {
    await eventually(async () => readFileSync(file(), 'utf8')).toContain('bff-delegator');
    await world.behaviour.ready();
    await get('/proxy/lending/v1/loans', { 'x-bff-target-env-id': ENV });
    expect(world.identity.registrations).toHaveLength(1);
    writeFileSync(file(), JSON.stringify({ client_id: 'bff-delegator', issuer: 'https://auth.ops.sys.elsewhere' }));
    await world.behaviour.ready();
    await eventually(async () => world.identity.registrations.length).toBe(2);
  });

  test('GWY-087 GWY-081 that cannot register tries 30 times, 3 seconds apart; the gateway serves, delegation is 502 and readiness says why', async () => {
    const identity = new FakeIdentity();
    identity.refusals.set('register', 'down');
    await using lost = await World.start(store, { identity });
    await eventually(() => lost.tick('3s')).toBe(1);
    for (let n = 1; n < 30; n++) await lost.tick('3s');
    expect(identity.registrations).toHaveLength(31);
    expect(await lost.tick('3s')).toBe(0);
    expect(await lost.behaviour.checks.delegator()).toBe(false);
    const person = await lost.signIn();
    expect((await lost.ask('GET', '/proxy/sys/v1/o', { headers: { cookie: person.cookie } })).status).toBe(200);
    const answer = await lost.ask('GET', '/proxy/sys/v1/o', { headers: { cookie: person.cookie, 'x-bff-target-env-id': ENV } });
    expect([answer.status, await codeOf(answer)]).toEqual([502, 'delegator_unavailable']);
    identity.refusals.clear();
    expect((await lost.ask('GET', '/proxy/sys/v1/o', { headers: { cookie: person.cookie, 'x-bff-target-env-id': ENV } })).status).toBe(200);
    expect(await lost.behaviour.checks.delegator()).toBe(true);
  });

  test('GWY-071 GWY-072 gets its own token with its certificate, and for its four scopes', async () => {
    await get('/proxy/sys/v1/o', { 'x-bff-target-env-id': ENV });
    const [own] = world.identity.grants('client_credentials');
    expect(own).toMatchObject({ path: '/mtls/oauth/token', as: 'delegator', hostname: 'auth.ops.sys.localhost' });
    expect(own?.form).toMatchObject({
      client_id: 'bff-delegator',
      scope: 'platform:delegate:read platform:scim:read platform:scim:write platform:sys:instances:read',
    });
    expect(Object.values(gateway.base.workloads.delegator).flat().sort()).toEqual([
      'delegate:read',
      'scim:read',
      'scim:write',
      'sys:instances:read',
    ]);
  });

  test('GWY-013 an exchanged token is kept for its life and no longer, and not beyond the session', async () => {
    const exchanges = () => world.identity.grants('urn:ietf:params:oauth:grant-type:token-exchange').length;
    const call = () => get('/proxy/sys/v1/o', { 'x-bff-target-env-id': ENV });
    await call();
    later(560);
    await call();
    expect(exchanges()).toBe(1);
    later(20);
    await call();
    expect(exchanges()).toBe(2);
    await world.ask('POST', '/auth/sign-out', { headers: browser.headers });
    world.offsetMs = 0;
    browser = await world.signIn();
    await call();
    expect(exchanges()).toBe(3);
  });
});
