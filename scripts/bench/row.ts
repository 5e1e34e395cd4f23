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
  readonly note?: string;
}

export const median = (values: readonly number[]): number => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;

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
  const lines = rows.map(({ name, value, unit, limit, atLeast, peer, note }) => {
    const bounded = limit !== undefined || atLeast !== undefined;
    const held = bounded ? (value <= (limit ?? value) && value >= (atLeast ?? value) ? 'held' : 'MISSED') : '';
    const bound = limit !== undefined ? `${limit} ${unit}` : atLeast !== undefined ? `≥ ${atLeast} ${unit}` : '';
    return `| ${name} | ${round(value)} ${unit} | ${bound} | ${held} | ${peer ? `${peer.name}: ${round(peer.value)} ${unit} (×${round(value / peer.value)})` : ''} | ${note ?? ''} |`;
  });
  return ['| Row | Measured | At most | | Beside | Note |', '|---|---|---|---|---|---|', ...lines].join('\n');
}
