import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';

export interface BatcherOptions<I, O> {
  /** Items that go together. */
  readonly most: number;
  /** Items that may wait; the next one is refused. */
  readonly waiting: number;
  /** What one weighs, such as its bytes, where a batch and those that wait are bounded by that too. */
  readonly weight?: { of(item: I): number; readonly most: number; readonly waiting: number };
  /** A batch that lasts longer fails, its signal ends, and the next one begins. What became of it is then not known. */
  readonly deadlineMs: number;
  /** The refusal of an item that finds no room. */
  readonly full: () => Error;
  /** What became of each item, in their order: what it comes to, or why it failed by itself. What is thrown fails all of them. */
  readonly work: (items: readonly I[], signal: AbortSignal) => Promise<readonly (O | Error)[]>;
}

interface Waiting<I, O> {
  readonly item: I;
  readonly weight: number;
  readonly settle: (outcome: O) => void;
  readonly fail: (error: Error) => void;
}

/** What arrives while a batch is under way rides the next; nobody waits when nothing is under way. */
export class Batcher<I, O = void> {
  readonly #options: BatcherOptions<I, O>;
  /** The pump serves many requests: it must not run as the one that started it. */
  readonly #outside = AsyncLocalStorage.snapshot();
  #queue: Waiting<I, O>[] = [];
  /** How many at the head of the queue are taken already. */
  #taken = 0;
  #weight = 0;
  #running = false;

  constructor(options: BatcherOptions<I, O>) {
    this.#options = options;
  }

  async add(item: I): Promise<O> {
    const { waiting, weight, full } = this.#options;
    const heavy = weight?.of(item) ?? 0;
    if (this.#queue.length - this.#taken >= waiting || (weight && this.#weight + heavy > weight.waiting)) throw full();
    return new Promise((settle, fail) => {
      this.#queue.push({ item, weight: heavy, settle, fail });
      this.#weight += heavy;
      if (this.#running) return;
      this.#running = true;
      void this.#outside(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    for (;;) {
      // What came in the same turn of the loop goes together.
      await turn();
      const batch = this.#take();
      if (batch.length === 0) break;
      await this.#perform(batch);
    }
    this.#running = false;
  }

  #take(): Waiting<I, O>[] {
    const { most, weight } = this.#options;
    let [end, heavy] = [this.#taken, 0];
    for (; end < this.#queue.length && end - this.#taken < most && (!weight || heavy < weight.most); end++)
      heavy += (this.#queue[end] as Waiting<I, O>).weight;
    const batch = this.#queue.slice(this.#taken, end);
    this.#taken = end;
    this.#weight -= heavy;
    if (end === this.#queue.length) [this.#queue, this.#taken] = [[], 0];
    return batch;
  }

  async #perform(batch: readonly Waiting<I, O>[]): Promise<void> {
    const { deadlineMs, work } = this.#options;
    const ending = new AbortController();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      ending.abort();
      late.reject(new Error(`a batch of ${batch.length} lasted longer than ${deadlineMs} ms`));
    }, deadlineMs);
    try {
      const done = work(
        batch.map(({ item }) => item),
        ending.signal,
      );
      done.catch(() => undefined);
      const outcomes = await Promise.race([done, late.promise]);
      for (const [index, { settle, fail }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome instanceof Error) fail(outcome);
        else settle(outcome as O);
      }
    } catch (error) {
      for (const { fail } of batch) fail(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }
}
