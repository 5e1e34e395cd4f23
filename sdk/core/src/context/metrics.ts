import type { AnyContract } from '../contract/contract.ts';
import type { MetricDef } from '../contract/metric.ts';

type LabelsOf<M> = M extends { labels: readonly (infer L extends string)[] } ? [labels: Readonly<Record<L, string>>] : [];
type Instrument<M> = M extends { kind: 'counter' }
  ? { add(amount: number, ...labels: LabelsOf<M>): void }
  : M extends { kind: 'gauge' }
    ? { set(value: number, ...labels: LabelsOf<M>): void }
    : { record(value: number, ...labels: LabelsOf<M>): void };

/** The metrics of a contract, each with the labels it declares and no others. */
export type MetricsOf<C extends AnyContract> = C['base'] extends { metrics: infer M extends Readonly<Record<string, MetricDef>> }
  ? { readonly [N in keyof M]: Instrument<M[N]> }
  : Readonly<Record<never, never>>;
