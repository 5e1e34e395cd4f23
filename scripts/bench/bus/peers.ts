import type { PeerFigures } from './peers/figures.ts';
import { graphileWorker } from './peers/graphile-worker.ts';
import { nats } from './peers/nats.ts';
import { pgBoss } from './peers/pg-boss.ts';
import { rabbitmq } from './peers/rabbitmq.ts';

const PEERS = { 'NATS JetStream, sync_interval always': nats, 'RabbitMQ quorum queue, confirms': rabbitmq, 'pg-boss': pgBoss, 'graphile-worker': graphileWorker };
export type PeerName = keyof typeof PEERS;

/** One after the other; one that is not to be had on this machine is left out and said. */
export async function peerFigures(): Promise<Partial<Record<PeerName, PeerFigures>>> {
  const figures: Partial<Record<PeerName, PeerFigures>> = {};
  for (const [name, measure] of Object.entries(PEERS) as [PeerName, () => Promise<PeerFigures>][]) {
    process.stderr.write(`  ${name} …\n`);
    try {
      figures[name] = await measure();
    } catch (error) {
      process.stderr.write(`  ${name} is left out: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  }
  return figures;
}
