import { parentPort, workerData } from 'node:worker_threads';
import { Pool } from 'undici';

/** What a load generator in a thread of its own is told. */
export interface Load {
  readonly origin: string;
  readonly host: string;
  readonly path: string;
  readonly body: string;
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly concurrency: number;
  readonly warmUpMs: number;
  readonly ms: number;
}
/** What it saw after the warm-up. */
export interface Loaded {
  readonly perSecond: number;
  readonly p99Ms: number;
}

const { origin, host, path, body, cert, key, ca, concurrency, warmUpMs, ms } = workerData as Load;
const pool = new Pool(origin, { connections: concurrency, connect: { cert, key, ca, servername: host, minVersion: 'TLSv1.3' } });
const start = performance.now();
const times: number[] = [];
const one = async () => {
  while (performance.now() - start < warmUpMs + ms) {
    const began = performance.now();
    const response = await pool.request({ method: 'POST', path, headers: { host, 'content-type': 'application/json' }, body });
    if (response.statusCode >= 300) throw new Error(`answered ${response.statusCode}: ${await response.body.text()}`);
    await response.body.dump();
    if (began - start > warmUpMs) times.push(performance.now() - began);
  }
};
await Promise.all(Array.from({ length: concurrency }, one));
await pool.close();
times.sort((left, right) => left - right);
parentPort?.postMessage({ perSecond: (times.length * 1_000) / ms, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN } satisfies Loaded);
