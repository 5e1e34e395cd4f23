const [WIDTH, HEIGHT, MARGIN] = [80, 24, 2];

/** What a figure was, or how it changed, as a small line; nothing while there are fewer than two readings. */
export function SparkLine({ values }: { values: readonly number[] }) {
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const x = (at: number) => (at / (values.length - 1)) * (WIDTH - 2 * MARGIN) + MARGIN;
  const y = (value: number) => HEIGHT - MARGIN - ((value - low) / span) * (HEIGHT - 2 * MARGIN);
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline points={values.map((value, at) => `${x(at)},${y(value)}`).join(' ')} />
    </svg>
  );
}

/** A counter that begins anew has not gone down: its process was started again. */
export const historyOf = (kind: 'value' | 'change', values: readonly number[]): readonly number[] =>
  kind === 'value' ? values : values.slice(1).map((value, index) => Math.max(0, value - (values[index] as number)));
