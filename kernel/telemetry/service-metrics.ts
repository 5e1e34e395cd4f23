import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Logger, type MetricDef, TrafficWindow } from '@platform/sdk';
import { BUCKETS, DeclaredMetrics } from './declared-metrics.ts';
import { metricsOf } from './otlp/otlp-metrics.ts';

/** Figures of the process itself, once however many services run in it: event loop, heap, collections, descriptors. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

/**
 * What operators see of one service: how long its routes take, how they end, and gauges read when somebody asks (Prometheus text format
 * 0.0.4).
 */
export class ServiceMetrics {
  readonly #registry = new Registry();
  readonly #durations: Histogram<'service' | 'operation' | 'status'>;
  readonly #refusals: Counter<'service' | 'code'>;
  readonly #service: string;
  #requests = 0;
  #serverErrors = 0;
  /** Between two tellings to the statistics. */
  readonly traffic: TrafficWindow;
  /** Those of the contract. */
  readonly declared: DeclaredMetrics;

  constructor(service: string, metrics: Readonly<Record<string, MetricDef>>, log: Logger) {
    this.#service = service;
    this.declared = new DeclaredMetrics(service, metrics, log);
    this.traffic = new TrafficWindow(service);
    this.#durations = new Histogram({
      name: 'platform_request_duration_seconds',
      help: 'Time from a request to its answer, by route and class of status',
      labelNames: ['service', 'operation', 'status'],
      buckets: [...BUCKETS],
      registers: [this.#registry],
    });
    this.#refusals = new Counter({
      name: 'platform_refusals_total',
      help: 'Refusals by their code',
      labelNames: ['service', 'code'],
      registers: [this.#registry],
    });
  }

  /** One answered request. `operation` is the route's name: paths carry ids. One that `waited` on purpose has no answer time. */
  answered(operation: string, status: number, seconds: number, { waited = false } = {}): void {
    this.#requests += 1;
    if (status >= 500 && status !== 503) this.#serverErrors += 1;
    this.#durations.observe({ service: this.#service, operation, status: `${Math.floor(status / 100)}xx` }, seconds);
    this.traffic.add(status, waited ? undefined : seconds * 1_000);
  }

  /** How many were answered, and how many of them as an error of ours; 503 says that nothing was tried. */
  get totals(): { readonly requests: number; readonly server_errors: number } {
    return { requests: this.#requests, server_errors: this.#serverErrors };
  }

  /** One refusal; codes are declared, so there are few. */
  refused(code: string): void {
    this.#refusals.inc({ service: this.#service, code });
  }

  /** Everything, with gauges as they are now. */
  async text(gauges: Readonly<Record<string, number>>): Promise<string> {
    return this.#with(gauges).metrics();
  }

  /** The same as OTLP's JSON has it. */
  async otlp(gauges: Readonly<Record<string, number>>): Promise<object[]> {
    return metricsOf(this.#with(gauges), performance.timeOrigin, Date.now());
  }

  #with(gauges: Readonly<Record<string, number>>): Registry {
    const now = new Registry();
    for (const [name, value] of Object.entries(gauges)) {
      const wireName = `platform_${this.#service}_${name.replaceAll(/[^a-z0-9_]/g, '_')}`;
      // A declared one says more.
      if (this.declared.registry.getSingleMetric(wireName)) continue;
      const gauge = new Gauge({ name: wireName, help: name.replaceAll('_', ' '), registers: [now] });
      gauge.set(value);
    }
    return Registry.merge([ofProcess, this.#registry, this.declared.registry, now]);
  }
}
