import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { backoff } from '../../base/backoff.ts';
import type { EmbeddedPostgres } from './embedded-postgres.ts';
import { isAlive, type ProcessRecord, recordOf } from '../process-record.ts';

const LOOK_MS = 1_000;
const MAX_RESTARTS = 10;
const STABLE_MS = 300_000;

/**
 * Keeps the embedded server running: one that dies under a living host is started again on its port, where the pools find it by
 * themselves. Life: running → (died → restarted)* → stopped, or given up after ten deaths within five minutes of each other.
 */
export class PostgresGuard implements AsyncDisposable {
  readonly #start: () => Promise<EmbeddedPostgres>;
  readonly #say: (text: string) => void;
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #server: EmbeddedPostgres;
  #record: ProcessRecord;

  constructor(server: EmbeddedPostgres, start: () => Promise<EmbeddedPostgres>, say: (text: string) => void = () => undefined) {
    this.#server = server;
    this.#record = recordOf(server.pid);
    this.#start = start;
    this.#say = say;
    this.#watching = this.#watch();
  }

  get server(): EmbeddedPostgres {
    return this.#server;
  }

  /** The administrator of the server that runs now. */
  admin(): postgres.Sql {
    return this.#server.admin();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
    await this.#server.stop();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    let startedAt = performance.now();
    for (let deaths = 0; deaths < MAX_RESTARTS && !signal.aborted; ) {
      await delay(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted || isAlive(this.#record)) continue;
      if (performance.now() - startedAt > STABLE_MS) deaths = 0;
      await delay(backoff(deaths++, { baseMs: 100, capMs: 10_000 }), undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      this.#say('PostgreSQL died; starting it again');
      try {
        this.#server = await this.#start();
        this.#record = recordOf(this.#server.pid);
        startedAt = performance.now();
      } catch (error) {
        this.#say(`PostgreSQL did not come back: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
}
