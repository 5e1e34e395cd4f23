/** One measured thing, with its limit where the requirement gives one. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: number;
  /** The least it must reach, where more is better. */
  readonly atLeast?: number;
  /** What it stands beside in the same run. */
  readonly peer?: { readonly name: string; readonly value: number };
  /** How many times that it must at least be. */
  readonly timesPeer?: number;
  /** How many times that it may at most be. */
  readonly atMostTimesPeer?: number;
  readonly note?: string;
}

/** How much is measured: what ends in a minute, or what the requirement speaks of. */
export type Size = 'short' | 'long';
/** A bench says each of its rows as soon as it knows it. */
export type Suite = (size: Size) => AsyncIterable<Row>;

export const median = (values: readonly number[]): number =>
  [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;

/** The value that a share of all values does not exceed. */
export const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((left, right) => left - right)[Math.ceil(values.length * share) - 1] ?? Number.NaN;

const ROUNDS = 7;
type Clock = () => number;
const elapsed: Clock = () => performance.now() * 1_000;
/** Of this thread alone: neither what the collector and the compiler do beside it, nor what other processes take. */
export const threadCpu: Clock = () => {
  const { user, system } = process.threadCpuUsage();
  return user + system;
};

/** Microseconds per call, of elapsed time unless told otherwise: several rounds of `count`, the median round; the first one warms up. */
export async function microseconds(count: number, work: () => unknown, clock: Clock = elapsed): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const start = clock();
    for (let turn = 0; turn < count; turn++) {
      const result = work();
      if (result instanceof Promise) await result;
    }
    if (round > 0) times.push((clock() - start) / count);
  }
  return median(times);
}

const round = (value: number) => (value >= 100 ? Math.round(value).toString() : value.toPrecision(3));

function columns({
  name,
  value,
  unit,
  limit,
  atLeast,
  peer,
  timesPeer,
  atMostTimesPeer,
  note,
}: Row): readonly [name: string, measured: string, bounds: string, held: string, beside: string, note: string] {
  const bounds: [said: string, holds: boolean][] = [
    ...(limit === undefined ? [] : [[`${limit} ${unit}`, value <= limit] as [string, boolean]]),
    ...(atLeast === undefined ? [] : [[`≥ ${atLeast} ${unit}`, value >= atLeast] as [string, boolean]]),
    ...(timesPeer === undefined || !peer ? [] : [[`≥ ${timesPeer} × beside`, value >= timesPeer * peer.value] as [string, boolean]]),
    ...(atMostTimesPeer === undefined || !peer
      ? []
      : [[`≤ ${atMostTimesPeer} × beside`, value <= atMostTimesPeer * peer.value] as [string, boolean]]),
  ];
  const held = bounds.length === 0 ? '' : bounds.every(([, holds]) => holds) ? 'held' : 'MISSED';
  const beside = peer ? `${peer.name}: ${round(peer.value)} ${unit} (×${round(value / peer.value)})` : '';
  return [name, `${round(value)} ${unit}`, bounds.map(([said]) => said).join(', '), held, beside, note ?? ''];
}

/** One row as it comes. */
export function line(row: Row): string {
  const [name, measured, bounds, held, beside] = columns(row);
  return `  ${measured.padStart(16)}  ${name}${bounds ? `   ${bounds} ${held}` : ''}${beside ? `   ${beside}` : ''}`;
}

/** A table a person reads. */
export function table(rows: readonly Row[]): string {
  return [
    '| Row | Measured | At most | | Beside | Note |',
    '|---|---|---|---|---|---|',
    ...rows.map(row => `| ${columns(row).join(' | ')} |`),
  ].join('\n');
}
