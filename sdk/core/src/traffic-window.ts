const SAMPLES = 1_000;

/**
 * What one service answered since the last look, as `stat:metrics` takes it (G-STAT-04): never a path, a name or a byte of what was said.
 */
export interface Traffic {
  readonly service: string;
  readonly at: string;
  readonly counts: { readonly requests: number };
  readonly statuses: Readonly<Record<string, number>>;
  readonly latency_ms: { readonly p50: number; readonly p95: number; readonly p99: number };
}

/** Counts answers between two looks; times are those of the first thousand. */
export class TrafficWindow {
  readonly #service: string;
  #requests = 0;
  #statuses: Record<string, number> = {};
  #times: number[] = [];

  constructor(service: string) {
    this.#service = service;
  }

  add(status: number, ms: number): void {
    this.#requests += 1;
    const name = `${Math.floor(status / 100)}xx`;
    this.#statuses[name] = (this.#statuses[name] ?? 0) + 1;
    if (this.#times.length < SAMPLES) this.#times.push(ms);
  }

  /** What there was, and begins anew; nothing where nothing was. */
  take(now: Date): Traffic | undefined {
    if (this.#requests === 0) return undefined;
    const times = this.#times.sort((left, right) => left - right);
    const at = (share: number) => Math.round((times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0) * 100) / 100;
    const traffic = {
      service: this.#service,
      at: now.toISOString(),
      counts: { requests: this.#requests },
      statuses: this.#statuses,
      latency_ms: { p50: at(0.5), p95: at(0.95), p99: at(0.99) },
    };
    [this.#requests, this.#statuses, this.#times] = [0, {}, []];
    return traffic;
  }
}
