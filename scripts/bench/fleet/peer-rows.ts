import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@platform/kernel/storage/free-port';
import { median, type Row } from '../row.ts';
import { pm2 } from './peers/pm2.ts';
import { runit } from './peers/runit.ts';
import type { StartPeer } from './peers/supervisor-peer.ts';

const PEERS: Readonly<Record<string, StartPeer>> = { runit, 'pm2, cluster mode': pm2 };
const KILLS = 5;
const RELOADS = 3;
const LOOPS = 3;
/** A process that lived no longer is restarted later by some of them. */
const LIVED_MS = 2_000;
const PAUSE_MS = 10;
const PATIENCE_MS = 5_000;
/** Some take a connection while nobody is there who would answer on it. */
const LOOK_MS = 250;
const LATE_MS = 30_000;
const NOTE = 'a bare http server, which is there as soon as Node is';

/** What others do for one small server: how soon it serves again after SIGKILL, and whom a reload refuses. Says what it leaves out. */
export async function* peerRows(): AsyncIterable<Row> {
  for (const [name, start] of Object.entries(PEERS)) {
    const port = await freePort();
    const peer = await start(port).catch((error: Error) => {
      process.stderr.write(`  ${name} is left out: ${error.message.split('\n')[0]}\n`);
      return undefined;
    });
    if (!peer) continue;
    await using _ = peer;
    await served(port);
    const times: number[] = [];
    for (let turn = 0; turn < KILLS; turn++) times.push(await killed(port));
    yield { name: `${name}: SIGKILL → serving again`, value: median(times) / 1_000, unit: 's', note: NOTE };
    const { asked, failed } = await under(port, async () => {
      for (let turn = 0; turn < RELOADS; turn++) {
        await delay(LIVED_MS);
        await peer.reload();
      }
      await delay(LIVED_MS);
    });
    yield { name: `${name}: requests failed in ${RELOADS} reloads`, value: failed, unit: `of ${asked}`, note: NOTE };
  }
}

/** Milliseconds from the death of the process that serves until another one answers. */
async function killed(port: number): Promise<number> {
  await delay(LIVED_MS);
  const pid = await served(port);
  const began = performance.now();
  process.kill(Number(pid), 'SIGKILL');
  await served(port, pid);
  return performance.now() - began;
}

/** Who answers, as soon as somebody other than `before` does. */
async function served(port: number, before?: string): Promise<string> {
  for (const end = performance.now() + LATE_MS; performance.now() < end; await delay(PAUSE_MS)) {
    const answer = await ask(port, { patienceMs: LOOK_MS });
    if (answer !== undefined && answer !== before) return answer;
  }
  throw new Error(`nobody serves on ${port}`);
}

async function under(port: number, work: () => Promise<void>): Promise<{ asked: number; failed: number }> {
  let [asked, failed, over] = [0, 0, false];
  const loop = async (agent: Agent | undefined) => {
    while (!over) {
      asked += 1;
      if ((await ask(port, { agent })) === undefined) failed += 1;
      await delay(PAUSE_MS);
    }
    agent?.destroy();
  };
  const loops = Array.from({ length: LOOPS }, (_, at) => loop(at === 0 ? undefined : new Agent({ keepAlive: true, maxSockets: 1 })));
  await work();
  over = true;
  await Promise.all(loops);
  return { asked, failed };
}

/** Once, without a second try. */
const ask = (
  port: number,
  { agent, patienceMs = PATIENCE_MS }: { agent?: Agent | undefined; patienceMs?: number },
): Promise<string | undefined> =>
  new Promise(resolve => {
    const outgoing = get({ host: '127.0.0.1', port, agent: agent ?? false, timeout: patienceMs }, response => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(response.statusCode === 200 ? text : undefined));
      response.on('error', () => resolve(undefined));
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('late'))).on('error', () => resolve(undefined));
  });
