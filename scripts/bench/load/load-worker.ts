import { connect, type TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** What a load generator in a thread of its own is told. */
export interface Load {
  readonly port: number;
  readonly host: string;
  readonly path: string;
  readonly body: string;
  readonly authorization?: string;
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Kept connections. */
  readonly concurrency: number;
  /** Requests under way on each of them; one where nothing is said. The server answers in order (RFC 9112, 9.3.2). */
  readonly inFlight?: number;
  readonly warmUpMs: number;
  readonly ms: number;
}
/** What it saw after the warm-up. */
export interface Loaded {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

const { port, host, path, body, authorization, cert, key, ca, concurrency, inFlight = 1, warmUpMs, ms } = workerData as Load;
const request = Buffer.from(
  [
    `POST ${path} HTTP/1.1`,
    `host: ${host}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(authorization ? [`authorization: ${authorization}`] : []),
    '',
    body,
  ].join('\r\n'),
);
const start = performance.now();
const times: number[] = [];

/** Bytes on a kept connection and no client library: what is measured is the server, on cores it shares with us. */
class Connection {
  readonly done: Promise<void>;
  readonly #socket: TLSSocket;
  readonly #began: number[] = [];
  #answers = '';

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.#socket = connect({ port, host: '127.0.0.1', servername: host, cert, key, ca, minVersion: 'TLSv1.3' }, () => {
      for (let n = 0; n < inFlight; n++) this.#send();
    });
    this.#socket.setEncoding('latin1').setNoDelay(true);
    this.#socket.on('error', reject).on('close', () => resolve());
    this.#socket.on('data', (chunk: string) => {
      this.#answers += chunk;
      try {
        while (this.#takeAnswer());
      } catch (error) {
        reject(error as Error);
      }
    });
  }

  /** Whether a whole answer was there. */
  #takeAnswer(): boolean {
    const head = this.#answers.indexOf('\r\n\r\n');
    if (head < 0) return false;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#answers.slice(0, head + 2))?.[1]);
    if (Number.isNaN(length)) throw new Error(`an answer without a length: ${this.#answers.slice(0, head)}`);
    const end = head + 4 + length;
    if (this.#answers.length < end) return false;
    if (!this.#answers.startsWith('HTTP/1.1 2')) throw new Error(`answered ${this.#answers}`);
    this.#answers = this.#answers.slice(end);
    const now = performance.now();
    const began = this.#began.shift() as number;
    if (began - start > warmUpMs) times.push(now - began);
    if (now - start < warmUpMs + ms) this.#send();
    else if (this.#began.length === 0) this.#socket.end();
    return true;
  }

  #send(): void {
    this.#began.push(performance.now());
    this.#socket.write(request);
  }
}

await Promise.all(Array.from({ length: concurrency }, () => new Connection().done));
times.sort((left, right) => left - right);
const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
parentPort?.postMessage({ perSecond: (times.length * 1_000) / ms, medianMs: at(0.5), p99Ms: at(0.99) } satisfies Loaded);
