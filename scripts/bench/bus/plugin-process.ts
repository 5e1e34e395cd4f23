import { setTimeout as delay } from 'node:timers/promises';
import { deliverTo } from '@platform/kernel/outbox/relay/bus-delivery';
import { insertEvent } from '@platform/kernel/outbox/outbox';
import { OUTBOX_MIGRATIONS } from '@platform/kernel/outbox/outbox-schema';
import { Relay } from '@platform/kernel/outbox/relay/relay';
import { newId } from '@platform/kernel/base/ids';
import { connectKeyValue } from '@platform/kernel/storage/key-value';
import { migrate } from '@platform/kernel/storage/schema/migrations';
import { PostgresPool, type PostgresPoolOptions } from '@platform/kernel/storage/postgres/postgres-pool';
import { streamKey } from '../../../plugins/event-bus/src/stream/names.ts';
import { median, quantile } from '../row.ts';
import { ENV, EVENT_TYPE, PAYLOAD } from './bench-event.ts';
import { type BusAddress, BusClient } from './bus-client.ts';
import { eventStream } from './event-stream.ts';

/*
 * The process of a plugin: told a {@link PluginOrder}, it tells {@link Latencies}. A steady pace; from the producer's call to an
 * event-stream client, and from a commit to the stream and to such a client.
 */

export interface PluginOrder {
  readonly bus: BusAddress;
  readonly keyValueUrl: string;
  readonly database: PostgresPoolOptions;
}
/** Milliseconds. */
export interface Latency {
  readonly p99: number;
  readonly median: number;
}
export type Latencies = Readonly<Record<'produced' | 'appended' | 'relayed', Latency>>;

export const PER_SECOND = 1_000;
const SECONDS = 10;
const WARM_UP = 2_000;

async function latencies({ bus, keyValueUrl, database }: PluginOrder): Promise<Latencies> {
  await using client = new BusClient(bus);
  const producers = client.pool(32);
  const produced = await paced(client, 'direct', n =>
    client
      .post(producers, '/v1/produce', { event_type: EVENT_TYPE, env_id: ENV, stream_family: 'direct', payload: { ...PAYLOAD, n } })
      .then(() => undefined),
  );
  await using outbox = await pluginOutbox(client, database);
  const committed = new Float64Array(PER_SECOND * SECONDS);
  const relayed = await paced(client, 'app', async n => {
    const at = await outbox.commit(n);
    committed[n] = Date.now();
    return at;
  });
  const appended = await untilAppended(keyValueUrl, 'app', committed);
  const of = (times: readonly number[]): Latency => ({ p99: quantile(times, 0.99), median: median(times) });
  return { produced: of(produced), appended: of(appended), relayed: of(relayed) };
}

/** Sends at the pace whatever comes back, and answers the milliseconds from each sending to its arrival. */
async function paced(client: BusClient, family: string, send: (n: number) => Promise<void | number>): Promise<number[]> {
  const total = PER_SECOND * SECONDS;
  const sent = new Float64Array(total);
  const times: number[] = [];
  const all = Promise.withResolvers<void>();
  await using _ = await eventStream(client, client.pool(1), family, ({ n }) => {
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
async function untilAppended(keyValueUrl: string, family: string, since: Float64Array): Promise<number[]> {
  await using kv = await connectKeyValue(keyValueUrl);
  const entries = (await kv.client.call('XRANGE', streamKey({ env: ENV, family }), '-', '+')) as [string, string[]][];
  const at = new Map(
    entries.map(([id, fields]) => [
      (JSON.parse(fields[fields.indexOf('payload') + 1] as string) as { n: number }).n,
      Number.parseInt(id, 10),
    ]),
  );
  return Array.from(since, (ms, n) => (at.get(n) ?? Number.NaN) + 1 - ms).slice(WARM_UP);
}

/** The outbox of a plugin with the kernel's relay; the bus is reached as from everywhere, over mutual TLS. */
async function pluginOutbox(
  client: BusClient,
  database: PostgresPoolOptions,
): Promise<AsyncDisposable & { commit(n: number): Promise<number> }> {
  const pool = new PostgresPool(database);
  await migrate({ sql: pool, service: 'bench', builtins: OUTBOX_MIGRATIONS });
  const calls = client.pool(4);
  const deliver = deliverTo({
    produceBatch: (_, events) => client.post(calls, '/v1/produce/batch', { events }),
    recordAudits: () => Promise.reject(new Error('nothing is audited here')),
  });
  const relay = new Relay({ deliver, log: { warn: () => {}, error: fields => process.stderr.write(`${JSON.stringify(fields)}\n`) } });
  await relay.attach('bench', pool);
  return {
    commit: async n => {
      await insertEvent(pool.sql, {
        id: newId(),
        env_id: ENV,
        event_type: EVENT_TYPE,
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

process.once('message', (order: PluginOrder) => {
  void latencies(order).then(figures => process.send?.(figures, () => process.exit()));
});
