import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnrollmentSecret, sealedEnrollment } from '@platform/sdk';
import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type BoxedProcess, service } from './fixtures/machine-box.ts';
import { World } from './fixtures/world.ts';

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
    const seen: Record<string, string[]> = {};
    const prepare = world.box.prepare.bind(world.box);
    world.box.prepare = async request => {
      const earlier = ['acme', 'auth', 'sys'].filter(name => name !== request.service_type);
      const told = await Promise.all(earlier.map(async name => (await statuses(name)).map(status => `${name} ${status}`)));
      seen[request.service_type] = told.flat();
      return prepare(request);
    };
    await world.box.boot();
    const whole = ['acme Active', 'auth Active', 'sys Active'];
    expect(seen).toEqual({ acme: [], auth: whole.slice(0, 1), sys: whole.slice(0, 2), bus: whole, proxy: whole });
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
    const early = await world.host.fetch('/v1/captain/readiness');
    expect([early.status, early.json]).toEqual([503, { ready: false, missing: [{ service_type: 'auth', active: 0, needed: 1 }] }]);
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

  test('SUP-014 SUP-022 SUP-023 passes over what is pinned elsewhere, and warns of what may not stand beside another, or is one in the fleet', async () => {
    await open(
      [
        service('acme', 2, { singleton: true }),
        service('auth', 10),
        service('proxy', 20, { placement: ['pin:edge'] }),
        service('post', 30, { placement: ['anti:auth'] }),
        service('cron', 30, { placement: ['pin:10.0.0.9'] }),
      ],
      { environment: { PLATFORM_CAPTAIN_EDGE_IP: '10.0.0.8' } },
    );
    const last_health_at = world.host.clock.now().toISOString();
    const elsewhere = { service_type: 'acme', ip: '10.9.9.9', port: 1, pid: 1, status: 'Active', last_health_at };
    await world.kv.hset('captain:svc:acme', '10.9.9.9:1', JSON.stringify(elsewhere));
    const lines = await world.box.boot();
    expect(world.box.processes.map(({ service: name }) => name)).toEqual(['auth']);
    expect(lines.filter(line => line.startsWith('!'))).toEqual([
      '! ACME is not started here: singleton_violation',
      '! POST is not started here: anti_violation',
    ]);
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

  test('SUP-080 one that says nothing of itself is not looked at for fifteen seconds; the first healthy look then makes it Active', async () => {
    await open([service('auth', 10)], { environment: { PLATFORM_CAPTAIN_TIER_GATE_TIMEOUT: '1' } });
    world.box.plan = ['silent'];
    await world.box.boot();
    await world.pass('12s');
    expect(await statuses('auth')).toEqual(['Starting']);
    await world.pass('6s');
    await eventually(() => statuses('auth')).toEqual(['Active']);
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
    // Half of the time that passes it computes.
    const begun = world.host.clock.now().getTime();
    world.box.usage = () => ({ cpu_ms: (world.host.clock.now().getTime() - begun) / 2, rss_bytes: 50 * 1_048_576 });
    world.box.usage_ = { cpu_pct: 10, mem_pct: 30, used_mb: 2_000 };
    await world.pass('3s');
    await eventually(() => world.rows('auth')).toMatchObject([{ metrics: { mem_mb: 50, latency_ms: 1.5 } }]);
    world.box.usage_ = { cpu_pct: 91, mem_pct: 30, used_mb: 2_000 };
    await world.pass('2s');
    expect((await world.by.machines()).items).toMatchObject([{ cpu_pct: 10 }]);
    await world.pass('1s');
    await eventually(() => world.rows('auth')).toMatchObject([{ metrics: { cpu_pct: 50, mem_mb: 50, latency_ms: 1.5 } }]);
    expect((await world.by.machines()).items).toMatchObject([
      { ip: '127.0.0.1', cpu_pct: 91, mem_pct: 30, used_mb: 2_000, saturated: true, saturated_service: 'auth', base: true },
    ]);
    const lives = await world.kv.ttl('captain:host:127.0.0.1');
    expect([lives > 110, lives <= 120]).toEqual([true, true]);
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
