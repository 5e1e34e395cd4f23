/**
 * A figure that operators read beside those every service has. On the wire it is `platform_{service}_{name}`, with its unit, and `_total`
 * for a counter.
 */
export interface MetricDef {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** What it says, for a reader without this contract. */
  readonly help: string;
  /** A base unit in the plural, such as `seconds` or `bytes`. */
  readonly unit?: string;
  /** Names of few values each: never an id, an address or a text somebody wrote. */
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram, ascending; those of a time in seconds when absent. */
  readonly buckets?: readonly number[];
}
type Options = Omit<MetricDef, 'kind' | 'help' | 'buckets'>;

/** Something that only grows: decisions, bytes sent. */
export const counter = <const O extends Options>(
  help: string,
  options: O = {} as O,
): O & { readonly kind: 'counter'; readonly help: string } => ({ kind: 'counter', help, ...options });
/** Something that goes up and down: open loans. */
export const gauge = <const O extends Options>(
  help: string,
  options: O = {} as O,
): O & { readonly kind: 'gauge'; readonly help: string } => ({ kind: 'gauge', help, ...options });
/** How values are spread: durations, sizes. */
export const histogram = <const O extends Options & Pick<MetricDef, 'buckets'>>(
  help: string,
  options: O = {} as O,
): O & { readonly kind: 'histogram'; readonly help: string } => ({
  kind: 'histogram',
  help,
  ...options,
});

/** What collectors call it (Prometheus: Metric and label naming). */
export const wireNameOf = (service: string, name: string, { kind, unit }: MetricDef): string =>
  `platform_${service}_${name}${unit ? `_${unit}` : ''}${kind === 'counter' ? '_total' : ''}`;
