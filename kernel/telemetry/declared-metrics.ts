import { type Logger, type MetricDef, wireNameOf } from '@platform/sdk';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string>>;
type Instrument = Readonly<Record<'add' | 'set' | 'record', (value: number, labels?: Labels) => void>>;

/** Seconds; from what a cached read takes to where somebody gives up. */
export const BUCKETS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Combinations of label values that a metric is read by; any other counts as `other`. A collector pays for each. */
const MOST_SERIES = 100;
const LONGEST_VALUE = 100;
const OTHER = 'other';

/** The metrics that a contract declares: what its plugin tells, bounded, for everybody who reads figures of the service. */
export class DeclaredMetrics {
  readonly registry = new Registry();
  /** By the name in the contract; given to the plugin as `ctx.metrics`. */
  readonly instruments: Readonly<Record<string, Instrument>>;
  readonly #prefix: string;

  constructor(service: string, declared: Readonly<Record<string, MetricDef>>, log: Logger) {
    this.#prefix = prefixOf(service);
    const made = Object.entries(declared).map(([name, def]) => [name, this.#made(service, name, def, log)] as const);
    const known: Record<string, Instrument> = Object.fromEntries(made);
    this.instruments = new Proxy(known, {
      get: (_, name) => {
        if (typeof name === 'string' && !Object.hasOwn(known, name)) throw new Error(`${service} does not declare the metric ${name}`);
        return known[name as string];
      },
    });
  }

  /** What JSON says of them: a series by what collectors call it, without the service before it. */
  async figures(): Promise<Record<string, number>> {
    const figures: Record<string, number> = {};
    for (const { name, values } of await this.registry.getMetricsAsJSON()) {
      for (const { value, labels, metricName = name } of values as readonly { value: number; labels: Labels; metricName?: string }[]) {
        if (metricName.endsWith('_bucket') && 'le' in labels) continue;
        const by = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
        figures[`${metricName.slice(this.#prefix.length)}${by.length > 0 ? `{${by.join(',')}}` : ''}`] = value;
      }
    }
    return figures;
  }

  #made(service: string, name: string, def: MetricDef, log: Logger): Instrument {
    const { kind, help, labels = [], buckets = BUCKETS } = def;
    const wireName = wireNameOf(service, name, def);
    const options = { name: wireName, help, labelNames: [...labels], registers: [this.registry] };
    const bounded = bound(name, labels, log);
    const refuse = (): never => {
      throw new Error(`the metric ${name} of ${service} is a ${kind}`);
    };
    const kinds = { add: refuse, set: refuse, record: refuse };
    if (kind === 'counter') {
      const made = new Counter(options);
      return { ...kinds, add: (amount, given) => made.inc(bounded(given), amount) };
    }
    if (kind === 'gauge') {
      const made = new Gauge(options);
      return { ...kinds, set: (value, given) => made.set(bounded(given), value) };
    }
    const made = new Histogram({ ...options, buckets: [...buckets] });
    return { ...kinds, record: (value, given) => made.observe(bounded(given), value) };
  }
}

const prefixOf = (service: string): string => `platform_${service}_`;

/** Holds a metric to the labels it declares, and to so many combinations of their values. */
function bound(name: string, declared: readonly string[], log: Logger): (given?: Labels) => Record<string, string> {
  const seen = new Set<string>();
  let told = false;
  return (given = {}) => {
    const wrong = [
      ...Object.keys(given).filter(label => !declared.includes(label)),
      ...declared.filter(label => typeof given[label] !== 'string'),
    ];
    if (wrong.length > 0)
      throw new Error(
        `the metric ${name} has the labels ${declared.join(', ') || '(none)'}, each a text: ${wrong.join(', ')} does not fit`,
      );
    const values = Object.fromEntries(declared.map(label => [label, (given[label] as string).slice(0, LONGEST_VALUE)]));
    const series = JSON.stringify(values);
    if (seen.has(series)) return values;
    if (seen.size < MOST_SERIES) {
      seen.add(series);
      return values;
    }
    if (!told)
      log.warn(
        { metric: name, labels: declared, code: 'metric_series_full' },
        `a metric has more than ${MOST_SERIES} combinations of label values; further ones count as '${OTHER}'`,
      );
    told = true;
    return Object.fromEntries(declared.map(label => [label, OTHER]));
  };
}
