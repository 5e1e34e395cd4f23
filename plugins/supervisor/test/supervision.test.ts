import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnrollmentSecret, sealedEnrollment, SYSTEM } from '@platform/sdk';
import { as, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '@platform/kernel/storage/fixtures/eventually';
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

describe('a start', () => {
  test('SUP-006 SUP-008 SUP-009 goes tier by tier, each when everything of the one before is Active; what is there is told to the registry', async () => {
    await open([service('proxy', 20), service('sys', 15), service('auth', 10), service('acme', 2), service('bus', 20)]);
    await world.box.boot();
    expect(world.box.processes.map(({ service: name }) => name)).toEqual(['acme', 'auth', 'sys', 'bus', 'proxy']);
    await eventually(() => statuses('proxy')).toEqual(['Active']);
    const [row] = await world.rows('sys');
    expect(row).toMatchObject({
      service_type: 'sys',
      ip: '127.0.0.1',
      port: only('sys').port,
      pid: only('sys').pid,
      version: '0.1.0.build-1',
      restarts: 0,
      log_path: '/logs/sys.log',
    });
    expect(only('sys').port).toBeGreaterThanOrEqual(20_000);
    expect(only('sys').port).toBeLessThan(30_000);
  });

  test('SUP-086 is over when every service has the instances it needs; readiness says which ones have not', async () => {
    await open([service('auth', 10), service('stat', 30, { min_instances: 0 })]);
    expect((await world.host.fetch('/v1/captain/readiness')).json).toEqual({
      ready: false,
      missing: [{ service_type: 'auth', active: 0, needed: 1 }],
    });
    await world.box.boot();
    await eventually(async () => (await world.host.fetch('/v1/captain/readiness')).status).toBe(200);
  });

  test('SUP-007 waits for a tier no longer than it may, says so, and goes on', async () => {
    await open([service('auth', 10), service('sys', 15)], { environment: { PLATFORM_CAPTAIN_TIER_GATE_TIMEOUT: '1' } });
    world.box.plan = ['silent'];
    const lines = await world.box.boot();
    expect(world.box.processes.map(({ service: name }) => name)).toEqual(['auth', 'sys']);
    expect(lines).toContainEqual(expect.stringMatching(/^! auth is not active yet/));
  });

  test('SUP-010 SUP-012 starts what was asked for, and anything else of the catalog later', async () => {
    await open([service('auth', 10), service('stat', 30, { wanted: false })]);
    await world.box.boot();
    expect(world.box.of('stat')).toEqual([]);
    expect((await world.by.catalog()).items.map(({ service_type }) => service_type)).toEqual(['captain', 'auth', 'stat']);
    const { started } = await world.by.startServices({ body: { service_types: ['stat'] } });
    await eventually(() => world.box.of('stat').length).toBe(1);
    expect(started).toEqual([{ service_type: 'stat', instance_key: keyOf(only('stat')) }]);
  });

  test('SUP-022 SUP-023 passes over what is pinned elsewhere, and warns of what may not stand beside another', async () => {
    await open([
      service('auth', 10),
      service('post', 30, { placement: ['anti:auth'] }),
      service('cron', 30, { placement: ['pin:10.0.0.9'] }),
    ]);
    const lines = await world.box.boot();
    expect(world.box.processes.map(({ service: name }) => name)).toEqual(['auth']);
    expect(lines.filter(line => line.startsWith('!'))).toEqual(['! POST is not started here: anti_violation']);
  });

  test('a supervisor that comes after one that died keeps its processes by pid and start time, restarts none, and ends those that know other addresses', async () => {
    await open([service('auth', 10), service('sys', 15)]);
    const kept = world.box.leave_({ service: 'auth', port: 21_001 });
    const outdated = world.box.leave_({ service: 'sys', port: 21_002, release: 'outdated' });
    const lines = await world.box.boot();
    expect(lines).toContain('Keeping AUTH, which runs');
    expect([kept.alive, kept.signals, outdated.alive, outdated.signals[0]]).toEqual([true, [], false, 'SIGTERM']);
    expect(world.box.of('auth')).toEqual([kept]);
    await eventually(() => world.rows('auth')).toMatchObject([{ pid: kept.pid, port: 21_001, status: 'Active' }]);
    expect(world.box.of('sys')).toHaveLength(1);
  });
});

describe('a service that goes down', () => {
  test('SUP-025 SUP-084 is Killed in the registry at once and started again after a second, at the same port', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    const first = only('auth');
    world.box.kill(first);
    await eventually(() => statuses('auth')).toEqual(['Killed']);
    await world.pass('750ms');
    expect(world.box.of('auth')).toEqual([]);
    await world.pass('500ms');
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect([only('auth').pid === first.pid, only('auth').port]).toEqual([false, first.port]);
    expect(await world.rows('auth')).toMatchObject([{ restarts: 1 }]);
  });

  test('SUP-027 SUP-028 SUP-032 SUP-074 SUP-092 is given up after three restarts with an alert: its row is gone, its port is free; the alert goes when it is Active again', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    world.box.plan = ['dies', 'dies', 'dies'];
    const { port } = only('auth');
    world.box.kill(only('auth'));
    for (let seconds = 0; seconds < 40; seconds++) await world.pass('250ms');
    await eventually(async () => (await world.by.alerts()).items).toMatchObject([
      { service_type: 'auth', restarts: 3, reason: 'ended (1)', log_path: '/logs/auth.log', at: expect.any(String) },
    ]);
    expect(JSON.parse((await world.kv.hget('captain:alerts', 'auth')) as string)).toMatchObject({ service_type: 'auth', restarts: 3 });
    await eventually(() => world.rows('auth')).toEqual([]);
    await eventually(() => world.kv.exists(`captain:port:127.0.0.1:${port}`)).toBe(0);
    for (let turns = 0; turns < 12; turns++) await world.pass('30s');
    await eventually(() => statuses('auth')).toEqual(['Active']);
    await eventually(async () => (await world.by.alerts()).items).toEqual([]);
  });

  test('SUP-031 an attempt of the last resort passes the placement gate like an operator’s start', async () => {
    await open([service('auth', 10, { placement: ['anti:sys'] })]);
    await world.box.boot();
    world.box.plan = ['dies', 'dies', 'dies'];
    world.box.kill(only('auth'));
    for (let turns = 0; turns < 40; turns++) await world.pass('250ms');
    await world.kv.hset(
      'captain:svc:sys',
      '127.0.0.1:1',
      JSON.stringify({ service_type: 'sys', ip: '127.0.0.1', port: 1, status: 'Active', pid: 1 }),
    );
    world.box.found(service('sys', 15, { wanted: false }));
    await world.settle();
    const before = world.box.processes.filter(({ service: name }) => name === 'auth').length;
    for (let turns = 0; turns < 12; turns++) await world.pass('30s');
    expect(world.box.processes.filter(({ service: name }) => name === 'auth')).toHaveLength(before);
    expect((await world.by.alerts()).items).toMatchObject([{ service_type: 'auth', reason: 'anti_violation' }]);
  });

  test('one that was taken out of the platform ends when routers have left it, is not started again, and begins anew when it is brought back', async () => {
    await open([service('auth', 10), service('lending', 60, { vertical: 'acme' })]);
    await world.box.boot();
    const first = only('lending');
    world.box.withdraw('lending', true);
    await eventually(() => statuses('lending')).toEqual(['Inactive']);
    expect(first.signals).toEqual([]);
    await world.pass('3s');
    await eventually(() => first.signals).toEqual(['SIGTERM']);
    // Brought back while the first still ends: the next one does not begin beside it.
    world.box.withdraw('lending', false);
    await world.settle();
    expect(world.box.of('lending')).toHaveLength(1);
    world.box.kill(first);
    await eventually(() => world.box.of('lending').length).toBe(1);
    await eventually(() => statuses('lending')).toEqual(['Active']);
    expect(only('lending')).not.toBe(first);

    const second = only('lending');
    world.box.withdraw('lending', true);
    await world.pass('3s');
    world.box.kill(second);
    for (let turns = 0; turns < 12; turns++) await world.pass('30s');
    expect([world.box.of('lending'), await world.rows('lending'), (await world.by.alerts()).items]).toEqual([[], [], []]);
    expect((await world.by.readiness()).missing.map(({ service_type: service }) => service)).not.toContain('lending');
  });

  test('its end is kept: why, the last 200 lines, the last looks, the build', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    world.box.kill(only('auth'), 'ended (SIGSEGV)');
    await eventually(async () => (await world.by.postMortems({ query: { service_type: 'auth' } })).items[0]).toMatchObject({
      service_type: 'auth',
      reason: 'ended (SIGSEGV)',
      build: 'build-1',
      ip: '127.0.0.1',
      looks: [{ answer: 'healthy in 1.5 ms' }],
    });
    const [end] = (await world.by.postMortems({ query: { service_type: 'auth' } })).items;
    expect([end?.log_lines.length, end?.log_lines[199]]).toEqual([200, 'auth line 200']);
  });

  test('SUP-083 one that fails three looks in a row is killed and comes back; SUP-037 one that is only gone is found at the next look', async () => {
    await open([service('auth', 10)], { environment: { PLATFORM_CAPTAIN_CERT_GRACE_S: '0' } });
    await world.box.boot();
    const first = only('auth');
    first.health = { ok: false, reason: 'answered 500', warming: false };
    await world.pass('9s');
    await eventually(() => first.signals).toEqual(['SIGKILL']);
    await world.pass('3s');
    await eventually(() => statuses('auth')).toEqual(['Active']);
    const second = only('auth');
    second.alive = false;
    await world.pass('6s');
    await eventually(() => world.box.of('auth').length).toBe(1);
  });

  test('F-02 one whose store is away is waited for, and nothing is held against it', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    world.box.away = true;
    world.box.kill(only('auth'));
    for (let turns = 0; turns < 30; turns++) await world.pass('1s');
    expect((await world.by.alerts()).items).toEqual([]);
    world.box.away = false;
    for (let turns = 0; turns < 20; turns++) await world.pass('1s');
    await eventually(() => statuses('auth')).toEqual(['Active']);
    expect(await world.rows('auth')).toMatchObject([{ restarts: 1 }]);
  });
});

describe('every three seconds', () => {
  test('SUP-004 SUP-073 SUP-077 SUP-091 what services and the machine need is published', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    world.box.usage_ = { cpu_pct: 91, mem_pct: 30, used_mb: 2_000 };
    await world.pass('3s');
    await eventually(() => world.rows('auth')).toMatchObject([{ metrics: { mem_mb: 50, latency_ms: 1.5 } }]);
    expect((await world.by.machines()).items).toMatchObject([
      { ip: '127.0.0.1', cpu_pct: 91, mem_pct: 30, used_mb: 2_000, saturated: true, saturated_service: 'auth', base: true },
    ]);
    expect(await world.kv.ttl('captain:host:127.0.0.1')).toBeGreaterThan(110);
    expect(await world.kv.lrange('captain:provision:order', 0, -1)).toEqual(['127.0.0.1']);
  });

  test('SUP-061 SUP-063 SUP-064 the machine’s enrollment is open for its services, sealed in a file only its owner reads, and gone after an orderly shutdown', async () => {
    await open([service('auth', 10)]);
    await world.box.boot();
    await world.pass('6s');
    const [first, second] = world.box.enrollments;
    expect([first?.services, first?.secret === second?.secret, first?.secret.length]).toEqual([['captain', 'auth'], true, 64]);
    const file = join(stores.dataDir, 'captain', 'enrollment.sealed');
    expect([statSync(file).mode & 0o777, readFileSync(file, 'utf8').includes(first?.secret ?? '?')]).toEqual([0o600, false]);
    await world.box.stop();
    expect(existsSync(file)).toBe(false);
  });

  test('SUP-062 it is sealed anew before its life is over, and never changes; one that was changed does not count', () => {
    let now = 1_000_000;
    const made = new EnrollmentSecret(join(stores.dataDir, 'sealed'), () => now);
    const secret = Buffer.from(made.value).toString('hex');
    const sealedAt = () => sealedEnrollment(join(stores.dataDir, 'sealed'), now)?.sealedAt;
    now += 19 * 3_600_000;
    made.refresh();
    expect(sealedAt()).toBe(1_000_000);
    now += 2 * 3_600_000;
    made.refresh();
    expect(sealedAt()).toBe(now);
    expect(Buffer.from(new EnrollmentSecret(join(stores.dataDir, 'sealed'), () => now).value).toString('hex')).toBe(secret);
    const file = join(stores.dataDir, 'sealed', 'captain', 'enrollment.sealed');
    const whole = readFileSync(file);
    for (const at of [0, 10, 25, whole.length - 1]) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] as number) ^ 1;
      writeFileSync(file, changed);
      expect(sealedAt()).toBeUndefined();
    }
    writeFileSync(file, whole);
    expect(sealedAt()).toBe(now);
    now += 25 * 3_600_000;
    expect(Buffer.from(new EnrollmentSecret(join(stores.dataDir, 'sealed'), () => now).value).toString('hex')).not.toBe(secret);
  });
});

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
  test('SUP-087 SUP-088 see instances, restart one, and are told what does not exist', async () => {
    await open([service('auth', 10), service('sys', 15)]);
    await world.box.boot();
    const first = only('auth');
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
    expect(await refusal(remote.instances({ body: { service_types: ['stat'], path: '/bin/sh' } } as never))).toMatchObject({
      status: 400,
      code: 'validation_failed',
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
