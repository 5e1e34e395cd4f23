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
  /** Kept connections, one request at a time on each. */
  readonly concurrency: number;
  readonly warmUpMs: number;
  readonly ms: number;
}
/** What it saw after the warm-up. */
export interface Loaded {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

const { port, host, path, body, authorization, cert, key, ca, concurrency, warmUpMs, ms } = workerData as Load;
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
  #answer = '';
  #began = 0;

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.#socket = connect({ port, host: '127.0.0.1', servername: host, cert, key, ca, minVersion: 'TLSv1.3' }, () => this.#send());
    this.#socket.setEncoding('latin1').setNoDelay(true);
    this.#socket.on('error', reject).on('close', () => resolve());
    this.#socket.on('data', (chunk: string) => {
      this.#answer += chunk;
      const head = this.#answer.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#answer.slice(0, head + 2))?.[1]);
      if (Number.isNaN(length)) return reject(new Error(`an answer without a length: ${this.#answer.slice(0, head)}`));
      if (this.#answer.length < head + 4 + length) return;
      if (!this.#answer.startsWith('HTTP/1.1 2')) return reject(new Error(`answered ${this.#answer}`));
      const now = performance.now();
      if (this.#began - start > warmUpMs) times.push(now - this.#began);
      if (now - start < warmUpMs + ms) this.#send();
      else this.#socket.end();
    });
  }

  #send(): void {
    this.#answer = '';
    this.#began = performance.now();
    this.#socket.write(request);
  }
}

await Promise.all(Array.from({ length: concurrency }, () => new Connection().done));
times.sort((left, right) => left - right);
const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
parentPort?.postMessage({ perSecond: (times.length * 1_000) / ms, medianMs: at(0.5), p99Ms: at(0.99) } satisfies Loaded);
