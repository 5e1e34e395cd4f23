import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** What a crowd at the edge is told. */
export interface CrowdLoad {
  readonly streams: number;
  readonly slowBodies: number;
  readonly expecting: number;
  readonly asterisks: number;
  readonly longPolls: number;
  readonly port: number;
  readonly ca: string;
  readonly gateway: string;
  readonly origin: string;
  readonly cookie: string;
  readonly csrf: string;
}
/** Those of them that the platform let in, or answered. */
export type CrowdSeen = Readonly<Record<'streams' | 'slowBodies' | 'expecting' | 'asterisks' | 'longPolls', number>>;

const load = workerData as CrowdLoad;
const { port, ca, gateway, origin, cookie, csrf } = load;
const AT_ONCE = 50;
const DRIBBLE_MS = 1_000;
const seen = { streams: 0, slowBodies: 0, expecting: 0, asterisks: 0, longPolls: 0 };
const person = `Cookie: ${cookie}\r\nOrigin: ${origin}\r\nX-BFF-CSRF: ${csrf}\r\n`;

async function open(): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername: gateway, ca }).setEncoding('latin1') as TLSSocket;
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Does something so many times, some at once. */
async function times(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const run = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
}

async function stream(): Promise<void> {
  const socket = await open();
  socket.write(
    `GET /ws HTTP/1.1\r\nHost: ${gateway}\r\n${person}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  const [head] = (await once(socket, 'data')) as [string];
  if (!head.startsWith('HTTP/1.1 101')) return;
  seen.streams += 1;
  // A masked frame {"action":"pong"} under the mask 0: whoever leaves two pings unanswered is taken for gone.
  const pong = Buffer.concat([Buffer.from([0x81, 0x80 | 17, 0, 0, 0, 0]), Buffer.from('{"action":"pong"}')]);
  socket.on('data', () => socket.write(pong)).once('close', () => (seen.streams -= 1));
}

async function slowBody(): Promise<void> {
  const socket = await open();
  socket.write(`POST /audit HTTP/1.1\r\nHost: ${gateway}\r\nContent-Type: application/json\r\nContent-Length: 16000\r\n\r\n"`);
  seen.slowBodies += 1;
  const dribble = setInterval(() => socket.write('a'), DRIBBLE_MS);
  socket.resume().once('close', () => {
    clearInterval(dribble);
    seen.slowBodies -= 1;
    // The deadline of a body is part of what is tried: another takes its place.
    void slowBody();
  });
}

async function longPoll(index: number): Promise<void> {
  const socket = await open();
  seen.longPolls += 1;
  const body = JSON.stringify({ stream_family: 'bench', consumer_group: `doors-${index}`, count: 1, block_ms: 10_000, start: 'latest' });
  const ask = () =>
    socket.write(
      `POST /proxy/bus/v1/consume HTTP/1.1\r\nHost: ${gateway}\r\n${person}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  // A poll that is refused is asked once: a client that hammers is another bench.
  socket.on('data', (chunk: string) => (chunk.startsWith('HTTP/1.1 200') ? ask() : undefined)).once('close', () => (seen.longPolls -= 1));
  ask();
}

async function answered(text: string, count: 'expecting' | 'asterisks'): Promise<void> {
  const socket = await open();
  socket.write(text);
  for await (const chunk of socket as AsyncIterable<string>) {
    // «Continue» comes before the answer.
    if (!/HTTP\/1\.1 (?!100)\d{3}/.test(chunk)) continue;
    seen[count] += 1;
    break;
  }
  socket.destroy();
}

await times(load.streams, stream);
await times(load.slowBodies, slowBody);
await times(load.longPolls, longPoll);
const odd = Promise.all([
  times(load.expecting, () =>
    answered(`POST /audit HTTP/1.1\r\nHost: ${gateway}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`, 'expecting'),
  ),
  times(load.asterisks, () => answered(`OPTIONS * HTTP/1.1\r\nHost: ${gateway}\r\n\r\n`, 'asterisks')),
]);
await odd;
parentPort?.on('message', () => parentPort?.postMessage({ ...seen }));
