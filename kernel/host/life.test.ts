import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProblemError, type AnyPlugin } from '@platform/sdk';
import { boot, type BootedHost, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { eventually } from '../storage/fixtures/eventually.ts';
import { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import { roleOf, schemaOf } from '../storage/schema/service-schema.ts';
import { newWorld, probePlugin } from '../test/probe.ts';
import type { probe } from '../test/probe-contract.ts';
import { Streams } from '../test/streams.ts';
import { takeLead } from './service/consumer-lead.ts';
import { JobRunner } from '../work/job-runner.ts';
import { findPlugins, importPlugin, readPlugin } from './plugin/loader.ts';
import { ServiceAlerts } from './process/service-alerts.ts';

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const world = newWorld();
const streams = new Streams();
const plugin = probePlugin(world);
let stores: TestStores;
let host: BootedHost<typeof probe>;
let pool: PostgresPool;

beforeAll(async () => {
  stores = await openTestStores();
  host = await boot<typeof probe, (typeof plugin)['uses']>(plugin, { stores, stubs: { bus: streams.stub as never } });
  const { host: address, port, database } = stores.stores.database;
  const leaf = await stores.authority.classical.issue({
    commonName: 'svc.probe',
    names: ['uri:urn:platform:workload:probe'],
    usages: ['client'],
    days: 1,
  });
  pool = new PostgresPool({
    host: address,
    port,
    database,
    schema: schemaOf('probe'),
    user: roleOf('probe'),
    ssl: {
      ca: stores.authority.classical.files.rootCertificate,
      cert: leaf.chain,
      key: leaf.key as string,
      servername: 'postgres.platform.internal',
    },
  });
});
afterAll(async () => {
  await pool?.close(0);
  await host?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

/** The probe with something wrong in it. */
const wrong = (change: (behaviour: Record<string, Record<string, unknown>>) => unknown): typeof plugin =>
  ({
    ...plugin,
    setup: async (context: never) => {
      const behaviour = (await (plugin as unknown as AnyPlugin).setup(context)) as unknown as Record<string, Record<string, unknown>>;
      return change(behaviour) ?? behaviour;
    },
  }) as never;
const failureOf = async (broken: typeof plugin) => {
  const error = await boot<typeof probe, (typeof plugin)['uses']>(broken, { stores }).then(
    async booted => (await booted[Symbol.asyncDispose](), new Error('it started')),
    (reason: unknown) => reason as Error,
  );
  return `${error.message}: ${(error.cause as Error | undefined)?.message ?? ''}`;
};

describe('a plugin that is wrong does not start, says why, and leaves the others alone', () => {
  test.each<[string, string, (behaviour: Record<string, Record<string, unknown>>) => unknown]>([
    [
      'its setup throws',
      'probe failed to set up: no good',
      () => {
        throw new Error('no good');
      },
    ],
    [
      'a route has no handler',
      'probe failed to set up: probe declares the route greet and gives it no handler',
      behaviour => void delete behaviour['routes']?.['greet'],
    ],
    [
      'a job has no work',
      'probe failed to start: probe declares the job count and gives it no work',
      behaviour => void delete behaviour['jobs']?.['count'],
    ],
    [
      'a subscription has no handler',
      'probe failed to start: probe consumes heard and gives it no handler',
      behaviour => void delete behaviour['on']?.['heard'],
    ],
    [
      'it is never ready',
      'probe failed to start: not today',
      behaviour => ({
        ...behaviour,
        ready: async () => {
          throw new Error('not today');
        },
      }),
    ],
  ])('%s', async (_, message, change) => {
    expect(await failureOf(wrong(change))).toBe(message);
    expect((await host.fetch('/v1/greet')).status).toBe(200);
  });
});

describe('a plugin folder', () => {
  const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const folder = (name: string, files: Record<string, string>) => {
    mkdirSync(join(root, name), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, name, file), text);
    return join(root, name);
  };
  const described = JSON.stringify({
    name: 'x',
    version: '1.2.3',
    type: 'module',
    platform: { contract: 'contract.js', plugin: 'plugin.js' },
  });
  const contract = `export const it = { base: { id: 'tiny', title: 'Tiny', vertical: 'lab', placement: { tier: 50 } }, actions: {}, problems: {}, events: {}, routes: {} };`;

  test('is found by its entry, alone or below a parent; others are passed over', () => {
    const one = folder('one', { 'package.json': described });
    folder('plain', { 'package.json': '{}' });
    expect(findPlugins([root, one, '', join(root, 'absent')])).toEqual([one, one]);
    rmSync(one, { recursive: true });
  });

  test('is refused with what is wrong with it: no entry, no contract, another contract than was checked, an undeclared call', async () => {
    await expect(readPlugin(folder('bare', { 'package.json': '{}' }))).rejects.toThrow('has no "platform"');
    await expect(readPlugin(folder('empty', { 'package.json': described, 'contract.js': 'export const other = 1;' }))).rejects.toThrow(
      'exports no contract',
    );
    const drifting = await readPlugin(
      folder('drift', {
        'package.json': described,
        'contract.js': contract,
        'plugin.js': `import { it } from './contract.js'; export default { contract: { ...it, base: { ...it.base, title: 'Another' } }, uses: {}, setup() {} };`,
      }),
    );
    expect(drifting.manifest).toMatchObject({ id: 'tiny', vertical: 'lab', version: '1.2.3', sdk: 1 });
    await expect(importPlugin(drifting)).rejects.toThrow('E060 tiny');
    const calling = await readPlugin(
      folder('calls', {
        'package.json': described,
        'contract.js': contract,
        'plugin.js': `import { it } from './contract.js'; export default { contract: it, uses: { auth: { base: { id: 'auth' } } }, setup() {} };`,
      }),
    );
    await expect(importPlugin(calling)).rejects.toThrow('E022 tiny: calls auth');
    const throwing = await readPlugin(
      folder('throws', { 'package.json': described, 'contract.js': contract, 'plugin.js': `throw new Error('at load');` }),
    );
    await expect(importPlugin(throwing)).rejects.toThrow('at load');
    const nothing = await readPlugin(
      folder('nothing', { 'package.json': described, 'contract.js': contract, 'plugin.js': 'export const x = 1;' }),
    );
    await expect(importPlugin(nothing)).rejects.toThrow('no default export');
  });
});

describe('a consumed event', () => {
  const event = { event_type: 'platform:sys:org:created', env_id: 'env-1', payload: { a: 1 } };

  test('is handled once, under its correlation id, and acknowledged; others of the family are acknowledged unread', async () => {
    world.heard.length = 0;
    expect(await streams.settled(streams.push('sys', { ...event, event_type: 'platform:sys:env:created' }))).toMatchObject({ how: 'ack' });
    expect(await streams.settled(streams.push('sys', { ...event, idempotency_key: 'once', correlation_id: 'click-5' }))).toMatchObject({
      how: 'ack',
    });
    expect(world.heard).toEqual([{ event: 'platform:sys:org:created', attempt: 1, correlationId: 'click-5' }]);
  });

  test('is retried later when its handler fails, later still each time, and given up when the handler says never', async () => {
    world.onHeard = async () => {
      throw new Error('not now');
    };
    const first = await streams.settled(streams.push('sys', { ...event, delivery_count: 1 }));
    const fifth = await streams.settled(streams.push('sys', { ...event, delivery_count: 5 }));
    expect(first).toMatchObject({ how: 'nack', body: { retry_after_secs: 2, reason: 'not now', consumer_group: 'heard' } });
    expect(first.body).not.toHaveProperty('dead_letter');
    expect(fifth.body.retry_after_secs).toBe(32);
    world.onHeard = async () => {
      throw new ProblemError('probe', 'thing_taken', { status: 409, title: 'Taken', retry: 'never' });
    };
    expect((await streams.settled(streams.push('sys', event))).body).toMatchObject({ dead_letter: true, reason: 'thing_taken: Taken' });
    world.onHeard = async () => undefined;
  });

  test('is marked with an effect that is one statement, and has it once', async () => {
    const effects = () => pool.sql<object[]>`select 1 from outbox where payload ->> 'thing_id' = 'single'`;
    world.onHeard = async db => {
      const rows = await db.one<{ done: number }>(
        tx => tx.emit('platform:probe:thing:created', newId(), { thing_id: 'single', name: 'one' }),
        (sql, announced) => sql`with ${announced(sql`true`)} select 1 as done`,
      );
      expect(rows).toEqual([{ done: 1 }]);
      throw new Error('after the effect');
    };
    expect(await streams.settled(streams.push('sys', { ...event, idempotency_key: 'single' }))).toMatchObject({ how: 'nack' });
    expect(await effects()).toHaveLength(1);
    expect(await streams.settled(streams.push('sys', { ...event, idempotency_key: 'single', delivery_count: 2 }))).toMatchObject({
      how: 'ack',
    });
    expect(await effects()).toHaveLength(1);
    let reason: unknown;
    world.onHeard = async db => {
      reason = await db
        .one(
          tx => tx.emit('platform:probe:thing:created', newId(), { thing_id: 'forgotten', name: 'one' }),
          sql => sql<object[]>`insert into inbox (consumer, idempotency_key) values ('nobody', 'forgotten')`,
        )
        .catch((error: unknown) => error);
    };
    await streams.settled(streams.push('sys', { ...event, idempotency_key: 'forgetful' }));
    expect(reason).toMatchObject({ message: 'probe announces events that its statement does not write' });
    expect(await pool.sql`select 1 from inbox where consumer = 'nobody'`).toHaveLength(0);
    world.onHeard = async () => undefined;
  });

  test('that comes back from the dead letters is the same event', async () => {
    world.heard.length = 0;
    await streams.settled(streams.push('sys', { ...event, event_type: 'platform:sys:org:created.replayed', replayed_from_dlq: true }));
    expect(world.heard).toHaveLength(1);
    await streams.settled(streams.push('sys', { ...event, event_type: 'platform:sys:org:created.replayed' }));
    expect(world.heard).toHaveLength(1);
  });
});

describe('a job', () => {
  test('of the fleet runs in one process at a time, under the database’s advisory lock; one per process runs in each', async () => {
    const [one, two] = [new ManualClock(), new ManualClock()];
    const ran: string[] = [];
    const holding = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const runner = (name: string, clock: ManualClock, work: () => Promise<void>) =>
      new JobRunner({
        worker: 'test',
        service: 'probe',
        clock,
        pool,
        log,
        jobs: [
          {
            name: 'sweep',
            summary: 'Sweeps',
            every: '1m',
            runs: 'fleet',
            work: async () => {
              ran.push(`sweep ${name}`);
              await work();
            },
          },
          { name: 'count', summary: 'Counts', every: '1m', runs: 'process', work: async () => void ran.push(`count ${name}`) },
        ],
      });
    await using first = runner('one', one, async () => {
      entered.resolve();
      await holding.promise;
    });
    await using second = runner('two', two, async () => undefined);
    expect([first, second]).toHaveLength(2);
    const busy = one.advance('1m');
    await entered.promise;
    await two.advance('1m');
    expect(ran).toEqual(['sweep one', 'count two']);
    holding.resolve();
    await busy;
    await two.advance('1m');
    expect(ran).toEqual(['sweep one', 'count two', 'count one', 'sweep two', 'count two']);
  });

  test('whose database is cut while it works ends, and runs again where it was cut', async () => {
    const clock = new ManualClock();
    const runs: string[] = [];
    const cut = async () => {
      runs.push('run');
      const holders = () =>
        pool.raw`select pid from pg_locks where locktype = 'advisory' and granted
          and pid in (select pid from pg_stat_activity where usename = current_user and query like '%pg_try_advisory_lock%')`;
      for (const { pid } of await holders()) await pool.raw`select pg_terminate_backend(${pid})`;
      await eventually(async () => (await holders()).length).toBe(0);
    };
    await using _ = new JobRunner({
      service: 'cut',
      worker: 'test',
      clock,
      pool,
      log,
      jobs: [{ name: 'long', summary: 'Lasts', every: '1m', runs: 'fleet', work: cut }],
    });
    await clock.advance('1m');
    await clock.advance('1m');
    expect(runs).toEqual(['run', 'run']);
  });

  test('that fails runs again the next time, and stops with its service', async () => {
    const clock = new ManualClock();
    let runs = 0;
    const runner = new JobRunner({
      worker: 'test',
      service: 'probe',
      clock,
      pool: pool,
      log,
      jobs: [
        {
          name: 'fails',
          summary: 'Fails',
          every: '1s',
          runs: 'process',
          work: async () => {
            runs += 1;
            throw new Error('no');
          },
        },
      ],
    });
    await clock.advance('2s');
    await runner[Symbol.asyncDispose]();
    await clock.advance('5s');
    expect(runs).toBe(2);
  });
});

test('F-03 a service that was given up on is said by the health of every process, until it is back', async () => {
  const alerts = new ServiceAlerts(host.process.kv, log);
  await alerts.raise({ service_type: 'lending', restarts: 3, reason: 'ended (1)', log_path: '/dev/null', at: new Date().toISOString() });
  const failed = [{ plugin: 'lending', reason: 'given up after 3 restarts: ended (1)' }];
  await eventually(async () => (await host.fetch('/v1/health')).json).toMatchObject({ status: 'degraded', failed_plugins: failed });
  await alerts.clear('lending');
  await eventually(async () => (await host.fetch('/v1/health')).json['status']).toBe('ok');
});

test('draining refuses new work with 503 and Retry-After while probes still answer', async () => {
  await host.process.drain();
  const answer = await host.fetch('/v1/greet');
  expect([answer.status, answer.json['code'], answer.headers['retry-after'], answer.headers['connection']]).toEqual([
    503,
    'draining',
    '2',
    'close',
  ]);
  expect((await host.fetch('/v1/health')).status).toBe(200);
  const readiness = await host.fetch('/v1/readiness');
  expect([readiness.status, readiness.json['status']]).toEqual([503, 'not_ready']);
});

describe('the lead of an ordered consumer', () => {
  test('is one process’s at a time until it gives it up or does not renew it', async () => {
    const first = await takeLead(pool, 'orders', 'one');
    expect(await first?.held()).toBe(true);
    expect(await takeLead(pool, 'orders', 'two')).toBeUndefined();
    expect(await (await takeLead(pool, 'invoices', 'two'))?.held()).toBe(true);
    await first?.[Symbol.asyncDispose]();
    const second = await takeLead(pool, 'orders', 'two');
    expect(await second?.held()).toBe(true);
    await pool.raw`update consumer_leads set until = now() - interval '1 s' where consumer = 'orders'`;
    const third = await takeLead(pool, 'orders', 'three');
    expect([await second?.held(), await third?.held()]).toEqual([false, true]);
    // Who lost it does not take it from the new one by leaving.
    await second?.[Symbol.asyncDispose]();
    expect(await takeLead(pool, 'orders', 'four')).toBeUndefined();
  });
});
