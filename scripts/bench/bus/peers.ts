import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { PeerFigures } from './peers/figures.ts';
import type { Measured } from './peers/peer-process.ts';

const PROCESS = fileURLToPath(new URL('./peers/peer-process.ts', import.meta.url));
const PEERS = ['NATS JetStream, sync_interval always', 'RabbitMQ quorum queue, confirms', 'pg-boss', 'graphile-worker'] as const;
export type PeerName = (typeof PEERS)[number];

/**
 * One after the other, each in a process of its own: what a client leaves behind is no burden to what is measured next. One that is not to
 * be had on this machine is left out and said.
 */
export async function peerFigures(): Promise<Partial<Record<PeerName, PeerFigures>>> {
  const figures: Partial<Record<PeerName, PeerFigures>> = {};
  for (const name of PEERS) {
    process.stderr.write(`  ${name} …\n`);
    const measured = await measuredApart(name);
    if ('figures' in measured) figures[name] = measured.figures;
    else process.stderr.write(`  ${name} is left out: ${measured.missing}\n`);
  }
  return figures;
}

async function measuredApart(name: PeerName): Promise<Measured> {
  const child = fork(PROCESS, [name]);
  const ended = once(child, 'exit');
  const [measured] = (await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => [{ missing: `its process ended with ${String(code)}` }]),
  ])) as [Measured];
  await ended;
  return measured;
}
