import type { KeyValue, LivingService, Logger } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';

const LOOK_MS = 15_000;
/** The first looks, until the registry has answered once. */
const FIRST_MS = 1_000;
const CHANGED_CHANNEL = 'sys:verticals:changed';

export interface LiveCatalogParts {
  /** Asks the registry; the signal is the end of who asks. */
  readonly read: (signal: AbortSignal) => Promise<readonly LivingService[]>;
  readonly kv: Pick<KeyValue, 'subscribe'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The registered services as the registry has them: read when it says that something changed, and every fifteen seconds, because a word may
 * be lost. Begun with the first reader; whoever reads gets the latest picture, not each.
 */
export class LiveCatalog implements AsyncDisposable {
  readonly #parts: LiveCatalogParts;
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<() => void>();
  #begun: { timer: Disposable; heard: Promise<AsyncDisposable | undefined> } | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #services: readonly LivingService[] | undefined;
  #print = '';
  #version = 0;

  constructor(parts: LiveCatalogParts) {
    this.#parts = parts;
  }

  async *changes(): AsyncGenerator<readonly LivingService[], void, undefined> {
    this.#begin();
    for (let seen = 0; !this.#stopping.signal.aborted; ) {
      if (this.#services === undefined || seen === this.#version) {
        await new Promise<void>(resolve => this.#waiting.add(resolve));
        continue;
      }
      seen = this.#version;
      yield this.#services;
    }
  }

  /** Does something with each picture. One that failed is done again with the next look, changed or not. */
  follow(work: (services: readonly LivingService[]) => Promise<void> | void): void {
    void (async () => {
      for await (const services of this.changes()) {
        try {
          await work(services);
        } catch (error) {
          this.#parts.log.warn({ err: error }, 'a change of the services could not be followed; it is tried again');
          this.#print = '';
        }
      }
    })();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    this.#begun?.timer[Symbol.dispose]();
    await (await this.#begun?.heard)?.[Symbol.asyncDispose]();
    await this.#looking;
  }

  #begin(): void {
    if (this.#begun || this.#stopping.signal.aborted) return;
    const { clock, kv, log } = this.#parts;
    const timer = clock.every(FIRST_MS, () => {
      const due = this.#services === undefined ? FIRST_MS : LOOK_MS;
      if (clock.now().getTime() - this.#lookedAt >= due) return this.#look();
    });
    const heard = kv
      .subscribe(CHANGED_CHANNEL, () => void this.#look())
      .catch(error => {
        log.debug({ err: error }, 'changes of the services are looked for; nobody says when they happen');
        return undefined;
      });
    this.#begun = { timer, heard };
    void this.#look();
  }

  /** One look at a time; a word that comes during one leads to another. */
  #look(): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return this.#looking;
    }
    this.#looking = this.#read().finally(() => {
      this.#looking = undefined;
      if (!this.#again || this.#stopping.signal.aborted) return;
      this.#again = false;
      void this.#look();
    });
    return this.#looking;
  }

  async #read(): Promise<void> {
    this.#lookedAt = this.#parts.clock.now().getTime();
    try {
      const services = await this.#parts.read(this.#stopping.signal);
      const print = services.map(({ service, vertical, version, life }) => `${vertical}:${service} ${version} ${life}`).join('\n');
      if (this.#services !== undefined && print === this.#print) return;
      this.#services = services;
      this.#print = print;
      this.#version += 1;
      this.#wake();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const level = this.#services === undefined ? 'debug' : 'warn';
      this.#parts.log[level]({ err: error }, 'the registered services cannot be read; they are looked at again');
    }
  }

  #wake(): void {
    for (const waiting of this.#waiting) waiting();
    this.#waiting.clear();
  }
}
