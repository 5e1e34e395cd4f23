import type { PeerFigures } from './figures.ts';
import { graphileWorker } from './graphile-worker.ts';
import { nats } from './nats.ts';
import { pgBoss } from './pg-boss.ts';
import { rabbitmq } from './rabbitmq.ts';

/** What the process of one peer tells, or why there is nothing to tell. */
export type Measured = { readonly figures: PeerFigures } | { readonly missing: string };
const PEERS: Readonly<Record<string, () => Promise<PeerFigures>>> = {
  'NATS JetStream, sync_interval always': nats,
  'RabbitMQ quorum queue, confirms': rabbitmq,
  'pg-boss': pgBoss,
  'graphile-worker': graphileWorker,
};

const name = process.argv[2] ?? '';
const measure = PEERS[name] ?? (() => Promise.reject(new Error(`nobody knows how to measure ${name}`)));
const measured: Measured = await measure().then(
  figures => ({ figures }),
  (error: unknown) => ({ missing: error instanceof Error ? error.message : String(error) }),
);
process.send?.(measured, () => process.disconnect?.());
