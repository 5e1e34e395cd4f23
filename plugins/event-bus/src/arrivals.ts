import { type InboxRow, keyOf } from './inbox-group.ts';
import { NO_KEY } from './minted-key.ts';
import type { StreamRef } from './names.ts';

export interface Receipt extends StreamRef {
  readonly message_id: string;
  readonly replayed: boolean;
}
/** A row on its way onto its stream, and who waits for what becomes of it. */
export interface Waiting {
  readonly row: InboxRow;
  readonly inBatch: boolean;
  /** {@link NO_KEY} of a row that nothing can be a copy of. */
  readonly key: string;
  readonly receipt: Promise<Receipt>;
  readonly resolve: (receipt: Receipt) => void;
  readonly reject: (error: Error) => void;
}

const ROWS_PER_COMMIT = 512;
const BYTES_PER_COMMIT = 4 * 1_048_576;
const MOST_WAITING = 20_000;

/** Rows that wait for a commit, in the order they came, and the keys of all that are under way: a second copy gets the first one's answer. */
export class Arrivals {
  /** Rows of one request stay together, so that they stay in order. */
  readonly #queue: Waiting[][] = [];
  readonly #known = new Map<string, Promise<Receipt>>();
  #count = 0;
  #heard: (() => void) | undefined;

  get empty(): boolean {
    return this.#count === 0;
  }

  hasRoomFor(rows: number): boolean {
    return this.#count + rows <= MOST_WAITING;
  }

  /** A receipt for each row; of a copy of what is under way, what `copyOf` makes of the first one's. */
  add(rows: readonly InboxRow[], copyOf: (row: InboxRow, first: Receipt) => Receipt): Promise<Receipt>[] {
    const unit: Waiting[] = [];
    const receipts = rows.map(row => {
      const key = row.envelope.idempotency_key === NO_KEY ? NO_KEY : keyOf(row);
      const first = key === NO_KEY ? undefined : this.#known.get(key);
      if (first) return first.then(receipt => copyOf(row, receipt));
      const { promise, resolve, reject } = Promise.withResolvers<Receipt>();
      if (key !== NO_KEY) this.#known.set(key, promise);
      unit.push({ row, inBatch: rows.length > 1, key, receipt: promise, resolve, reject });
      return promise;
    });
    if (unit.length > 0) {
      this.#queue.push(unit);
      this.#count += unit.length;
      this.rouse();
    }
    return receipts;
  }

  /** What one commit takes: whole requests. */
  take(): Waiting[] {
    const group: Waiting[] = [];
    for (let bytes = 0; this.#queue.length > 0 && group.length < ROWS_PER_COMMIT && bytes < BYTES_PER_COMMIT; ) {
      const unit = this.#queue.shift() as Waiting[];
      group.push(...unit);
      for (const { row } of unit) bytes += row.envelope.payload.length;
    }
    this.#count -= group.length;
    return group;
  }

  /** Until something comes, somebody calls, or time is up. */
  async next(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#heard = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
    this.#heard = undefined;
  }

  rouse(): void {
    this.#heard?.();
  }

  /** The next copy of these is a new arrival; unless there is one already. */
  forget(rows: Iterable<Waiting>): void {
    for (const { key, receipt } of rows) if (key !== NO_KEY && this.#known.get(key) === receipt) this.#known.delete(key);
  }

  fail(row: Waiting, error: Error): void {
    this.forget([row]);
    row.reject(error);
  }
}
