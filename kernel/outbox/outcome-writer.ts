import { setImmediate as turn } from 'node:timers/promises';
import type { PostgresPool } from '../storage/postgres/postgres-pool.ts';
import type { Outcome } from './relay/delivery.ts';
import { record } from './outbox-store.ts';
import type { RelayClock } from './relay/relay-clock.ts';

/** Writes what became of rows. Calls that end in one turn, or while others are being written, are written together. */
export class OutcomeWriter {
  readonly #session: PostgresPool;
  readonly #clock: RelayClock;
  #waiting: Outcome[] = [];
  #written: Promise<void> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(session: PostgresPool, clock: RelayClock) {
    this.#session = session;
    this.#clock = clock;
  }

  write(outcomes: readonly Outcome[]): Promise<void> {
    this.#waiting.push(...outcomes);
    this.#written ??= Promise.all([turn(), this.#writing]).then(() => {
      const together = this.#waiting;
      this.#waiting = [];
      this.#written = undefined;
      const written = record(this.#session, together, this.#clock.now());
      this.#writing = written.catch(() => undefined);
      return written;
    });
    return this.#written;
  }
}
