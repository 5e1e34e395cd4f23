import type { Registry } from 'prom-client';
import { attributesOf } from './otlp-exporter.ts';

interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
}
interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
}

/** What a registry holds, as OTLP's JSON has it: counters as sums since the start, histograms with their own bounds. */
export async function metricsOf(registry: Registry, startedAtMs: number, nowMs: number): Promise<object[]> {
  const times = { startTimeUnixNano: nano(startedAtMs), timeUnixNano: nano(nowMs) };
  const families = (await registry.getMetricsAsJSON()) as unknown as Family[];
  return families.flatMap(({ name, help, type, values }): object[] => {
    const described = { name, description: help };
    if (type === 'histogram')
      return [
        {
          ...described,
          histogram: { aggregationTemporality: 2, dataPoints: histograms(name, values).map(point => ({ ...times, ...point })) },
        },
      ];
    const dataPoints = values.map(({ value, labels }) => ({ ...times, attributes: attributesOf(labels), asDouble: value }));
    if (dataPoints.length === 0) return [];
    return [
      type === 'counter'
        ? { ...described, sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints } }
        : { ...described, gauge: { dataPoints } },
    ];
  });
}

/** Prometheus counts what is at most each bound; OTLP counts what lies between two. */
function histograms(name: string, values: readonly Sample[]): object[] {
  const series = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  return [...series.entries()].map(([labels, samples]) => {
    const buckets = samples.filter(({ metricName }) => metricName === `${name}_bucket`).toSorted((a, b) => bound(a) - bound(b));
    const cumulative = buckets.map(({ value }) => value);
    return {
      attributes: attributesOf(JSON.parse(labels) as Record<string, unknown>),
      count: String(samples.find(({ metricName }) => metricName === `${name}_count`)?.value ?? 0),
      sum: samples.find(({ metricName }) => metricName === `${name}_sum`)?.value ?? 0,
      explicitBounds: buckets.map(bound).filter(Number.isFinite),
      bucketCounts: cumulative.map((value, index) => String(value - (cumulative[index - 1] ?? 0))),
    };
  });
}

const bound = ({ labels: { le } }: Sample): number => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le));
const nano = (ms: number): string => String(BigInt(Math.round(ms * 1_000)) * 1_000n);
