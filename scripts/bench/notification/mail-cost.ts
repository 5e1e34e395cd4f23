import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@platform/kernel/storage/free-port';
import { keyValueServer } from '@platform/kernel/storage/valkey/embedded-valkey';
import type { World } from '../../../plugins/notification/test/fixtures/world.ts';
import type { Row } from '../row.ts';

const MAILS = 3_000;
/** As many at once as the service sends for one channel. */
const AT_ONCE = 16;
const PRODUCERS = 24;
const SINK = fileURLToPath(new URL('./mail-sink.ts', import.meta.url));
const PEER = fileURLToPath(new URL('./bullmq-mails.ts', import.meta.url));

/** What the process of the peer is told. */
export interface PeerMails {
  readonly redisPort: number;
  readonly smtpPort: number;
  readonly mails: number;
  readonly atOnce: number;
}
interface Cost {
  readonly cpuUs: number;
  readonly perSecond: number;
}

/** What a mail costs the process that sends it, from a queue that holds them all; beside bullmq, where there is a Redis. */
export async function mailCost(world: World): Promise<Row> {
  const sink = fork(SINK);
  try {
    const [{ port }] = (await once(sink, 'message')) as [{ port: number }];
    const ours = await sent(world, sink, port);
    const peer = await peerCost(port);
    return {
      name: `${MAILS} queued mails to a local sink, CPU of the sending process for each`,
      value: ours.cpuUs,
      unit: 'µs',
      ...('cpuUs' in peer ? { peer: { name: 'bullmq and nodemailer', value: peer.cpuUs }, limit: Math.round(peer.cpuUs) } : {}),
      note:
        'cpuUs' in peer
          ? `${ours.perSecond.toFixed(0)}/s beside ${peer.perSecond.toFixed(0)}/s; ours decides, records and announces each in Postgres over TLS`
          : `the peer is left out: ${peer.missing}`,
    };
  } finally {
    sink.kill();
  }
}

/** Queued first, and held until all are: then they are let go together. */
async function sent(world: World, sink: ChildProcess, port: number): Promise<Cost> {
  const env_id = world.env();
  await world.gateway(env_id, { gateway_url: `smtp://127.0.0.1:${port}`, config: { from: 'bench@example.com' } });
  await world.sql`
    create function bench_hold() returns trigger language plpgsql as
      'begin new.due_at := new.due_at + interval ''1 day''; return new; end'`;
  await world.sql`create trigger bench_hold before insert on work_tasks for each row execute function bench_hold()`;
  let next = 0;
  await Promise.all(
    Array.from({ length: PRODUCERS }, async (_, n) => {
      for (let mail = next++; mail < MAILS; mail = next++) {
        const recipient = { user_id: `reader${mail % 997}`, email: `reader${mail}@example.org` };
        await world.send({ env_id, recipient, channels: ['email'] }, world.producer(`mails${n}-post`));
      }
    }),
  );
  const all = once(sink, 'message');
  sink.send(MAILS);
  const [before, began] = [process.cpuUsage(), performance.now()];
  await world.sql`drop function bench_hold() cascade`;
  await world.sql`update work_tasks set due_at = due_at - interval '1 day' where state = 'waiting'
    and due_at > now() + interval '12 hours'`;
  await all;
  const { user, system } = process.cpuUsage(before);
  return { cpuUs: (user + system) / MAILS, perSecond: (MAILS * 1_000) / (performance.now() - began) };
}

async function peerCost(smtpPort: number): Promise<Cost | { readonly missing: string }> {
  const server = keyValueServer();
  if (!server) return { missing: 'no valkey-server or redis-server is on PATH' };
  const redisPort = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'bench-mails-'));
  const redis = spawn(server.file, ['--port', String(redisPort), '--dir', directory, '--save', '', '--appendonly', 'yes'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    for await (const line of redis.stdout) if (String(line).includes('eady to accept')) break;
    redis.stdout.resume();
    const told: PeerMails = { redisPort, smtpPort, mails: MAILS, atOnce: AT_ONCE };
    const peer = fork(PEER, [JSON.stringify(told)]);
    const ended = once(peer, 'exit').then(([code]) => [{ missing: `its process ended with ${String(code)}` }]);
    const [cost] = (await Promise.race([once(peer, 'message'), ended])) as [Cost | { missing: string }];
    await ended;
    return cost;
  } finally {
    redis.kill();
    rmSync(directory, { recursive: true, force: true });
  }
}
