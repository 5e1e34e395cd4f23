import { errorsOf, type KeyValue, type Logger, readTraffic } from '@platform/sdk';

const COUNTERS = ['stat:metrics', 'stat:metrics:tls'];
const DAY_OVER = 'stat:rollups:day';
const DAY_MS = 24 * 3_600_000;
const MOST_SERVICES = 500;
/** A day that nobody summed up is given up: the one before yesterday is over for everybody. */
const MOST_DAYS = 2;

interface Counted {
  requests: number;
  errors: number;
}

/**
 * What each service of the fleet answered today, from the counters that all of them share (SUP-110). A day begins anew when the statistics
 * have summed it up; what came after midnight and before that stays.
 */
export class DayTraffic {
  readonly #days = new Map<number, Map<string, Counted>>();
  readonly #log: Logger;
  readonly #now: () => Date;

  constructor(log: Logger, now: () => Date) {
    this.#log = log;
    this.#now = now;
  }

  async listen(kv: KeyValue): Promise<AsyncDisposable[]> {
    const counters = await Promise.all(COUNTERS.map(channel => kv.subscribe(channel, message => this.take(message))));
    return [...counters, await kv.subscribe(DAY_OVER, message => this.reset(message))];
  }

  /** Adds what a process flushed (G-STAT-04); anything else is left out. */
  take(message: string): void {
    const flush = readTraffic(message);
    const at = flush ? Date.parse(flush.at) : 0;
    // Of another time, or no flush at all: a clock that is wrong must not push out the days there are.
    if (!flush || Math.abs(this.#now().getTime() - at) > MOST_DAYS * DAY_MS)
      return this.#log.debug({ size: message.length }, 'a flush of counters was left out');
    const day = this.#day(Math.floor(at / DAY_MS));
    if (!day || (!day.has(flush.service) && day.size >= MOST_SERVICES)) return;
    const counted = day.get(flush.service) ?? { requests: 0, errors: 0 };
    counted.requests += flush.counts.requests;
    counted.errors += errorsOf(flush);
    day.set(flush.service, counted);
  }

  /** A service's day was summed up: its counters of that day, and of those before, begin anew. */
  reset(message: string): void {
    const over = readTraffic(message);
    if (!over) return;
    const last = Math.floor(Date.parse(over.at) / DAY_MS);
    for (const [day, services] of this.#days) if (day <= last) services.delete(over.service);
  }

  of(service: string): Readonly<Counted> {
    const counted = [...this.#days.values()].flatMap(services => services.get(service) ?? []);
    return {
      requests: counted.reduce((sum, { requests }) => sum + requests, 0),
      errors: counted.reduce((sum, { errors }) => sum + errors, 0),
    };
  }

  #day(number: number): Map<string, Counted> | undefined {
    const found = this.#days.get(number);
    if (found) return found;
    const kept = [...this.#days.keys(), number].sort((left, right) => right - left).slice(0, MOST_DAYS);
    for (const day of this.#days.keys()) if (!kept.includes(day)) this.#days.delete(day);
    if (!kept.includes(number)) return undefined;
    const day = new Map<string, Counted>();
    this.#days.set(number, day);
    return day;
  }
}
