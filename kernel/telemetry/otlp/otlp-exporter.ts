import type { Logger } from '@platform/sdk';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';

export interface OtlpOptions {
  /** Base URL; signals go to `/v1/traces` and `/v1/metrics` below it (OTLP/HTTP 1.3). */
  readonly endpoint: string;
  /** Further headers, such as a credential of the collector. */
  readonly headers: Readonly<Record<string, string>>;
  /** What every record is about: service, build, process. */
  readonly resource: Readonly<Record<string, string>>;
  readonly log: Logger;
  readonly clock: Clock;
}
/** One finished span as OTLP's JSON has it. */
export type SpanRecord = Readonly<Record<string, unknown>>;
/** Reads metrics as OTLP's JSON has them, by the service they are of. */
export type MetricSource = () => Promise<readonly object[]>;

const FLUSH_MS = 5_000;
const METRICS_MS = 15_000;
const MOST_WAITING = 4_096;
const BATCH = 512;
const TIMEOUT_MS = 10_000;

/**
 * Sends finished spans and metrics to a collector. What a collector does not take is dropped and counted: telemetry never holds up or
 * breaks what it tells of. Loaded only when `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
 */
export class OtlpExporter implements AsyncDisposable {
  readonly #options: OtlpOptions;
  readonly #dispatcher: Dispatcher;
  readonly #waiting: SpanRecord[] = [];
  readonly #sources = new Set<MetricSource>();
  readonly #timers: Disposable[];
  #sending: Promise<void> = Promise.resolve();
  #failing = false;
  dropped = 0;

  constructor(options: OtlpOptions, dispatcher: Dispatcher) {
    this.#options = options;
    this.#dispatcher = dispatcher;
    this.#timers = [options.clock.every(FLUSH_MS, () => this.flush()), options.clock.every(METRICS_MS, () => this.#sendMetrics())];
  }

  take(span: SpanRecord): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#waiting.shift();
      this.dropped += 1;
    }
    this.#waiting.push(span);
  }

  /** Metrics of one service, until what is answered is disposed. */
  measure(source: MetricSource): Disposable {
    this.#sources.add(source);
    return { [Symbol.dispose]: () => void this.#sources.delete(source) };
  }

  /** Sends what waits; resolves when the collector has answered. */
  flush(): Promise<void> {
    this.#sending = this.#sending.then(() => this.#sendSpans());
    return this.#sending;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) timer[Symbol.dispose]();
    await this.flush();
    await this.#sendMetrics();
    await this.#dispatcher.close();
  }

  async #sendSpans(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, BATCH);
      const sent = await this.#post('/v1/traces', {
        resourceSpans: [{ resource: this.#resource(), scopeSpans: [{ scope: { name: 'platform' }, spans }] }],
      });
      if (!sent) {
        this.dropped += spans.length;
        return;
      }
    }
  }

  async #sendMetrics(): Promise<void> {
    const metrics = (await Promise.all([...this.#sources].map(source => source().catch(() => [])))).flat();
    if (metrics.length > 0)
      await this.#post('/v1/metrics', {
        resourceMetrics: [{ resource: this.#resource(), scopeMetrics: [{ scope: { name: 'platform' }, metrics }] }],
      });
  }

  #resource(): object {
    return { attributes: attributesOf(this.#options.resource) };
  }

  async #post(path: string, body: object): Promise<boolean> {
    const { endpoint, headers, log } = this.#options;
    try {
      const url = new URL(endpoint.replace(/\/$/, '') + path);
      const response = await this.#dispatcher.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
      });
      await response.body.dump();
      if (response.statusCode >= 300) throw new Error(`the collector answered ${response.statusCode}`);
      this.#failing = false;
      return true;
    } catch (error) {
      // One line for an outage, not one for every batch.
      if (!this.#failing) log.warn({ err: error, dropped: this.dropped }, 'telemetry does not reach its collector');
      this.#failing = true;
      return false;
    }
  }
}

/** Members as OTLP's JSON has them. */
export function attributesOf(members: Readonly<Record<string, unknown>>): object[] {
  return Object.entries(members).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: unknown): object {
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { stringValue: String(value) };
}
