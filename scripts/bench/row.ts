/** One measured thing, with its limit where the requirement gives one. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: number;
  /** Which side of the limit is held; `at most` when absent. */
  readonly side?: 'at least';
  /** What it stands beside in the same run. */
  readonly peer?: { readonly name: string; readonly value: number };
  readonly note?: string;
}

export const median = (values: readonly number[]): number => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;

/** The 99th percentile. */
export const p99 = (values: readonly number[]): number => [...values].sort((left, right) => left - right)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;

/** Microseconds per call: several rounds of `count`, the median round; the first one warms up. */
export async function microseconds(count: number, work: () => unknown, rounds = 7): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const start = performance.now();
    for (let turn = 0; turn < count; turn++) {
      const result = work();
      if (result instanceof Promise) await result;
    }
    if (round > 0) times.push(((performance.now() - start) * 1_000) / count);
  }
  return median(times);
}

/** A table a person reads. */
export function table(rows: readonly Row[]): string {
  const round = (value: number) => (value >= 100 ? Math.round(value).toString() : value.toPrecision(3));
  const lines = rows.map(({ name, value, unit, limit, side, peer, note }) => {
    const held = limit === undefined ? '' : (side === 'at least' ? value >= limit : value <= limit) ? 'held' : 'MISSED';
    return `| ${name} | ${round(value)} ${unit} | ${limit === undefined ? '' : `${side ?? 'at most'} ${limit} ${unit}`} | ${held} | ${peer ? `${peer.name}: ${round(peer.value)} ${unit} (×${round(value / peer.value)})` : ''} | ${note ?? ''} |`;
  });
  return ['| Row | Measured | Limit | | Beside | Note |', '|---|---|---|---|---|---|', ...lines].join('\n');
}
