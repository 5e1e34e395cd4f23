const SAMPLES = 1_000;
const SERVICE = /^[a-z][a-z0-9-]{0,40}$/;
const MOST = 1e12;

/**
 * What one service answered since the last look, as `stat:metrics` takes it (G-STAT-04): never a path, a name or a byte of what was said.
 */
export interface Traffic {
  readonly service: string;
  readonly at: string;
  /** `waited`: how many of the requests have no answer time. */
  readonly counts: { readonly requests: number; readonly waited?: number; readonly [name: string]: number | undefined };
  readonly statuses: Readonly<Record<string, number>>;
  readonly latency_ms: { readonly p50: number; readonly p95: number; readonly p99: number };
}

/** What a message of `stat:metrics`, or a rollup of the same form, says; `undefined` for anything else (G-STAT-04). */
export function readTraffic(message: string): Traffic | undefined {
  try {
    const said = JSON.parse(message) as Partial<Record<keyof Traffic, unknown>>;
    const [statuses, latency] = [numbersOf(said.statuses), numbersOf(said.latency_ms)];
    const counts = numbersOf(said.counts);
    const sound =
      typeof said.service === 'string' && SERVICE.test(said.service) && typeof said.at === 'string' && !Number.isNaN(Date.parse(said.at));
    if (!sound || !counts || !statuses || !latency || !['p50', 'p95', 'p99'].every(name => name in latency)) return undefined;
    const requests = counts['requests'] ?? Object.values(statuses).reduce((sum, count) => sum + count, 0);
    return { ...said, counts: { ...counts, requests }, statuses, latency_ms: latency } as Traffic;
  } catch {
    return undefined;
  }
}

interface Counted {
  readonly requests: number;
  readonly waited?: number | undefined;
}

/** How many of its answers have a time: what a median is weighed by. */
export const timedOf = ({ requests, waited = 0 }: Counted): number => Math.max(0, requests - waited);

/** How many of its answers were failures of the service. */
export const errorsOf = ({ statuses }: Pick<Traffic, 'statuses'>): number =>
  Object.entries(statuses).reduce((sum, [name, count]) => sum + (name.startsWith('5') ? count : 0), 0);

function numbersOf(value: unknown): Readonly<Record<string, number>> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.values(value).every(each => typeof each === 'number' && each >= 0 && each < MOST)
    ? (value as Record<string, number>)
    : undefined;
}

/** Counts answers between two looks; times are those of the first thousand that have one. */
export class TrafficWindow {
  readonly #service: string;
  #requests = 0;
  #waited = 0;
  #statuses: Record<string, number> = {};
  #times: number[] = [];

  constructor(service: string) {
    this.#service = service;
  }

  /** One answer. `ms` is left out where it waited on purpose: how long nothing happened is no answer time. */
  add(status: number, ms?: number): void {
    this.#requests += 1;
    const name = `${Math.floor(status / 100)}xx`;
    this.#statuses[name] = (this.#statuses[name] ?? 0) + 1;
    if (ms === undefined) this.#waited += 1;
    else if (this.#times.length < SAMPLES) this.#times.push(ms);
  }

  /** What there was, and begins anew; nothing where nothing was. */
  take(now: Date): Traffic | undefined {
    if (this.#requests === 0) return undefined;
    const times = this.#times.sort((left, right) => left - right);
    const at = (share: number) => Math.round((times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0) * 100) / 100;
    const traffic = {
      service: this.#service,
      at: now.toISOString(),
      counts: { requests: this.#requests, ...(this.#waited > 0 ? { waited: this.#waited } : {}) },
      statuses: this.#statuses,
      latency_ms: { p50: at(0.5), p95: at(0.95), p99: at(0.99) },
    };
    [this.#requests, this.#waited, this.#statuses, this.#times] = [0, 0, {}, []];
    return traffic;
  }
}
