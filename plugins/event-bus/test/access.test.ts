import type { AnyRoute, Caller } from '@platform/sdk';
import { as, boot, type BootedHost, TokenMint } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventBus } from '../contract/index.ts';
import plugin from '../src/plugin.ts';
import { bearer, BusProcess, newEnv, person, Stores, workload } from './harness.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ENV = '018f0000-0000-7000-8000-00000000b001';
const OTHER = '018f0000-0000-7000-8000-00000000b002';

describe('who may come in, by the kernel’s own verifier', () => {
  let host: BootedHost<typeof eventBus>;
  const ada = as.userIn(ENV, 'bus:read', 'bus:consume', 'bus:produce');
  const acting = as.delegated(ENV, 'bus:read', 'bus:consume');
  const operator = as.machine('bff-producer', 'bus:produce');
  const reader = as.machine('stat', 'bus:consume');
  beforeAll(async () => {
    host = await boot(plugin);
    // The kit answers live scopes of whoever has called before.
    for (const persona of [ada, acting, operator, reader]) await host.fetch(`/v1/streams?env_id=${ENV}`, { persona });
  });
  afterAll(async () => host?.[Symbol.asyncDispose]());

  const streams = (init: Parameters<typeof host.fetch>[1], env = ENV) => host.fetch(`/v1/streams?env_id=${env}`, init);
  const answer = async (init: Parameters<typeof host.fetch>[1]) => {
    const { status, json } = await streams(init);
    return [status, json['code']];
  };
  const produce = (init: Parameters<typeof host.fetch>[1], event: object) =>
    host.fetch('/v1/produce', {
      method: 'POST',
      body: JSON.stringify({ event_type: 'platform:shop:order:created', env_id: ENV, stream_family: 'app', payload: {}, ...event }),
      ...init,
    });

  test('BUS-065 BUS-059 without a token, and with one that the identity service did not sign, every endpoint is 401 but health, which says how it is and which build', async () => {
    const own = Object.values(eventBus.routes as unknown as Record<string, AnyRoute>).map(({ method, path }) => [method, path] as const);
    const kernel = ['policy-sets', 'relations', 'attributes'].flatMap(kind =>
      (['GET', 'POST', 'PUT', 'DELETE'] as const).map(method => [method, `/v1/admin/${kind}?target_env_id=${ENV}`] as const),
    );
    const all = [
      ...own,
      ...kernel,
      ['POST', '/v1/consume/sse/ticket'] as const,
      ['GET', '/v1/admin/ui/overview'] as const,
      ['GET', `/v1/admin/streams?target_env_id=${ENV}`] as const,
    ];
    const forged = new TokenMint(() => host.clock.now().getTime()).token(ada, 'bus');
    for (const [method, path] of all) {
      const address = path.replaceAll(/\{[a-z_]+\}/g, 'x');
      for (const token of [undefined, forged]) {
        const { status, json } = await host.fetch(address, { method, ...(token ? { token } : {}) });
        expect([method, address, status, json['code']]).toEqual([method, address, 401, 'unauthenticated']);
      }
    }
    const health = await host.fetch('/v1/health');
    expect([health.status, health.json]).toEqual([
      200,
      expect.objectContaining({ status: 'ok', service: 'bus', build: 'test', version: expect.stringContaining('.test') }),
    ]);
  });

  test('BUS-066 tokens of the kinds access, m2m and delegated are taken, and no other', async () => {
    for (const persona of [ada, acting, reader]) expect(await answer({ persona })).toEqual([200, undefined]);
    for (const token_type of ['id', 'refresh', 'client', 'Access', '', undefined])
      expect(await answer({ token: host.mint.token(ada, 'bus', { token_type }) })).toEqual([401, 'unauthenticated']);
  });

  test('BUS-067 a person’s and a delegated token must be meant for the bus; a workload’s need not name it', async () => {
    for (const persona of [ada, acting]) {
      expect(await answer({ token: host.mint.token(persona, 'bus') })).toEqual([200, undefined]);
      expect(await answer({ token: host.mint.token(persona, 'sys') })).toEqual([401, 'unauthenticated']);
    }
    expect(await answer({ token: host.mint.token(reader, 'platform') })).toEqual([200, undefined]);
  });

  test('BUS-068 a person’s token without an environment is 403 tenant_unresolved, whatever is asked', async () => {
    expect(await answer({ token: host.mint.token(ada, 'bus', { env_id: undefined }) })).toEqual([403, 'tenant_unresolved']);
    const refused = await produce({ token: host.mint.token(ada, 'bus', { env_id: undefined }) }, {});
    expect([refused.status, refused.json['code']]).toEqual([403, 'tenant_unresolved']);
  });

  test('BUS-069 a person’s token must be of the tenant that the ingress names; a delegated one may be of another', async () => {
    const ingress = await host.workload('proxy');
    const through = (persona: typeof ada, env: string) => ({
      persona,
      as: ingress,
      headers: { 'x-platform-caller-service': 'proxy', 'x-platform-env-id': env },
    });
    expect(await answer(through(ada, ENV))).toEqual([200, undefined]);
    expect(await answer(through(ada, OTHER))).toEqual([403, 'tenant_mismatch']);
    expect(await answer(through(acting, OTHER))).toEqual([200, undefined]);
  });

  test('BUS-071 the platform’s producers are known by the vertical claim "platform", and another claim does not speak for it', async () => {
    expect((await produce({ token: host.mint.token(operator, 'bus') }, {})).status).toBe(200);
    const foreign = await produce({ token: host.mint.token(operator, 'bus', { vertical: 'acme' }) }, {});
    expect([foreign.status, foreign.json['code']]).toEqual([403, 'event_ownership']);
    const none = await produce({ token: host.mint.token(operator, 'bus', { vertical: undefined }) }, {});
    expect([none.status, none.json['code']]).toEqual([403, 'event_ownership']);
  });

  test('BUS-077 BUS-079 operator tooling publishes as a workload with a produce grant, into the environment each request names; without the grant not at all', async () => {
    for (const env_id of [ENV, OTHER]) {
      const { status, json } = await produce({ persona: operator }, { env_id });
      expect([status, json['stream']]).toEqual([200, `bus:${env_id}:app`]);
    }
    const ungranted = await produce({ persona: reader }, {});
    expect([ungranted.status, ungranted.json['code']]).toEqual([403, 'policy_denied']);
    const nowhere = await produce({ persona: operator }, { env_id: undefined });
    expect([nowhere.status, nowhere.json['code']]).toEqual([400, 'env_required']);
  });
});

describe('in a process whose callers the test names', () => {
  let stores: Stores;
  let bus: BusProcess;
  beforeAll(async () => {
    stores = await Stores.start();
    bus = await BusProcess.start(stores, { config: { produceRate: 1, produceBurst: 3 } });
  });
  afterAll(async () => {
    await bus[Symbol.asyncDispose]();
    await stores[Symbol.asyncDispose]();
  });

  test('BUS-075 the environment of the body is the one that counts, for a workload and for who acts for a person: stream, bucket and journal follow it', async () => {
    const own = newEnv();
    const delegated: Caller = { ...person(own), kind: 'delegated', subject: 'm2m-acme', service: 'm2m', vertical: 'acme', userId: 'u-1' };
    for (const caller of [workload('m2m-acme', 'acme'), delegated]) {
      const env = newEnv();
      const produced = await Promise.all(
        Array.from({ length: 5 }, (_, n) => bus.produce(caller, env, n).catch((error: { code: string }) => error)),
      );
      const done = produced.filter(outcome => 'stream' in outcome);
      expect(done.map(outcome => outcome.stream)).toEqual(Array(done.length).fill(`bus:${env}:app`));
      expect(produced.filter(outcome => 'code' in outcome && outcome.code === 'rate_limited').length).toBeGreaterThanOrEqual(1);
      expect(await bus.store.client.exists(`bus:rate:{${env}}`)).toBe(1);
      await vi.waitFor(
        async () =>
          expect(await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'produce'`).toHaveLength(done.length),
        10_000,
      );
    }
    expect(await bus.store.client.exists(`bus:rate:{${own}}`)).toBe(0);
    expect(await bus.pool.raw`select 1 from audit_journal where env_id = ${own}`).toHaveLength(0);
    expect(await bus.store.client.exists(`bus:{${own}}:app`)).toBe(0);
  });

  test('BUS-058 policies of the bus are administered on the bus: a set that is enforced forbids the next request, relations and attributes are kept', async () => {
    const origin = await bus.listen();
    const env = newEnv();
    const headers = { authorization: bearer(person(env)), 'content-type': 'application/json' };
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${origin}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      const text = await response.text();
      return { status: response.status, body: (text ? JSON.parse(text) : {}) as Record<string, unknown> };
    };
    const admin = (kind: string) => `/v1/admin/${kind}?target_env_id=${env}`;
    const lists = async () => (await call('GET', `/v1/streams?env_id=${env}`)).status;
    expect(await lists()).toBe(200);
    const policies = 'forbid(principal, action in [Action::"bus:read", Action::"bus:consume", Action::"bus:admin"], resource);';
    const made = await call('POST', admin('policy-sets'), { name: 'closed', policies, mode: 'enforced' });
    expect([made.status, made.body]).toMatchObject([200, { service: 'bus', env_id: env, mode: 'enforced' }]);
    expect(await lists()).toBe(403);
    expect((await call('GET', admin('policy-sets'))).body).toMatchObject({ items: [{ name: 'closed' }] });
    expect((await call('POST', admin('policy-sets'), { op: 'delete', policy_set_id: made.body['policy_set_id'] })).status).toBe(204);
    expect(await lists()).toBe(200);
    expect((await call('POST', admin('relations'), { subject: 'user:1', relation: 'owner', object: 'stream:app' })).body).toMatchObject({
      service: 'bus',
      env_id: env,
    });
    expect((await call('POST', admin('attributes'), { principal: 'user:1', key: 'team', value: 'a' })).body).toMatchObject({
      service: 'bus',
      key: 'team',
    });
    expect((await call('GET', admin('relations'))).body).toMatchObject({ items: [{ subject: 'user:1' }] });
    expect((await call('GET', admin('attributes'))).body).toMatchObject({ items: [{ key: 'team' }] });
    expect((await call('POST', admin('policy-sets'), { name: 'bad', policies: 'permit(' })).status).toBe(422);
    for (const kind of ['policy-sets', 'relations', 'attributes'])
      expect((await call('GET', `/v1/admin/${kind}`)).body).toMatchObject({ code: 'target_env_required' });
    expect((await call('GET', '/v1/admin/ui/policy')).body).toMatchObject({ page: 'policy', sections: [{ kind: 'tabs' }] });
  });
});
