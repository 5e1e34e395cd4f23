import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Load, Loaded } from './load-worker.ts';

/** Runs a load in a thread of its own and answers what it saw. */
export async function loaded(load: Load): Promise<Loaded> {
  const worker = new Worker(new URL('./load-worker.ts', import.meta.url), { workerData: load });
  const [seen] = (await once(worker, 'message')) as [Loaded];
  return seen;
}
