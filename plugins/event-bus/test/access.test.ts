import { PolicyStore } from '@platform/kernel/test/policy-store';
import type { AnyRoute } from '@platform/sdk';
import { as, type BootedHost, eventually, openTestStores, type Persona, type TestStores, TokenMint } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventBus } from '../contract/index.ts';
import { EventSource } from './fixtures/event-source.ts';
import { newEnv, person, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ENV = '018f0000-0000-7000-8000-00000000b001';
const OTHER = '018f0000-0000-7000-8000-00000000b002';

const shop = workload('shop');
const mail = workload('mail');
let stores: TestStores;
let bus: RunningBus;
let host: BootedHost<typeof eventBus>;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores, { produceRate: 1, produceBurst: 3, stubs: { sys: new PolicyStore().stub }, logLevel: 'debug' });
  ({ host } = bus);
});
afterAll(async () => {
  await bus?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

describe('who may come in, by the kernel’s own verifier', () => {
  const ada = as.userIn(ENV, 'bus:read', 'bus:consume', 'bus:produce');
  const acting = as.delegated(ENV, 'bus:read', 'bus:consume');
  const operator = as.machine('bff-producer', 'bus:produce');
  const reader = as.machine('stat', 'bus:consume');
  beforeAll(() => host.know(ada, acting, operator, reader));

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

describe('which scope opens which door', () => {
  const SCOPES = ['bus:produce', 'bus:consume', 'bus:read', 'bus:admin', 'bus:policy:read', 'bus:policy:admin', 'bus:contracts:write'];
  const OPERATORS = ['bus:read', 'bus:consume', 'bus:admin'];
  const at = { env_id: ENV, stream_family: 'app' };
  const group = { ...at, consumer_group: 'doors' };
  const event = { ...at, event_type: 'platform:shop:order:created', payload: {} };
  const page = (name: string) => ['GET', `/v1/admin/ui/${name}`] as const;
  const doors: [ids: string, opens: string[], method: string, path: string, body?: object][] = [
    ['BUS-001', ['bus:produce'], 'POST', '/v1/produce', event],
    ['BUS-002', ['bus:produce'], 'POST', '/v1/produce/batch', { events: [event] }],
    ['BUS-054', ['bus:produce'], 'POST', '/v1/schedule', { ...event, deliver_at: '2026-01-01T00:00:00.000Z' }],
    ['BUS-055', ['bus:consume'], 'GET', `/v1/scheduled?env_id=${ENV}`],
    ['BUS-044', ['bus:consume'], 'POST', '/v1/consume', group],
    ['BUS-045', ['bus:consume'], 'POST', '/v1/ack', { ...group, message_id: '1-1' }],
    ['BUS-046', ['bus:consume'], 'POST', '/v1/nack', { ...group, message_id: '1-1' }],
    ['BUS-047', ['bus:consume'], 'GET', `/v1/consume/sse?${new URLSearchParams(group)}`],
    ['BUS-050', ['bus:admin'], 'GET', `/v1/dlq?env_id=${ENV}`],
    ['BUS-039', ['bus:admin'], 'POST', '/v1/dlq/replay', { env_id: ENV, filter: {}, dry_run: true }],
    ['BUS-051', OPERATORS, 'GET', `/v1/streams?env_id=${ENV}`],
    ['BUS-052', OPERATORS, 'GET', `/v1/streams/app/lag?env_id=${ENV}`],
    ['BUS-053', OPERATORS, 'GET', '/v1/metrics'],
    ['BUS-056', OPERATORS, ...page('overview')],
    ['BUS-056', OPERATORS, ...page('streams')],
    ['BUS-056', OPERATORS, ...page('consumers')],
    ['BUS-056', OPERATORS, ...page('metrics')],
    ['BUS-056', OPERATORS, ...page('dlq')],
    ['BUS-056', ['bus:policy:read', 'bus:policy:admin'], ...page('policy')],
  ];
  const nameOf = (scopes: readonly string[]) => `door-${scopes.join('-').replaceAll(':', '-') || 'none'}`;
  const knock = async (scopes: readonly string[], [, , method, path, body]: (typeof doors)[number]) => {
    const persona = as.machine(nameOf(scopes), ...scopes);
    if (path.includes('/sse?')) {
      host.know(persona);
      using source = await EventSource.open(host, path, { persona });
      return source.status === 403 ? 'policy_denied' : 'open';
    }
    const { status, json } = await host.fetch(path, { method, persona, ...(body ? { body: JSON.stringify(body) } : {}) });
    return status < 300 ? 'open' : `${String(json['code'])}`;
  };
  test('BUS-056 BUS-057 who reads sees the rows of the page of dead letters, and replays none', async () => {
    const persona = as.machine(nameOf(['bus:read']), 'bus:read');
    const at = `target_env_id=${ENV}`;
    const rows = await host.fetch(`/v1/admin/dlq?${at}`, { persona });
    expect([rows.status, rows.json['items']]).toEqual([200, []]);
    const replay = await host.fetch(`/v1/admin/dlq/replayMatching?${at}`, { method: 'POST', persona, body: '{}' });
    expect([replay.status, replay.json['code']]).toEqual([403, 'policy_denied']);
  });
  test.each(doors)('%s opens for any of %j, and for all the others together it stays shut: %s %s', async (...door) => {
    const [, opens] = door;
    expect(
      await knock(
        SCOPES.filter(scope => !opens.includes(scope)),
        door,
      ),
    ).toBe('policy_denied');
    for (const scope of opens) expect([scope, await knock([scope], door)]).toEqual([scope, 'open']);
  });
});
describe('what they find there', () => {
  test('BUS-075 the environment of the body is the one that counts, for a workload and for who acts for a person: stream, bucket and journal follow it', async () => {
    const own = newEnv();
    const [tenant, acting] = [workload('m2m-acme', 'acme'), as.delegated(own, 'bus:produce')];
    const callers: [Persona, string][] = [
      [tenant, host.mint.token(tenant, 'bus')],
      [acting, host.mint.token(acting, 'bus', { sub: 'm2m-acme', vertical: 'acme' })],
    ];
    const body = (env_id: string) => ({ event_type: 'acme:shop:order:created', env_id, stream_family: 'app', payload: {} });
    for (const [caller, token] of callers) {
      const env = newEnv();
      const produce = () => bus.call('produce', caller, { token, body: body(env) }).then(({ value }) => value as { stream: string });
      const produced = await Promise.all(Array.from({ length: 5 }, () => produce().catch((error: { code: string }) => error)));
      const done = produced.filter(outcome => 'stream' in outcome);
      expect(done.map(outcome => outcome.stream)).toEqual(Array(done.length).fill(`bus:${env}:app`));
      expect(produced.filter(outcome => 'code' in outcome && outcome.code === 'rate_limited').length).toBeGreaterThanOrEqual(1);
      expect(await bus.store.client.exists(`bus:rate:produce:${env}`)).toBe(1);
      await vi.waitFor(
        async () =>
          expect(await bus.pool.raw`select 1 from audit_journal where env_id = ${env} and action = 'produce'`).toHaveLength(done.length),
        10_000,
      );
    }
    expect(await bus.store.client.exists(`bus:rate:produce:${own}`)).toBe(0);
    expect(await bus.pool.raw`select 1 from audit_journal where env_id = ${own}`).toHaveLength(0);
    expect(await bus.store.client.exists(`bus:{${own}}:app`)).toBe(0);
  });

  test('BUS-058 policies of the bus are administered on the bus: a set that is enforced forbids the next request, relations and attributes are kept', async () => {
    const env = newEnv();
    const persona = person(env);
    const call = async (method: string, path: string, body?: object) => {
      const { status, json } = await host.fetch(path, { method, persona, ...(body ? { body: JSON.stringify(body) } : {}) });
      return { status, body: json };
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
    // To read them is one right, to change them another, and the administration of the bus is neither.
    const operator = as.userIn(env, 'bus:read', 'bus:consume', 'bus:produce', 'bus:admin');
    const reading = as.userIn(env, 'bus:policy:read');
    for (const kind of ['policy-sets', 'relations', 'attributes']) {
      expect((await call('GET', `/v1/admin/${kind}`)).body).toMatchObject({ code: 'target_env_required' });
      for (const [who, method] of [
        [operator, 'GET'],
        [operator, 'POST'],
        [reading, 'POST'],
      ] as const) {
        const { status, json } = await host.fetch(admin(kind), { method, persona: who, ...(method === 'POST' ? { body: '{}' } : {}) });
        expect([kind, method, status, json['code']]).toEqual([kind, method, 403, 'policy_denied']);
      }
    }
    expect((await call('GET', '/v1/admin/ui/policy')).body).toMatchObject({ page: 'policy', sections: [{ kind: 'tabs' }] });
  });
});

describe('an event stream', () => {
  test('a stream that may not be opened is refused before it begins', async () => {
    const { status } = await host.fetch('/v1/consume/sse?stream_family=dlq&consumer_group=tab', { persona: person(newEnv()) });
    expect(status).toBe(400);
    const other = await host.fetch(`/v1/consume/sse?stream_family=app&consumer_group=tab&env_id=${newEnv()}`, {
      persona: person(newEnv()),
    });
    expect([other.status, other.json['code']]).toEqual([403, 'env_mismatch']);
  });

  test('BUS-048 H-06 H-13 a ticket opens one stream once, within thirty seconds, as who minted it: of twelve at once one is let in', async () => {
    const env = newEnv();
    const mint = async (persona = mail) => {
      const answer = await host.fetch('/v1/consume/sse/ticket', { method: 'POST', persona });
      expect(answer.status).toBe(201);
      return answer.json['ticket'] as string;
    };
    const path = (ticket: string, to = env) => `/v1/consume/sse?env_id=${to}&stream_family=app&consumer_group=tab&ticket=${ticket}`;
    const status = async (address: string) => {
      using source = await EventSource.open(host, address);
      return source.status;
    };
    const ticket = await mint();
    expect((await Promise.all(Array.from({ length: 12 }, () => status(path(ticket))))).sort()).toEqual([200, ...Array(11).fill(401)]);
    const late = await mint();
    await bus.clock.advance('30s');
    expect(await status(path(late))).toBe(401);
    expect(await status(path('nonsense'))).toBe(401);
    // It is the minter's: another environment stays closed to a person.
    expect(await status(path(await mint(person(newEnv()))))).toBe(403);
    // And opens no other door.
    expect(
      (await host.fetch(`/v1/streams?env_id=${env}&ticket=${await mint()}`, { headers: { accept: 'text/event-stream' } })).status,
    ).toBe(401);
    const heard = newEnv();
    using source = await EventSource.open(host, path(await mint(), heard));
    await eventually(() => bus.store.client.xinfo('GROUPS', `bus:{${heard}}:app`).catch(() => [])).toHaveLength(1);
    await bus.produce(shop, heard, 1);
    expect((await source.next()).data).toMatchObject({ payload: { n: 1 } });
  });

  test('BUS-048 H-06 neither a token nor a ticket of the query reaches a log', async () => {
    const token = host.mint.token(mail, 'bus');
    for (const query of [
      `token=${token}&stream_family=dlq`,
      `token=${token}&stream_family=app&env_id=${newEnv()}`,
      'ticket=a-ticket-that-nobody-minted&stream_family=app',
    ]) {
      using _source = await EventSource.open(host, `/v1/consume/sse?consumer_group=tab&${query}`);
    }
    const all = JSON.stringify(host.logged);
    expect(all.length).toBeGreaterThan(2);
    expect(all).not.toContain(token);
    expect(all).not.toContain('a-ticket-that-nobody-minted');
  });
});
