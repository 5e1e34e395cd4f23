import { type InboxRow, keyOf } from '../inbox/inbox-group.ts';
import { NO_KEY } from './minted-key.ts';
import type { StreamRef } from '../stream/names.ts';

export interface Receipt extends StreamRef {
  readonly message_id: string;
  readonly replayed: boolean;
}
/** What became of a row. */
export type Outcome = Receipt | Error;

/**
 * The rows of one request. They settle each for itself, and are waited for together: a promise for each would be most of what an event
 * costs.
 */
class Request {
  readonly outcomes: Promise<readonly Outcome[]>;
  readonly #settled: Outcome[];
  readonly #done: (outcomes: readonly Outcome[]) => void;
  #left: number;

  constructor(rows: number) {
    const { promise, resolve } = Promise.withResolvers<readonly Outcome[]>();
    this.outcomes = promise;
    this.#done = resolve;
    this.#settled = new Array<Outcome>(rows);
    this.#left = rows;
    if (rows === 0) resolve([]);
  }

  settle(position: number, outcome: Outcome): void {
    if (this.#settled[position] !== undefined) return;
    this.#settled[position] = outcome;
    this.#left -= 1;
    if (this.#left === 0) this.#done(this.#settled);
  }
}

/** A row on its way onto its stream, and who waits for what becomes of it. Life: waiting → settled, once. */
export class Waiting {
  readonly row: InboxRow;
  readonly inBatch: boolean;
  /** {@link NO_KEY} of a row that nothing can be a copy of. */
  readonly key: string;
  readonly #request: Request;
  readonly #position: number;
  /** Copies that came while it was under way. */
  #copies: ((outcome: Outcome) => void)[] | undefined;
  #outcome: Outcome | undefined;

  constructor(row: InboxRow, key: string, { request, position, inBatch }: { request: Request; position: number; inBatch: boolean }) {
    this.row = row;
    this.key = key;
    this.inBatch = inBatch;
    this.#request = request;
    this.#position = position;
  }

  settle(outcome: Outcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#request.settle(this.#position, outcome);
    for (const copy of this.#copies ?? []) copy(outcome);
    this.#copies = undefined;
  }

  /** Now or later. */
  whenSettled(copy: (outcome: Outcome) => void): void {
    if (this.#outcome === undefined) (this.#copies ??= []).push(copy);
    else copy(this.#outcome);
  }
}

const ROWS_PER_COMMIT = 512;
const BYTES_PER_COMMIT = 4 * 1_048_576;
const MOST_WAITING = 20_000;

/**
 * Rows that wait for a commit, in the order they came, and the keys of all that are under way: a second copy gets the first one's answer.
 */
export class Arrivals {
  /** Rows of one request stay together, so that they stay in order. */
  readonly #queue: Waiting[][] = [];
  readonly #known = new Map<string, Waiting>();
  #count = 0;
  #heard: (() => void) | undefined;

  get empty(): boolean {
    return this.#count === 0;
  }

  hasRoomFor(rows: number): boolean {
    return this.#count + rows <= MOST_WAITING;
  }

  /** What becomes of each row; of a copy of what is under way, what `copyOf` makes of the first one's. */
  add(rows: readonly InboxRow[], copyOf: (row: InboxRow, first: Receipt) => Receipt): Promise<readonly Outcome[]> {
    const request = new Request(rows.length);
    const unit: Waiting[] = [];
    for (const [position, row] of rows.entries()) {
      const key = keyOf(row);
      const first = key === NO_KEY ? undefined : this.#known.get(key);
      if (first) {
        first.whenSettled(outcome => request.settle(position, outcome instanceof Error ? outcome : copyOf(row, outcome)));
        continue;
      }
      const waiting = new Waiting(row, key, { request, position, inBatch: rows.length > 1 });
      if (key !== NO_KEY) this.#known.set(key, waiting);
      unit.push(waiting);
    }
    if (unit.length > 0) {
      this.#queue.push(unit);
      this.#count += unit.length;
      this.rouse();
    }
    return request.outcomes;
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
    for (const row of rows) if (row.key !== NO_KEY && this.#known.get(row.key) === row) this.#known.delete(row.key);
  }

  fail(row: Waiting, error: Error): void {
    this.forget([row]);
    row.settle(error);
  }
}
