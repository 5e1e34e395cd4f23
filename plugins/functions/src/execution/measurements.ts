import { type Cache, isProblem } from '@platform/sdk';
import type { Execution } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { Attempt } from './attempt.ts';

type Dimensions = {
  readonly env_id: string;
  readonly domain: string;
  readonly product: string;
  readonly hook: string;
  readonly outcome: string;
};
interface Sum {
  readonly dimensions: Dimensions;
  executions: number;
  fuel: number;
  durationMs: number;
}
interface Measured {
  readonly metric: string;
  readonly value: number;
  readonly dimensions: Dimensions;
  readonly idempotency_key: string;
}

/** Sums that are kept; what comes beside them is counted and let go. */
const MAX_SUMS = 1_000;
/** Measurements that are told in one go. */
const AT_ONCE = 300;

/** Refusals of who asks, or of when: the same is taken later. */
const PASSING = new Set([401, 403, 408, 425, 429]);
/** Whether the statistics will never take it: told again and again, it would hold up all that waits behind it. */
const isForGood = (error: unknown): boolean => isProblem(error) && error.status >= 400 && error.status < 500 && !PASSING.has(error.status);

/** What ran, on its way to the statistics: sums of half a minute by environment, product, hook and outcome (FUN-035, G-FUNC-08). */
export class Measurements {
  readonly #ctx: FuncContext;
  readonly #sums = new Map<string, Sum>();
  /** Numbers that change no more, told one after the other; each is recorded once, however often it is told. */
  #waiting: Measured[] = [];
  readonly #properties: Cache<string>;

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
    this.#properties = ctx.cache({ max: 1_000, ttl: 3_600_000 });
  }

  /** Numbers that the statistics have not taken yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  add(
    { env_id, domain, product, hook }: Pick<Execution, 'env_id' | 'domain' | 'product' | 'hook'>,
    { code, fuelUsed, durationMs }: Attempt,
  ): void {
    const dimensions = { env_id, domain, product, hook, outcome: code ?? 'completed' };
    const key = Object.values(dimensions).join('\n');
    const sum = this.#sums.get(key) ?? { dimensions, executions: 0, fuel: 0, durationMs: 0 };
    if (!this.#sums.has(key) && this.#sums.size >= MAX_SUMS) {
      this.#ctx.metrics.measurements_dropped.add(1);
      return;
    }
    this.#sums.set(key, sum);
    sum.executions += 1;
    sum.fuel += fuelUsed;
    sum.durationMs += durationMs;
  }

  /** Tells what came together. What the statistics do not take now is told the next time, under the same key. */
  async tell(signal: AbortSignal): Promise<void> {
    // While much waits, sums go on growing where they are.
    if (this.#waiting.length === 0) this.#waiting = this.#measured();
    for (const measured of this.#waiting.slice(0, AT_ONCE)) {
      try {
        await this.#tell(measured, signal);
      } catch (err) {
        this.#properties.forget(measured.dimensions.env_id);
        if (!isForGood(err)) {
          this.#ctx.log.info({ err, waiting: this.#waiting.length }, 'the statistics did not take what functions used; it is told later');
          return;
        }
        // Of an environment that is gone nothing is measured any more.
        if (!isProblem(err) || err.code !== 'property_not_found') {
          this.#ctx.metrics.measurements_dropped.add(1);
          this.#ctx.log.warn({ err, metric: measured.metric }, 'the statistics refuse what functions used; it is let go');
        }
      }
      this.#waiting.shift();
    }
  }

  #measured(): Measured[] {
    const measured = [...this.#sums.values()].flatMap(({ dimensions, executions, fuel, durationMs }) => {
      const values = { 'func.executions': executions, 'func.fuel_used': fuel, 'func.duration_ms': Math.round(durationMs * 1_000) / 1_000 };
      const id = this.#ctx.platform.newId();
      return Object.entries(values).map(([metric, value]) => ({ metric, value, dimensions, idempotency_key: `${id}:${metric}` }));
    });
    this.#sums.clear();
    return measured;
  }

  async #tell(measured: Measured, signal: AbortSignal): Promise<void> {
    const { statistics } = this.#ctx.services;
    const { env_id } = measured.dimensions;
    const provision = async () =>
      (await statistics.provision({ body: { env_id, kind: 'instance', ref_id: 'func', name: 'Functions' }, signal })).property_id;
    await statistics.measure({ body: { property_id: await this.#properties.get(env_id, provision), ...measured }, signal });
  }
}
