import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { roleOf, schemaOf } from '@platform/kernel/storage/schema/service-schema';
import type { Row } from '../row.ts';
import type { BusRig } from './bus-rig.ts';
import { type Latencies, PER_SECOND, type PluginOrder } from './plugin-process.ts';

const PROCESS = fileURLToPath(new URL('./plugin-process.ts', import.meta.url));

/**
 * From the producer's call, or a plugin's commit, to the stream and an event-stream client: out of a plugin's process, which has nothing
 * else to do.
 */
export async function latencyRows(rig: BusRig): Promise<Row[]> {
  const { produced, appended, relayed } = await measured(await orderFor(rig));
  return [
    {
      name: `produce → event-stream client at ${PER_SECOND}/s, p99`,
      value: produced.p99,
      unit: 'ms',
      limit: 15,
      note: `median ${produced.median.toFixed(1)} ms, from before the call`,
    },
    {
      name: `commit in a plugin → relay → bus, on its stream, at ${PER_SECOND}/s, p99`,
      value: appended.p99,
      unit: 'ms',
      limit: 20,
      note: `median ${appended.median.toFixed(0)} ms, from the commit's answer to the entry's id, rounded up`,
    },
    {
      name: 'the same on to an event-stream client, p99',
      value: relayed.p99,
      unit: 'ms',
      note: `median ${relayed.median.toFixed(1)} ms, from the commit's answer`,
    },
  ];
}

async function orderFor({ client, stores: { stores, authority } }: BusRig): Promise<PluginOrder> {
  await stores.ensureService('bench');
  const { host, port, database } = stores.database;
  const leaf = await authority.classical.issue({ commonName: 'svc.bench', names: [], usages: ['client'], days: 1 });
  const ssl = {
    ca: authority.classical.files.rootCertificate,
    cert: leaf.chain,
    key: leaf.key as string,
    servername: 'postgres.platform.internal',
  };
  return {
    bus: client.address,
    keyValueUrl: stores.keyValueUrl,
    database: { host, port, database, user: roleOf('bench'), schema: schemaOf('bench'), ssl },
  };
}

async function measured(order: PluginOrder): Promise<Latencies> {
  const child = fork(PROCESS);
  child.send(order);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the plugin's process ended with ${String(code)}`)));
  const [figures] = (await Promise.race([once(child, 'message'), ended])) as [Latencies];
  await ended.catch(() => undefined);
  return figures;
}
