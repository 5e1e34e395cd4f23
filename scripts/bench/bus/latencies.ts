import { setTimeout as delay } from 'node:timers/promises';
import { deliverTo } from '@platform/kernel/outbox/bus-delivery';
import { insertEvent } from '@platform/kernel/outbox/outbox';
import { OUTBOX_MIGRATIONS } from '@platform/kernel/outbox/outbox-schema';
import { Relay } from '@platform/kernel/outbox/relay';
import { newId } from '@platform/kernel/base/ids';
import { connectKeyValue } from '@platform/kernel/storage/key-value';
import { migrate } from '@platform/kernel/storage/migrations';
import { PostgresPool } from '@platform/kernel/storage/postgres-pool';
import { roleOf, schemaOf } from '@platform/kernel/storage/service-schema';
import { streamKey } from '../../../plugins/event-bus/src/names.ts';
import { median, quantile, type Row } from '../row.ts';
import { type BusRig, ENV, PAYLOAD } from './bus-rig.ts';
import { eventStream } from './event-stream.ts';

const PER_SECOND = 1_000;
const SECONDS = 10;
const WARM_UP = 2_000;

/** From the producer's call, or a plugin's commit, to an event-stream client, at a steady pace. */
export async function latencyRows(rig: BusRig): Promise<Row[]> {
  const producers = rig.pool(32);
  const direct = await paced(rig, 'direct', n =>
    rig.post(producers, '/v1/produce', { event_type: 'platform:bench:event:sent', env_id: ENV, stream_family: 'direct', payload: { ...PAYLOAD, n } }).then(() => undefined),
  );
  await using outbox = await shopOutbox(rig);
  const committed = new Float64Array(PER_SECOND * SECONDS);
  const relayed = await paced(rig, 'app', async n => {
    const at = await outbox.commit(n);
    committed[n] = Date.now();
    return at;
  });
  const appended = await untilAppended(rig, 'app', committed);
  return [
    { name: `produce → event-stream client at ${PER_SECOND}/s, p99`, value: quantile(direct, 0.99), unit: 'ms', limit: 15, note: `median ${median(direct).toFixed(1)} ms, from before the call` },
    {
      name: `commit in a plugin → relay → bus, on its stream, at ${PER_SECOND}/s, p99`,
      value: quantile(appended, 0.99),
      unit: 'ms',
      limit: 20,
      note: `median ${median(appended).toFixed(0)} ms, from the commit's answer to the entry's id, rounded up`,
    },
    {
      name: `the same on to an event-stream client, p99`,
      value: quantile(relayed, 0.99),
      unit: 'ms',
      note: `median ${median(relayed).toFixed(1)} ms, from the commit's answer`,
    },
  ];
}

/** Sends at the pace whatever comes back, and answers the milliseconds from each sending to its arrival. */
async function paced(rig: BusRig, family: string, send: (n: number) => Promise<void | number>): Promise<number[]> {
  const total = PER_SECOND * SECONDS;
  const sent = new Float64Array(total);
  const times: number[] = [];
  const all = Promise.withResolvers<void>();
  await using _ = await eventStream(rig, rig.pool(1), family, ({ n }) => {
    const index = Number(n);
    if (index >= WARM_UP) times.push(performance.now() - (sent[index] as number));
    if (times.length === total - WARM_UP) all.resolve();
  });
  const start = performance.now();
  const sends: Promise<void>[] = [];
  for (let n = 0; n < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - start) * PER_SECOND) / 1_000));
    for (; n < due; n++) {
      const index = n;
      sent[index] = performance.now();
      sends.push(
        send(index).then(at => {
          // A commit counts from its answer on.
          if (typeof at === 'number') sent[index] = at;
        }),
      );
    }
    await delay(1);
  }
  await Promise.all(sends);
  await all.promise;
  return times;
}

/** Milliseconds from each time to the one the store gave the entry of that number: the whole one it began in, and one more. */
async function untilAppended({ stores }: BusRig, family: string, since: Float64Array): Promise<number[]> {
  await using kv = await connectKeyValue(stores.stores.keyValueUrl);
  const entries = (await kv.client.call('XRANGE', streamKey({ env: ENV, family }), '-', '+')) as [string, string[]][];
  const at = new Map(entries.map(([id, fields]) => [(JSON.parse(fields[fields.indexOf('payload') + 1] as string) as { n: number }).n, Number.parseInt(id, 10)]));
  return Array.from(since, (ms, n) => (at.get(n) ?? Number.NaN) + 1 - ms).slice(WARM_UP);
}

/** The outbox of a plugin with the kernel's relay, in this process; the bus is reached as from everywhere, over mutual TLS. */
async function shopOutbox(rig: BusRig): Promise<AsyncDisposable & { commit(n: number): Promise<number> }> {
  const { stores, authority } = rig.stores;
  await stores.ensureService('bench');
  const { host, port, database } = stores.database;
  const leaf = await authority.classical.issue({ commonName: 'svc.bench', names: [], usages: ['client'], days: 1 });
  const ssl = { ca: authority.classical.files.rootCertificate, cert: leaf.chain, key: leaf.key as string, servername: 'postgres.platform.internal' };
  const pool = new PostgresPool({ host, port, database, user: roleOf('bench'), schema: schemaOf('bench'), ssl });
  await migrate({ sql: pool, service: 'bench', builtins: OUTBOX_MIGRATIONS });
  const calls = rig.pool(4);
  const deliver = deliverTo({
    produceBatch: (_, events) => rig.post(calls, '/v1/produce/batch', { events }),
    recordAudits: () => Promise.reject(new Error('nothing is audited here')),
  });
  const relay = new Relay({ deliver, log: { warn: () => {}, error: fields => process.stderr.write(`${JSON.stringify(fields)}\n`) } });
  await relay.attach('bench', pool);
  return {
    commit: async n => {
      await insertEvent(pool.sql, {
        id: newId(),
        env_id: ENV,
        event_type: 'platform:bench:event:sent',
        stream_family: 'app',
        payload: { ...PAYLOAD, n },
        correlation_id: 'bench',
        publisher_subject: 'bench',
      });
      return performance.now();
    },
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      await pool.close();
    },
  };
}
