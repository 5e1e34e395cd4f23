import type postgres from 'postgres';

/** What a connection that broke says, to queries that were under way or waited for it. A server that is not there breaks nothing. */
export const BROKEN = /^(CONNECTION_(CLOSED|DESTROYED|ENDED)|CONNECT_TIMEOUT|EPIPE|ECONNRESET|ETIMEDOUT|ERR_STREAM_.*|57P0[123])$/;
/** As long as a statement may run. */
const RETIRING_S = 15;

/** A query of the driver, which it rejects by a member of its own. */
interface Rejectable {
  reject(error: unknown): void;
}

/**
 * The driver's client, made anew when one of its connections breaks. A broken connection of `postgres` 3.4.9 keeps what it had not written
 * yet and sends it before its next greeting: its next user waits for minutes. What runs on other connections of the old client ends
 * there. Life: made → (renewed)* → ended.
 */
export class RenewedDriver {
  /** Always the client of the moment. */
  readonly sql: postgres.Sql;
  readonly #make: () => postgres.Sql;
  #current: postgres.Sql;
  #ended = false;

  constructor(make: () => postgres.Sql) {
    this.#make = make;
    this.#current = make();
    // The driver is called directly. Queries made by a call through a proxy survive the collections of young objects, and cost memory.
    const tag = (...input: unknown[]): unknown =>
      this.#watched(this.#current, (this.#current as unknown as (...input: unknown[]) => unknown)(...input));
    this.sql = Object.setPrototypeOf(
      tag,
      new Proxy(Function.prototype, { get: (_target, name) => this.#member(name), has: (_target, name) => name in this.#current }),
    ) as postgres.Sql;
  }

  async end(options: { timeout: number }): Promise<void> {
    this.#ended = true;
    // Old clients end by themselves, and what holds them up is what they were left for.
    await this.#current.end(options);
  }

  #member(name: string | symbol): unknown {
    const of = this.#current;
    const value = (of as unknown as Record<string | symbol, unknown>)[name];
    if (typeof value !== 'function') return value;
    return (...input: unknown[]) => this.#watched(of, (value as (...input: unknown[]) => unknown).apply(of, input));
  }

  /** A query is not run by being looked at: only its way to fail is. */
  #watched(of: postgres.Sql, made: unknown): unknown {
    if (!(made instanceof Promise)) return made;
    if ('reject' in made) {
      const query = made as unknown as Rejectable;
      const { reject } = query;
      const fail = (error: unknown): void => {
        this.#failed(of, error);
        reject(error);
      };
      query.reject = fail;
    } else made.catch((error: unknown) => this.#failed(of, error));
    return made;
  }

  #failed(of: postgres.Sql, error: unknown): void {
    if (this.#ended || of !== this.#current || !BROKEN.test(String((error as { code?: unknown } | undefined)?.code))) return;
    this.#current = this.#make();
    void of.end({ timeout: RETIRING_S }).catch(() => undefined);
  }
}
