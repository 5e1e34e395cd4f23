import { BoundedMap, type BucketOptions, type Counted, type ProcessLimit as Limit, type ProcessLimitOptions } from '@platform/sdk';
import { counted, type Measure, measureOf } from './measure.ts';

const MOST_KEYS = 100_000;

interface Known {
  /** Of a bucket what is in it, of a window what was counted. */
  amount: number;
  /** Of a bucket when it was looked at last, of a window when it began. */
  at: number;
}

/** A limit in the memory of this process. A clock that goes back gives nothing. */
export class ProcessLimit implements Limit {
  readonly #known: BoundedMap<string, Known>;
  readonly #measure: Measure;
  readonly #now: () => number;
  #refused = 0;

  constructor(options: ProcessLimitOptions, now: () => number) {
    this.#known = new BoundedMap(options.keys ?? MOST_KEYS);
    this.#measure = measureOf(options);
    this.#now = now;
  }

  get size(): number {
    return this.#known.size;
  }

  get refused(): number {
    return this.#refused;
  }

  take(key: string, cost = 1, allowed?: Omit<BucketOptions, 'name'>): Counted {
    const measure = allowed ? measureOf({ name: this.#measure.name, ...allowed }) : this.#measure;
    const outcome = measure.perSecond === undefined ? this.#window(key, cost) : this.#bucket(key, cost, measure, measure.perSecond);
    if (!outcome.allowed) this.#refused += 1;
    return outcome;
  }

  #window(key: string, cost: number): Counted {
    const { max, seconds } = this.#measure;
    const now = this.#now();
    const before = this.#known.get(key);
    const known = before && now - before.at < seconds * 1_000 ? before : { amount: 0, at: now };
    known.amount += cost;
    this.#known.set(key, known);
    return counted(this.#measure, known.amount <= max, max - known.amount, known.at + seconds * 1_000 - now);
  }

  #bucket(key: string, cost: number, measure: Measure, perSecond: number): Counted {
    const { max } = measure;
    const now = this.#now();
    const known = this.#known.get(key) ?? { amount: max, at: now };
    known.amount = Math.min(max, known.amount + (Math.max(0, now - known.at) * perSecond) / 1_000);
    known.at = now;
    this.#known.set(key, known);
    const allowed = known.amount >= cost;
    if (allowed) known.amount -= cost;
    return counted(measure, allowed, known.amount, ((cost - known.amount) / perSecond) * 1_000);
  }
}
