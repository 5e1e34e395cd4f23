import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { as, eventually, openTestStores, type Persona, type TestStores } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { supervisor } from '../contract/index.ts';
import { catalogLine, service } from './fixtures/machine-box.ts';
import { operator, refusal, World } from './fixtures/world.ts';

let stores: TestStores;
let world: World;
const scratch = mkdtempSync(join(tmpdir(), 'platform-test-'));
beforeAll(async () => {
  stores = await openTestStores();
});
afterEach(() => world?.[Symbol.asyncDispose]());
afterAll(async () => {
  await stores?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

/** Lines of the supervisor's log, of this world and those before. */
const logged = (): Record<string, unknown>[] =>
  readFileSync(join(stores.dataDir, 'logs', 'test-captain.log'), 'utf8')
    .split('\n')
    .flatMap(line => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));

test('SUP-107 SUP-113 every path is under /v1, and no event of a domain is declared', () => {
  expect(Object.values(supervisor.routes).filter(({ path }) => !path.startsWith('/v1/'))).toEqual([]);
  expect([supervisor.events, Object.values(supervisor.routes).filter(({ options }) => 'emits' in options)]).toEqual([{}, []]);
});

test('SUP-007 SUP-011 SUP-014 SUP-029 SUP-033 SUP-050 SUP-058 SUP-060 its settings have the documented names and values', () => {
  const settings = Object.values(supervisor.base.config.properties as unknown as Record<string, { env: string; default: unknown }>);
  expect(Object.fromEntries(settings.map(setting => [setting.env.replace('PLATFORM_CAPTAIN_', ''), setting.default]))).toMatchObject({
    TIER_GATE_TIMEOUT: 60,
    LAST_RESORT_RESPAWN_S: 300,
    CERT_GRACE_S: 120,
    CATALOG_PATHS: '',
    EDGE_IP: '',
    MIN_MACHINES: 1,
    MAX_MACHINES: 1,
    MACHINE_ENV_FILE: '',
    TELEMETRY: 'host',
  });
});

describe('over the wire', () => {
  test('SUP-085 SUP-101 SUP-107 liveness asks nobody; pages and their data are gated, and answer POST like GET', async () => {
    world = await World.open(stores, [service('auth', 10)]);
    await world.box.boot();
    await world.settle();
    expect(await world.host.fetch('/v1/health')).toMatchObject({ status: 200, json: { service: 'captain' } });
    const target = '?target_env_id=00000000-0000-7000-8000-000000000002';
    for (const page of ['overview', 'machines', 'pending', 'services', 'alerts', 'upgrades', 'post-mortems']) {
      expect([page, (await world.host.fetch(`/v1/admin/ui/${page}`)).status]).toEqual([page, 401]);
      const read = await world.host.fetch(`/v1/admin/ui/${page}`, { persona: operator });
      const sent = await world.host.fetch(`/v1/admin/ui/${page}`, {
        method: 'POST',
        persona: operator,
        body: JSON.stringify({ params: {} }),
      });
      expect([page, read.status, sent.status, sent.json]).toEqual([page, 200, 200, read.json]);
    }
    expect((await world.host.fetch(`/v1/admin/services${target}`, { persona: operator })).json['items']).toContainEqual(
      expect.objectContaining({ service_type: 'auth', status: 'Active' }),
    );
    expect((await world.host.fetch(`/v1/admin/pending${target}`, { persona: operator })).json).toEqual({ items: [] });
    expect(
      (await world.host.fetch(`/v1/admin/pending/provision%3Anext/approve${target}`, { method: 'POST', persona: operator })).status,
    ).toBe(404);
    // Their data too are for whoever may administer the fleet.
    for (const resource of ['services', 'machines', 'pending', 'alerts']) {
      const path = `/v1/admin/${resource}${target}`;
      const as_ = async (persona?: Persona) => (await world.host.fetch(path, persona ? { persona } : {})).status;
      expect([resource, await as_(), await as_(as.user('sys:read')), await as_(operator)]).toEqual([resource, 401, 403, 200]);
    }
    // What was restarted over the page is an event of the audit trail, and of no domain.
    expect(world.host.bus.filter(({ event_type }) => event_type.startsWith('platform:captain:'))).toEqual([]);
  });
});

describe('one supervisor', () => {
  test('SUP-001 does not start beside another one that answers at its address', async () => {
    world = await World.open(stores, [service('auth', 10)]);
    const other = world.box.leave_({ service: 'captain', port: 21_500 });
    await world.kv.hset(
      'captain:svc:captain',
      '127.0.0.1:21500',
      JSON.stringify({
        service_type: 'captain',
        ip: '127.0.0.1',
        port: 21_500,
        pid: other.pid,
        status: 'Active',
        last_health_at: world.host.clock.now().toISOString(),
      }),
    );
    await expect(world.box.boot()).rejects.toThrow(`Another supervisor (process ${other.pid}) watches over 127.0.0.1`);
    other.alive = false;
    await world.box.boot();
    expect(world.box.of('auth')).toHaveLength(1);
  });
});

describe('further lines of the catalog', () => {
  const entry = (service_type: string, more: object = {}) => ({
    service_type,
    start_priority: 60,
    placement: [],
    singleton: false,
    min_instances: 0,
    health: { path: '/v1/health', timeout_ms: 2_000 },
    provision: { cpu_pct: 101, mem_pct: 101 },
    ...more,
  });

  test('SUP-011 H-09 come from files, the later one wins; built-in ones stay, and one that is wrong is named and does not count', async () => {
    const [first, second] = [join(scratch, 'first.json'), join(scratch, 'second.json')];
    writeFileSync(
      first,
      JSON.stringify([
        entry('extra', { entry: '/plugins/extra', env_allow: ['EXTRA_REGION'] }),
        entry('auth', { placement: ['pin:10.0.0.9'] }),
        entry('wrong', { placement: ['pni:1.2.3.4'] }),
        { service_type: 'half' },
      ]),
    );
    writeFileSync(second, JSON.stringify({ services: [entry('extra', { start_priority: 70 })] }));
    world = await World.open(stores, [service('auth', 10)], {
      environment: { PLATFORM_CAPTAIN_CATALOG_PATHS: `${first}:${join(scratch, 'absent.json')}:${second}` },
    });
    await world.box.boot();
    const items = (await world.by.catalog()).items;
    expect(items.map(({ service_type, start_priority }) => [service_type, start_priority])).toEqual([
      ['captain', 0],
      ['auth', 10],
      ['extra', 70],
    ]);
    expect([world.box.loaded, items.find(({ service_type }) => service_type === 'auth')?.placement]).toEqual([
      [{ directory: '/plugins/extra', variables: ['EXTRA_REGION'] }],
      [],
    ]);
    await eventually(() => logged().filter(({ alert }) => alert === 'captain.catalog.invalid').length).toBe(2);
  });
});

describe('what is logged', () => {
  test('SUP-017 SUP-109 every refusal of the one gate, under its name, with the call site that asked', async () => {
    world = await World.open(stores, [
      service('auth', 10),
      service('acme', 2, { singleton: true }),
      service('post', 30, { placement: ['anti:auth'] }),
      service('cron', 30, { placement: ['pin:10.0.0.9'], wanted: false }),
      service('lending', 50, { vertical: 'lab' }),
    ]);
    await world.box.boot();
    await world.settle();
    await refusal(world.by.startServices({ body: { service_types: ['cron'] } }));
    await refusal(world.by.instances({ body: { service_types: ['acme'] } }));
    // One that is busy would get another instance beside it, and may not have it here any more.
    const line = { ...catalogLine('lending', ['pin:10.0.0.9']), provision: { cpu_pct: 101, mem_pct: 1 } };
    await world.by.mergeCatalog({ body: { entries: [line] } });
    for (let ticks = 0; ticks < 3; ticks++) await world.pass('3s');
    const seen = () =>
      logged().flatMap(({ alert, service_type, where }) =>
        ['pin_mismatch', 'anti_violation', 'singleton_violation'].includes(String(alert)) ? [`${alert} ${service_type} ${where}`] : [],
      );
    await eventually(seen).toEqual(
      expect.arrayContaining([
        'anti_violation post boot',
        'pin_mismatch cron start',
        'singleton_violation acme remote',
        'pin_mismatch lending scale',
      ]),
    );
  });

  test('SUP-108 a service that was given up, and one that could not have its port, under the names alerts are made of', async () => {
    world = await World.open(stores, [service('auth', 10)]);
    await world.box.boot();
    world.box.plan = ['dies', 'dies', 'dies'];
    world.box.kill(world.box.of('auth')[0] as never, 'listen EADDRINUSE: address already in use');
    for (let turns = 0; turns < 40; turns++) await world.pass('250ms');
    const named = (alert: string) => logged().filter(line => line['alert'] === alert && line['service_type'] === 'auth');
    await eventually(() => [named('captain.service.bind_failed').length > 0, named('captain.service.failed').length > 0]).toEqual([
      true,
      true,
    ]);
  });
});
