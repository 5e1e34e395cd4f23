import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { as, boot, openTestStores } from '@platform/testing';
import { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import plugin from '../../../plugins/registry/src/plugin.ts';
import { envId, loadTrail, serviceName } from '../load/audit-load.ts';
import { loaded } from '../load/loaded.ts';
import { median, type Row, type Size } from '../row.ts';

const ROWS: Readonly<Record<Size, number>> = { short: 200_000, long: Number(process.env['PLATFORM_BENCH_AUDIT_ROWS'] ?? 10_000_000) };
const CONCURRENCY = 64;
/** What the relay of a service carries in one call. */
const ROWS_PER_BATCH = 100;
const MS: Readonly<Record<Size, number>> = { short: 3_000, long: 8_000 };
const ASKED: Readonly<Record<Size, number>> = { short: 20, long: 100 };

/** The audit trail: durable ingest over mutual TLS, pages of a long trail, verification. */
export async function* auditRows(size: Size): AsyncGenerator<Row> {
  await using stores = await openTestStores();
  const keyFile = join(stores.dataDir, 'audit.key');
  writeFileSync(keyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
  await using host = await boot(plugin, {
    stores,
    environment: { PLATFORM_SYS_AUDIT_KEY_REF: `file://${keyFile}`, PLATFORM_SYS_KEY_ENCRYPTION_REF: `file://${keyFile}` },
  });
  await using pool = await openPool(stores);

  const machine = as.machine('bench', 'audit:write');
  host.by(machine);
  const event = {
    env_id: envId(999),
    action: 'bench.recorded',
    resource: { type: 'run', id: 'run-1' },
    details: { from: 'bench', count: 3 },
    correlation_id: 'bench-1',
  };
  const { cert, key } = await host.workload('bench');
  const load = {
    port: host.process.port,
    host: 'sys.ops.sys.localhost',
    cert,
    key,
    ca: stores.authority.pq.files.rootCertificate,
    warmUpMs: size === 'short' ? 1_000 : 3_000,
    ms: MS[size],
  };
  const ingest = await loaded({ ...load, path: '/v1/audit', body: JSON.stringify(event), concurrency: CONCURRENCY });
  const batches = await loaded({
    ...load,
    path: '/v1/audit/batch',
    body: JSON.stringify({ events: Array.from({ length: ROWS_PER_BATCH }, () => event) }),
    concurrency: 4,
  });
  const plain = await plainInserts(pool, event, MS[size]);

  yield* [
    {
      name: 'audit ingest, durable, mutual TLS, 64 at once',
      value: ingest.perSecond,
      unit: 'rows/s',
      atLeast: 5_000,
      peer: { name: 'plain insert … returning over the same pool, no chain, no HTTP, no event', value: plain },
      note: `p99 ${ingest.p99Ms.toFixed(1)} ms`,
    },
    {
      name: `audit ingest as services deliver it: ${ROWS_PER_BATCH} rows a call, durable, mutual TLS, 4 at once`,
      value: batches.perSecond * ROWS_PER_BATCH,
      unit: 'rows/s',
      atLeast: 5_000,
      note: `p99 of a call ${batches.p99Ms.toFixed(1)} ms`,
    },
  ];
  await fill(pool, ROWS[size]);
  yield* listings(host, size);
  yield await verification(host);
}

/** The database as the registry itself reaches it, without a limit on a statement. */
async function openPool(stores: Awaited<ReturnType<typeof openTestStores>>): Promise<PostgresPool> {
  const { host: address, port, database } = stores.stores.database;
  const leaf = await stores.authority.classical.issue({ commonName: 'svc.sys', names: [], usages: ['client'], days: 1 });
  const ssl = {
    ca: stores.authority.classical.files.rootCertificate,
    cert: leaf.chain,
    key: leaf.key as string,
    servername: 'postgres.platform.internal',
  };
  return new PostgresPool({
    host: address,
    port,
    database,
    user: roleOf('sys'),
    schema: schemaOf('sys'),
    ssl,
    statementTimeoutMs: 0,
  });
}

/** In the place of the few rows that were written one by one. */
async function fill(pool: PostgresPool, rows: number): Promise<void> {
  const began = performance.now();
  const reserved = await pool.raw.reserve();
  await reserved`truncate bench_plain`;
  await loadTrail(reserved as never, rows);
  reserved.release();
  process.stderr.write(`  ${rows} rows loaded in ${Math.round((performance.now() - began) / 1_000)} s\n`);
}

const p99 = (values: readonly number[]): number =>
  [...values].sort((left, right) => left - right)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;

/** What a row costs without chain, event and HTTP: single statements, the same columns and indexes, as many at once. */
async function plainInserts(
  pool: PostgresPool,
  event: { env_id: string; action: string; resource: object; details: object; correlation_id: string },
  ms: number,
): Promise<number> {
  const { raw } = pool;
  await raw`create table bench_plain (like audit including all)`;
  let rows = 0;
  const start = performance.now();
  const one = async () => {
    while (performance.now() - start < ms) {
      await raw`insert into bench_plain (audit_id, position, ts, service, env_id, action, actor, resource, outcome, details,
        correlation_id, hash)
        values (${randomUUID()}, 1, now(), 'bench', ${event.env_id}, ${event.action}, '{}', ${JSON.stringify(event.resource)}::text::json,
          'success', ${JSON.stringify(event.details)}::text::json, ${event.correlation_id}, '') returning audit_id`;
      rows += 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, one));
  return (rows * 1_000) / ms;
}

type Booted = Awaited<ReturnType<typeof boot<typeof plugin.contract, typeof plugin.uses>>>;

/** Every set of filters: the newest page, one from the middle, the last ones, and filters that nothing fits. */
async function* listings(host: Booted, size: Size): AsyncGenerator<Row> {
  const reader = host.by(as.user('sys:sys:admin', 'audit:read'));
  const at = (share: number) => ({
    after_ts: new Date(0).toISOString(),
    after_id: `${Math.floor(Date.now() - (1 - share) * 300 * 86_400_000)
      .toString(16)
      .padStart(12, '0')
      .replace(/^(.{8})/, '$1-')}-7000-8000-000000000000`,
  });
  const places = [{}, at(0.5), at(0.001)];
  const service = serviceName(3);
  const filters: readonly [string, readonly object[]][] = [
    ['no filter', [{}]],
    ['service', [{ service }, { service: 'nobody' }]],
    ['action', [{ action: 'service3.action4' }, { action: 'shared.read' }, { action: 'once.upon.a.time' }, { action: 'never' }]],
    [
      'service and action',
      [
        { service, action: 'service3.action4' },
        { service, action: 'service4.action4' },
        { service, action: 'once.upon.a.time' },
      ],
    ],
    ['environment', [{ env_id: envId(0) }, { env_id: envId(7) }]],
    [
      'environment and service',
      [
        { env_id: envId(0), service },
        { env_id: envId(7), service },
        { env_id: envId(0), service: 'nobody' },
      ],
    ],
    [
      'environment and action',
      [
        { env_id: envId(0), action: 'shared.read' },
        { env_id: envId(7), action: 'service3.action4' },
        { env_id: envId(9), action: 'once.upon.a.time' },
      ],
    ],
    [
      'environment, service and action',
      [
        { env_id: envId(0), service, action: 'shared.read' },
        { env_id: envId(7), service, action: 'service4.action4' },
      ],
    ],
    ['correlation id', [{ correlation_id: 'click-99' }, { correlation_id: 'click-99', env_id: envId(0) }]],
  ];
  for (const [name, queries] of filters) {
    const slowest: number[] = [];
    const medians: number[] = [];
    for (const query of queries) {
      for (const place of places) {
        const times: number[] = [];
        for (let turn = 0; turn < ASKED[size] + 10; turn++) {
          const start = performance.now();
          await reader.listAudit({ query: { ...query, ...place } });
          if (turn >= 10) times.push(performance.now() - start);
        }
        slowest.push(p99(times));
        medians.push(median(times));
      }
    }
    yield {
      name: `page of ${ROWS[size].toExponential()} audit events, ${name}, p99 of the slowest page`,
      value: Math.max(...slowest),
      unit: 'ms',
      limit: 20,
      note: `median of the slowest page ${Math.max(...medians).toFixed(1)} ms`,
    };
  }
}

/** The longest chain, step by step, as the command does. */
async function verification(host: Booted): Promise<Row> {
  const reader = host.by(as.user('sys:sys:admin', 'audit:read'));
  let [rows, cursor] = [0, undefined as string | undefined];
  const start = performance.now();
  for (;;) {
    const step = await reader.verifyAudit({ query: { env_id: envId(0), ...(cursor ? { cursor } : {}) } });
    if (step.status === 'broken' && step.fault?.kind !== 'anchor_missing')
      throw new Error(`the loaded chain is broken: ${step.fault?.detail}`);
    rows += step.rows;
    if (step.next_cursor === null) break;
    cursor = step.next_cursor;
  }
  return {
    name: 'verification of one chain',
    value: (rows * 1_000) / (performance.now() - start),
    unit: 'rows/s',
    note: `${rows} rows, resident memory ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MiB`,
  };
}
