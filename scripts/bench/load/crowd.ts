import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Ready } from '../../../e2e/fixtures/platform.ts';
import type { BrowserSession } from '../suites/faces/browser-session.ts';
import type { CrowdLoad, CrowdSeen } from './crowd-thread.ts';

export type CrowdSize = CrowdSeen;

/** Clients that last, in a thread of their own, so that what is measured is the platform and not them. */
export class Crowd implements AsyncDisposable {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async gather(ready: Ready, person: BrowserSession, size: CrowdSize): Promise<Crowd> {
    const load: CrowdLoad = {
      ...size,
      port: Number(new URL(ready.console).port),
      ca: readFileSync(ready.ca_root, 'utf8'),
      gateway: new URL(ready.gateway).hostname,
      origin: ready.console,
      cookie: person.cookieFor(ready.gateway),
      csrf: person.csrf,
    };
    const crowd = new Crowd(new Worker(new URL('./crowd-thread.ts', import.meta.url), { workerData: load }));
    await crowd.seen();
    return crowd;
  }

  /** How many there are; the first answer comes when all are gathered. */
  seen(): Promise<CrowdSeen> {
    return new Promise((resolve, reject) => {
      this.#worker.once('message', resolve);
      this.#worker.once('error', reject);
      this.#worker.postMessage('how many');
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
