import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import type { OutboxState } from '../outbox-store.ts';
import { systemClock } from './relay-clock.ts';
import { RelaySource } from './relay-source.ts';
import type { RelayOptions } from './relay-options.ts';

export interface AttachOptions {
  /** The safety net under NOTIFY: 2 s; `acme` and `post` use 5 s. */
  readonly pollMs?: number;
}

/**
 * Carries the events of the attached services to the bus: one per process. Rows leave environment by environment, in the order of
 * `(created_at, id)`, at least once; a row that must wait holds up its environment, a parked one does not. Of the processes that attach
 * a service one leads and carries; the others stand by and take over within a poll when its database session ends.
 */
export class Relay {
  readonly #sources = new Map<string, RelaySource>();
  readonly #options: Required<RelayOptions>;

  constructor(options: RelayOptions) {
    this.#options = { clock: systemClock, callTimeoutMs: 30_000, ...options };
  }

  /** Begins to relay a service's outbox. `pool` stays the caller's; it must be open until {@link detach}. */
  async attach(service: string, pool: PostgresPool, { pollMs = 2_000 }: AttachOptions = {}): Promise<void> {
    if (this.#sources.has(service)) throw new Error(`${service} is attached already`);
    const source = new RelaySource(service, pool, pollMs, this.#options);
    this.#sources.set(service, source);
    await source.open();
  }

  /** Ends relaying a service, after the calls under way. */
  async detach(service: string): Promise<void> {
    const source = this.#sources.get(service);
    this.#sources.delete(service);
    await source?.[Symbol.asyncDispose]();
  }

  /** How each attached outbox stands: age of the oldest pending row, pending and parked rows. */
  async metrics(): Promise<Map<string, OutboxState>> {
    const states = [...this.#sources.values()].map(async source => [source.service, await source.state()] as const);
    return new Map(await Promise.all(states));
  }

  /** Deletes what retention no longer keeps; runs hourly by itself. */
  async sweep(): Promise<number> {
    const counts = await Promise.all([...this.#sources.values()].map(source => source.sweep()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Sends everything that is due, until nothing is or `deadlineMs` have passed; then calls under way are given up. */
  async drain(deadlineMs: number): Promise<void> {
    await Promise.all([...this.#sources.values()].map(source => source.drain(deadlineMs)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sources.keys()].map(service => this.detach(service)));
  }
}
