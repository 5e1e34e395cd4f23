import { SYSTEM } from '@platform/sdk';
import { as, eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { inOrder } from '../src/control/in-order.ts';
import { catalogLine, type BoxedProcess, service } from './fixtures/machine-box.ts';
import { refusal, World } from './fixtures/world.ts';

let stores: TestStores;
let world: World;
beforeAll(async () => {
  stores = await openTestStores();
});
afterEach(() => world?.[Symbol.asyncDispose]());
afterAll(() => stores?.[Symbol.asyncDispose]());

const open = async (...args: Parameters<typeof World.open> extends [TestStores, ...infer R] ? R : never) =>
  (world = await World.open(stores, ...args));
const statuses = async (name: string) => (await world.rows(name)).map(({ status }) => status);
const only = (name: string): BoxedProcess => world.box.of(name)[0] as BoxedProcess;
const keyOf = (process: BoxedProcess) => `${world.box.ip}:${process.port}`;

describe('what others tell it', () => {
  test('SUP-110 what services answered is counted for the day, until the statistics have summed that day up', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    const at = (hours: number) => new Date(world.host.clock.now().getTime() + hours * 3_600_000).toISOString();
    const flush = (requests: number, errors: number, when = at(0), name = 'auth') =>
      JSON.stringify({
        service: name,
        at: when,
        counts: { requests },
        statuses: { '2xx': requests - errors, '5xx': errors },
        latency_ms: { p50: 1, p95: 2, p99: 3 },
      });
    const today = async () => (await world.by.services({ query: {} })).items.find(({ service_type }) => service_type === 'auth')?.today;
    await eventually(today).toEqual({ requests: 0, errors: 0 });
    for (const nonsense of [
      'no flush',
      '{}',
      JSON.stringify({ service: 'auth', at: at(0), counts: { requests: -1 } }),
      flush(9, 9, at(100)),
    ])
      await world.kv.publish('stat:metrics', nonsense);
    await world.kv.publish('stat:metrics', flush(10, 1));
    await world.kv.publish('stat:metrics:tls', flush(5, 2));
    await world.kv.publish('stat:metrics', flush(100, 0, at(0), 'sys'));
    await eventually(today).toEqual({ requests: 15, errors: 3 });
    // After midnight a new day has begun when the one before is summed up.
    await world.kv.publish('stat:metrics', flush(4, 0, at(24)));
    await eventually(today).toEqual({ requests: 19, errors: 3 });
    await world.kv.publish('stat:rollups:day', flush(15, 3, at(0)));
    await eventually(today).toEqual({ requests: 4, errors: 0 });
  });

  test('SUP-065 a policy that changed is heard of on the event bus, by a workload that may do nothing else, and holds from then on', async () => {
    const [asked, sets] = [[] as unknown[], [] as object[]];
    const heard = Promise.withResolvers<object>();
    let sent = false;
    const consume = ({ caller, body, signal }: { caller: string; body: { stream_family: string }; signal: AbortSignal }) => {
      asked.push([caller, body.stream_family]);
      const idle = new Promise(resolve => signal.addEventListener('abort', () => resolve({ entries: [] }), { once: true }));
      if (sent || body.stream_family !== 'policy') return idle;
      sent = true;
      return heard.promise;
    };
    const settled = Promise.withResolvers<unknown>();
    const stubs = {
      sys: { policySnapshot: () => ({ sets, relations: [], attributes: [] }) },
      bus: { consume, ack: ({ caller }: { caller: string }) => (settled.resolve(caller), { acked: 1, lost: [] }) },
    };
    await open([service('auth', 10)], { stubs });
    await world.by.services({ query: {} });
    sets.push({
      policy_set_id: 'set-1',
      env_id: SYSTEM.envId,
      service: 'captain',
      name: 'nobody looks',
      origin: 'tenant',
      mode: 'enforced',
      version: 1,
      policies: 'forbid(principal, action == Action::"captain:admin", resource);',
      created_at: '',
      updated_at: '',
      updated_by: 'test',
    });
    await world.by.services({ query: {} });
    const event = {
      message_id: '1-0',
      stream_family: 'policy',
      event_type: 'platform:sys:policy:updated',
      env_id: SYSTEM.envId,
      correlation_id: 'c',
      idempotency_key: 'k',
      payload: { service: 'captain' },
    };
    heard.resolve({ entries: [event] });
    expect(await settled.promise).toBe('captain-policy');
    expect(asked).toContainEqual(['captain-policy', 'policy']);
    expect(world.host.process.instances.get('captain')).toBeDefined();
    expect(await refusal(world.by.services({ query: {} }))).toMatchObject({ status: 403, code: 'policy_denied' });
  });
});

describe('operators', () => {
  test('SUP-087 see instances, restart one, and are told what does not exist', async () => {
    await open([service('auth', 10), service('sys', 15)]);
    await world.box.boot();
    const first = only('auth');
    const titles = async (order: 'asc' | 'desc') =>
      (await world.by.services({ query: { sort: 'title', order } })).items.map(({ title }) => title).filter(title => title !== 'CAPTAIN');
    expect([(await titles('asc')).slice(0, 1), (await titles('desc')).at(-1)]).toEqual([['AUTH'], 'AUTH']);
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect((await world.by.services({ query: { service_type: 'auth' } })).items).toMatchObject([
      { instance_key: keyOf(first), title: 'AUTH', status: 'Active' },
    ]);
    expect(await world.by.service({ params: { instance_key: keyOf(first) } })).toMatchObject({ service_type: 'auth' });
    expect(await world.by.restart({ params: { instance_key: keyOf(first) } })).toMatchObject({
      instance_key: keyOf(first),
      action: 'restart',
      operation_id: expect.any(String),
    });
    await eventually(() => first.alive).toBe(false);
    await world.pass('2s');
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect(await refusal(world.by.restart({ params: { instance_key: '127.0.0.1:1' } }))).toMatchObject({
      status: 404,
      code: 'instance_not_found',
    });
    expect(await refusal(world.by.unknownAction({ params: { instance_key: keyOf(first), action: 'explode' } }))).toMatchObject({
      status: 400,
      code: 'unknown_action',
    });
    expect((await world.by.serviceLog({ params: { instance_key: keyOf(only('auth')) }, query: { lines: 2 } })).lines).toEqual([
      'auth line 1',
      'auth line 2',
    ]);
    world.box.workers.set(only('auth').pid, [{ pid: 7, cpu_ms: 12.4, rss_bytes: 50 * 1_048_576 }]);
    expect(await world.by.serviceProcesses({ params: { instance_key: keyOf(only('auth')) } })).toEqual({
      service_type: 'auth',
      items: [{ pid: 7, cpu_ms: 12, mem_mb: 50 }],
    });
  });

  test('G-CAP-05 sort machines by what they say of themselves, either way; those that say the same stay as they came', async () => {
    await open([]);
    const machine = async (ip: string, cpu_pct: number, used_mb: number) => {
      const sample = {
        ip,
        cpu_pct,
        mem_pct: 30,
        used_mb,
        saturated: false,
        saturated_service: null,
        sampled_at: '2026-01-01T00:00:00.000Z',
      };
      await world.kv.rpush('captain:provision:order', ip);
      await world.kv.set(`captain:host:${ip}`, JSON.stringify(sample));
    };
    await machine('10.0.0.2', 70, 900);
    await machine('10.0.0.1', 9, 900);
    await machine('10.0.0.13', 70, 10_000);
    const sorted = async (query: object) =>
      (await world.by.machines({ query })).items.flatMap(({ ip }) => (ip.startsWith('10.') ? [ip.at(-1)] : [])).join('');
    for (const [sort, asc, desc] of [
      ['ip', '123', '321'],
      ['cpu_pct', '123', '231'],
      ['used_mb', '213', '321'],
      ['mem_pct', '213', '213'],
    ])
      expect([sort, await sorted({ sort, order: 'asc' }), await sorted({ sort, order: 'desc' })]).toEqual([sort, asc, desc]);
    expect([await sorted({}), await sorted({ sort: 'cpu_pct' })]).toEqual(['213', '123']);
    for (const unknown of [{ sort: 'sampled_at' }, { sort: 'ip', order: 'up' }])
      expect(await refusal(world.by.machines({ query: unknown as never }))).toMatchObject({ status: 400, code: 'validation_failed' });
    // What has said nothing yet comes last, whichever way.
    const rows = [{ of: {} }, { of: { ms: 1 } }, { of: { ms: 20 } }];
    const ms = (order: 'asc' | 'desc') => inOrder(rows, { sort: 'of.ms', order }).map(({ of }) => of.ms);
    expect([ms('asc'), ms('desc')]).toEqual([
      [1, 20, undefined],
      [20, 1, undefined],
    ]);
  });

  test('SUP-066 SUP-067 never reach the supervisor’s own row', async () => {
    await open([]);
    const [own] = await world.rows('captain');
    const key = `127.0.0.1:${String(own?.['port'])}`;
    for (const action of ['restart', 'stop', 'drain', 'upgrade', 'abortUpgrade', 'rollback'] as const)
      expect([action, await refusal(world.by[action]({ params: { instance_key: key }, body: {} } as never))]).toMatchObject([
        action,
        { status: 409, code: 'self_target' },
      ]);
    expect(await refusal(world.by.startServices({ body: { service_types: ['captain'] } }))).toMatchObject({
      status: 409,
      code: 'self_target',
    });
  });

  test('G-CAP-03 stop the last active instance of a service only when they insist', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    const instance_key = keyOf(only('auth'));
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect(await refusal(world.by.stop({ params: { instance_key }, body: {} }))).toMatchObject({
      status: 409,
      code: 'last_active_instance',
    });
    await world.by.stop({ params: { instance_key }, body: { force: true } });
    await eventually(() => world.rows('auth')).toEqual([]);
    await world.pass('20s');
    expect(world.box.of('auth')).toEqual([]);
  });

  test('G-CAP-03 take one of two instances out of turn, while the other one serves; what lives on another machine is asked for there', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    const instance_key = keyOf(only('auth'));
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect(await refusal(world.by.drain({ params: { instance_key } }))).toMatchObject({ status: 409, code: 'last_active_instance' });
    await world.by.startServices({ body: { service_types: ['auth'] } });
    await eventually(() => statuses('auth')).toEqual(['Active', 'Active']);
    expect(await world.by.drain({ params: { instance_key } })).toMatchObject({ instance_key, action: 'drain' });
    await eventually(async () => (await statuses('auth')).toSorted()).toEqual(['Active', 'Inactive']);
    const [there, row] = ['10.9.9.9:21501', { service_type: 'auth', ip: '10.9.9.9', port: 21_501, status: 'Active', pid: 1 }];
    await world.kv.hset('captain:svc:auth', there, JSON.stringify(row));
    for (const ask of [world.by.restart, world.by.serviceLog, world.by.serviceProcesses])
      expect(await refusal(ask({ params: { instance_key: there } }))).toMatchObject({ status: 409, code: 'elsewhere' });
  });

  test('SUP-018 SUP-019 SUP-020 SUP-024 SUP-094 SUP-098 a start that is refused says for each service why, and nothing is started', async () => {
    await open([
      service('auth', 10),
      service('acme', 2, { singleton: true }),
      service('post', 30, { placement: ['anti:auth'], wanted: false }),
      service('cron', 30, { placement: ['pin:10.0.0.9'], wanted: false }),
    ]);
    await world.box.boot();
    await eventually(() => statuses('auth')).toEqual(['Active']);
    const before = world.box.processes.length;
    const refused = await refusal(world.by.startServices({ body: { service_types: ['auth', 'cron', 'post', 'acme'] } }));
    expect([refused.status, refused.extra]).toEqual([
      409,
      {
        reason: 'pin_mismatch',
        refusals: [
          { service_type: 'cron', reason: 'pin_mismatch' },
          { service_type: 'post', reason: 'anti_violation' },
          { service_type: 'acme', reason: 'singleton_violation' },
        ],
      },
    ]);
    const remote = world.host.by(as.machine('captain-remote', 'captain:instances:write'));
    expect(await refusal(remote.instances({ body: { service_types: ['cron'] } }))).toMatchObject({
      status: 409,
      extra: { reason: 'pin_mismatch' },
    });
    expect(await refusal(world.by.startServices({ body: { service_types: ['nothing'] } }))).toMatchObject({
      status: 400,
      code: 'unknown_service_type',
    });
    expect(world.box.processes).toHaveLength(before);
  });

  test('SUP-095 SUP-096 SUP-097 SUP-105 the remote channel starts services of the catalog and does nothing else', async () => {
    await open([service('auth', 10), service('stat', 30, { wanted: false })]);
    await world.box.boot();
    const remote = world.host.by(as.machine('captain-remote', 'captain:instances:write'));
    expect((await remote.instances({ body: { service_types: ['stat'] } })).started).toHaveLength(1);
    for (const member of ['path', 'port', 'env', 'command'])
      expect([member, await refusal(remote.instances({ body: { service_types: ['stat'], [member]: '/bin/sh' } } as never))]).toMatchObject([
        member,
        { status: 400, code: 'validation_failed' },
      ]);
    expect(await refusal(remote.instances({ body: { service_types: ['nothing'] } }))).toMatchObject({
      status: 400,
      code: 'unknown_service_type',
    });
    expect(await refusal(remote.services())).toMatchObject({ status: 403 });
    // Even one that was given everything is held to its channel.
    const mighty = world.host.by(as.machine('captain-remote', 'captain:admin'));
    expect(await refusal(mighty.startServices({ body: { service_types: ['stat'] } }))).toMatchObject({
      status: 403,
      code: 'channel_restricted',
    });
    expect(await refusal(mighty.shutdown({ body: {} }))).toMatchObject({ status: 403, code: 'channel_restricted' });
  });

  test('SUP-111 a start that finds no port, a process that cannot be started, or a registry that takes no row is an error of ours', async () => {
    await open([service('stat', 30, { wanted: false })]);
    const start = () => refusal(world.by.startServices({ body: { service_types: ['stat'] } }));
    const failed = { status: 500, code: 'start_failed' };
    const { isFree, prepare } = world.box;
    world.box.isFree = async () => false;
    expect(await start()).toMatchObject(failed);
    world.box.isFree = isFree;
    world.box.prepare = async () => () => {
      throw new Error('spawn EAGAIN');
    };
    expect(await start()).toMatchObject(failed);
    world.box.prepare = prepare;
    const { instances } = world.box;
    world.box.instances = { ...instances, write: async () => Promise.reject(new Error('READONLY')) };
    expect(await start()).toMatchObject(failed);
    world.box.instances = instances;
    // Nothing of them is left.
    await eventually(() => world.box.of('stat')).toEqual([]);
    expect((await world.by.startServices({ body: { service_types: ['stat'] } })).started).toHaveLength(1);
  });

  test('SUP-099 end the machine; the last tier goes first, and every row with it', async () => {
    await open([service('auth', 10), service('sys', 15)]);
    await world.box.boot();
    await eventually(() => statuses('sys')).toEqual(['Active']);
    await world.by.shutdown({ body: { reason: 'done' } });
    await eventually(() => world.box.left).toBe(1);
    const order: string[] = [];
    for (const process of world.box.processes) Object.assign(process.signals, { push: () => order.push(process.service) });
    await world.box.stop();
    expect([order, await world.rows('auth'), await world.rows('sys')]).toEqual([['sys', 'auth'], [], []]);
  });

  test('the load of the machine is looked at once a tick, for it is counted from one look to the next', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    let looks = 0;
    const { usage_ } = world.box;
    world.box.machine = () => ((looks += 1), usage_);
    for (const ticks of [1, 2]) {
      await world.host.clock.advance('3s');
      await world.settle();
      expect(looks).toBe(ticks);
    }
  });

  test('SUP-093 H-09 merge lines into the catalog; what is built in stays, and a key that means nothing is refused', async () => {
    await open([service('auth', 10), service('lending', 50, { vertical: 'lab' })]);
    expect(await world.by.mergeCatalog({ body: { entries: [catalogLine('lending', ['pin:127.0.0.1'])] } })).toEqual({
      added: 0,
      updated: 1,
    });
    expect((await world.by.catalog()).items.find(({ service_type }) => service_type === 'lending')).toMatchObject({
      placement: ['pin:127.0.0.1'],
      start_priority: 60,
    });
    await world.by.startServices({ body: { service_types: ['lending'] } });
    // A line may let its service grow: one more at a look, each when the last one is in turn, and four at most.
    await eventually(() => world.box.of('lending').length).toBe(1);
    const grown = { ...catalogLine('lending', []), provision: { cpu_pct: 101, mem_pct: 1 } };
    await world.by.mergeCatalog({ body: { entries: [grown] } });
    // What a look has begun is over before the next one, else two of them would be seen at once.
    for (const count of [2, 3, 4, 4]) await eventually(async () => (await world.pass('3s'), world.box.of('lending').length)).toBe(count);
    expect(await refusal(world.by.mergeCatalog({ body: { entries: [catalogLine('auth', [])] } }))).toMatchObject({
      status: 409,
      code: 'builtin_entry',
    });
    expect(await refusal(world.by.mergeCatalog({ body: { entries: [catalogLine('lending', ['pni:127.0.0.1'])] } }))).toMatchObject({
      status: 422,
      code: 'invalid_placement',
    });
  });
});
