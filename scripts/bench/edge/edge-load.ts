import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { Duplex } from 'node:stream';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

/*
 * The client of the edge's bench, in a process of its own: does one {@link Load} after the other and tells when each is done.
 */

export type Load =
  | { readonly kind: 'requests'; readonly port: number; readonly host: string; readonly count: number; readonly atOnce: number }
  | {
      readonly kind: 'handshakes';
      readonly port: number;
      readonly host: string;
      readonly count: number;
      readonly atOnce: number;
      readonly group: string;
    }
  | { readonly kind: 'bytes'; readonly port: number; readonly host: string; readonly count: number };

const HEADERS = [
  'user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'accept: application/json',
  'accept-encoding: gzip, br',
  'cookie: session=0198f4b1c2d37abcdef; theme=dark',
];
/** Certificates of the peers are of the bench's own making. */
const ANY = { host: '127.0.0.1', rejectUnauthorized: false, minVersion: 'TLSv1.3' } as const;

async function requests({ port, host, count, atOnce }: Load & { kind: 'requests' }): Promise<void> {
  const text = Buffer.from(`GET /v1/orders?page=2 HTTP/1.1\r\nhost: ${host}\r\n${HEADERS.join('\r\n')}\r\n\r\n`);
  let left = count;
  const one = async () => {
    const socket = await secured({ ...ANY, port, servername: host });
    let waiting: Buffer = Buffer.alloc(0);
    const over = Promise.withResolvers<void>();
    const ask = () => void (left-- > 0 ? socket.write(text) : over.resolve());
    socket.on('error', over.reject).on('close', () => over.reject(new Error('the connection was closed')));
    socket.on('data', (chunk: Buffer) => {
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk]);
      const head = waiting.indexOf('\r\n\r\n');
      if (head < 0) return;
      const said = waiting.toString('latin1', 0, head);
      const length = Number(/content-length: (\d+)/i.exec(said)?.[1]);
      if (!said.startsWith('HTTP/1.1 200')) return over.reject(new Error(said));
      if (waiting.length < head + 4 + length) return;
      waiting = Buffer.alloc(0);
      ask();
    });
    ask();
    await over.promise;
    socket.destroy();
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function handshakes({ port, host, count, atOnce, group }: Load & { kind: 'handshakes' }): Promise<void> {
  let left = count;
  const one = async () => {
    while (left-- > 0) (await secured({ ...ANY, port, servername: host, ecdhCurve: group })).destroy();
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function secured(options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect(options);
  await once(socket, 'secureConnect');
  return socket.setNoDelay(true);
}

/** A workload's ClientHello, and then whatever comes: nobody on the way reads it. */
async function bytes({ port, host, count }: Load & { kind: 'bytes' }): Promise<void> {
  const hello = await helloFor(host);
  let left = count;
  const over = Promise.withResolvers<void>();
  const onread = {
    buffer: Buffer.alloc(4 * 1_048_576),
    callback: (length: number) => {
      left -= length;
      if (left <= 0) over.resolve();
      return left > 0;
    },
  };
  const socket = connectTcp({ host: '127.0.0.1', port, onread }, () => socket.write(hello));
  socket.on('error', over.reject).on('close', () => over.reject(new Error('the connection was closed')));
  await over.promise;
  socket.destroy();
}

async function helloFor(servername: string): Promise<Buffer> {
  const written = Promise.withResolvers<Buffer>();
  const half = new Duplex({ read: () => undefined, write: (chunk: Buffer) => written.resolve(chunk) });
  const socket = connect({ socket: half, servername, ecdhCurve: 'X25519MLKEM768', minVersion: 'TLSv1.3' });
  socket.on('error', () => undefined);
  const hello = await written.promise;
  socket.destroy();
  return hello;
}

process.on('message', async message => {
  const load = message as Load;
  try {
    if (load.kind === 'requests') await requests(load);
    else if (load.kind === 'handshakes') await handshakes(load);
    else await bytes(load);
    process.send?.('done');
  } catch (error) {
    process.send?.(String(error));
  }
});
process.once('disconnect', () => process.exit());
