import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BATCH, BATCHES_AHEAD, BODY, IN_FLIGHT, PRODUCERS, type PeerFigures, perSecond } from './figures.ts';
import { freePort } from '@platform/kernel/storage/free-port';
import { peerPackage } from './peer-package.ts';

const SERVER = '/usr/sbin/rabbitmq-server';
const TRIES = 300;

interface Channel {
  assertQueue(name: string, options: object): Promise<unknown>;
  sendToQueue(name: string, body: Buffer, options: object, confirmed?: (error: unknown) => void): boolean;
  waitForConfirms(): Promise<void>;
}
interface Connection {
  createConfirmChannel(): Promise<Channel>;
  close(): Promise<void>;
}

/** One node, a quorum queue, persistent messages, publisher confirms. */
export async function rabbitmq(): Promise<PeerFigures> {
  if (!existsSync(SERVER)) throw new Error('it is not installed (Debian: apt-get install rabbitmq-server)');
  const { connect } = peerPackage('amqplib', '2.3.1').load<{ connect(url: string): Promise<Connection> }>();
  const directory = mkdtempSync(join(tmpdir(), 'bench-rabbitmq-'));
  chmodSync(directory, 0o777);
  writeFileSync(join(directory, 'plugins'), '[].');
  const [port, distribution] = [await freePort(), await freePort()];
  const node = `bench${port}@localhost`;
  const environment = {
    ...process.env,
    RABBITMQ_NODENAME: node,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(directory, 'data'),
    RABBITMQ_LOG_BASE: join(directory, 'log'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, 'plugins'),
  };
  const child = spawn(SERVER, [], { env: environment, stdio: 'ignore', detached: true });
  try {
    const connection = await reached(() => connect(`amqp://127.0.0.1:${port}`));
    const channels = await Promise.all(Array.from({ length: PRODUCERS }, () => connection.createConfirmChannel()));
    await (channels[0] as Channel).assertQueue('bench', { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    const of = (worker: number) => channels[worker % PRODUCERS] as Channel;
    const inFlight = await perSecond(IN_FLIGHT, 1, worker => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      of(worker).sendToQueue('bench', BODY, { persistent: true }, error => (error ? reject(error as Error) : resolve()));
      return promise;
    });
    const batches = await perSecond(PRODUCERS, BATCH, worker => {
      for (let message = 0; message < BATCH; message++) of(worker).sendToQueue('bench', BODY, { persistent: true });
      return of(worker).waitForConfirms();
    });
    const batchesAhead = await perSecond(PRODUCERS * BATCHES_AHEAD, BATCH, worker => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      let left = BATCH;
      const confirmed = (error: unknown) => (error ? reject(error as Error) : --left === 0 && resolve());
      for (let message = 0; message < BATCH; message++) of(worker).sendToQueue('bench', BODY, { persistent: true }, confirmed);
      return promise;
    });
    await connection.close();
    return { inFlight, batches, batchesAhead };
  } finally {
    const ended = once(child, 'exit');
    try {
      execFileSync('/usr/sbin/rabbitmqctl', ['-n', node, 'stop'], { env: environment, stdio: 'ignore' });
    } catch {
      process.kill(-(child.pid as number), 'SIGKILL');
    }
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
}

async function reached<T>(attempt: () => Promise<T>): Promise<T> {
  for (let turn = 1; ; turn++) {
    try {
      return await attempt();
    } catch (error) {
      if (turn === TRIES) throw error;
      await delay(100);
    }
  }
}
