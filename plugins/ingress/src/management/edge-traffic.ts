import { type Traffic, TrafficWindow } from '@platform/sdk';
import type { Ctx } from '../context.ts';

const FLUSH_MS = 10_000;
/** Half an hour of windows. */
const KEPT = 180;

/** Counters of the edge since its start: of connections and refusals, never of what was said. */
export interface EdgeCounts {
  connections: number;
  handshakes: number;
  handshakes_failed: number;
  handshakes_post_quantum: number;
  piped: number;
  requests_http2: number;
  not_2xx: number;
}
export type EdgeWindow = Omit<Traffic, 'counts'> & { readonly counts: Readonly<EdgeCounts & { requests: number }> };

const NONE: EdgeCounts = {
  connections: 0,
  handshakes: 0,
  handshakes_failed: 0,
  handshakes_post_quantum: 0,
  piped: 0,
  requests_http2: 0,
  not_2xx: 0,
};
const EMPTY = { counts: { requests: 0 }, statuses: {}, latency_ms: { p50: 0, p95: 0, p99: 0 } };

/**
 * Counts what goes through the edge and says so on `stat:metrics:tls` every ten seconds (ING-048): counts, statuses and latency, never a
 * path, a name or a byte (ING-049).
 */
export class EdgeTraffic {
  readonly #ctx: Ctx;
  readonly #window = new TrafficWindow('proxy');
  readonly #recent: EdgeWindow[] = [];
  readonly total: EdgeCounts = { ...NONE };
  #counts: EdgeCounts = { ...NONE };

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    ctx.own(ctx.every(FLUSH_MS, () => this.#flush()));
  }

  count(what: keyof EdgeCounts): void {
    this.#counts[what] += 1;
    this.total[what] += 1;
  }

  /** One answered request; without a time where it was a stream. */
  answered(status: number, ms?: number): void {
    if (status < 200 || status > 299) this.count('not_2xx');
    this.#window.add(status, ms);
  }

  /** The latest windows, oldest first. */
  recent(): readonly EdgeWindow[] {
    return this.#recent;
  }

  async #flush(): Promise<void> {
    const now = this.#ctx.clock.now();
    const { counts, ...traffic } = this.#window.take(now) ?? { service: 'proxy', at: now.toISOString(), ...EMPTY };
    const window: EdgeWindow = { ...traffic, counts: { ...counts, ...this.#counts } };
    this.#counts = { ...NONE };
    this.#recent.push(window);
    if (this.#recent.length > KEPT) this.#recent.shift();
    // Nobody may listen, and the store may be away: then they are lost.
    await this.#ctx.kv.call('PUBLISH', 'stat:metrics:tls', JSON.stringify(window)).catch(() => undefined);
  }
}
