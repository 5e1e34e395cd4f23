import { counter, gauge, histogram } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ServiceMetrics } from './service-metrics.ts';

const METRICS = {
  decisions: counter('Decisions by \\ and\nlines', { labels: ['outcome'] }),
  open: gauge('Open loans'),
  duration: histogram('How long a decision takes', { unit: 'seconds', buckets: [1, 5], labels: ['by'] }),
};
const warned: object[] = [];
const log = { debug: () => undefined, info: () => undefined, warn: (fields: object) => void warned.push(fields), error: () => undefined };
const made = () => new ServiceMetrics('lending', METRICS, log as never);
/** Every line of the text format 0.0.4: a comment, or a name with labels and a number. */
const LINE =
  /^(# (HELP|TYPE) [a-z_][a-z0-9_]* .*|[a-z_][a-z0-9_]*(\{[a-z_]+="(\\["\\n]|[^"\\\n])*"(,[a-z_]+="(\\["\\n]|[^"\\\n])*")*\})? (-?[0-9.e+-]+|NaN|\+Inf))$/;

test('what a plugin tells is valid text for Prometheus, whatever stands in a label, and the same for a collector', async () => {
  const metrics = made();
  const { decisions, open, duration } = metrics.declared.instruments as Record<
    string,
    Record<string, (value: number, labels?: object) => void>
  >;
  decisions?.['add']?.(2, { outcome: 'a "quoted"\nline \\ of text' });
  open?.['set']?.(7);
  duration?.['record']?.(2, { by: 'rule' });
  const lines = (await metrics.text({ open: 1, pending: 4 }))
    .split('\n')
    .filter(
      line =>
        line.startsWith('platform_lending') || line.startsWith('# HELP platform_lending') || line.startsWith('# TYPE platform_lending'),
    );
  for (const line of lines) expect(line).toMatch(LINE);
  expect(lines).toContain('platform_lending_decisions_total{outcome="a \\"quoted\\"\\nline \\\\ of text"} 2');
  // The declared gauge, not the plain figure of its name.
  expect(lines.filter(line => /^platform_lending_(open|pending) /.test(line))).toEqual([
    'platform_lending_open 7',
    'platform_lending_pending 4',
  ]);
  const sent = (await metrics.otlp({})) as { name: string }[];
  expect(sent.find(({ name }) => name === 'platform_lending_decisions_total')).toMatchObject({
    sum: { isMonotonic: true, dataPoints: [{ asDouble: 2 }] },
  });
  expect(sent.find(({ name }) => name === 'platform_lending_duration_seconds')).toMatchObject({
    histogram: { dataPoints: [{ count: '1', sum: 2, explicitBounds: [1, 5] }] },
  });
});

test('a hundred combinations of label values are kept apart, any further one counts as other, and the log says so once', async () => {
  const { declared } = made();
  warned.length = 0;
  for (let n = 0; n < 150; n++) declared.instruments['decisions']?.add(1, { outcome: `o${n}` });
  declared.instruments['decisions']?.add(1, { outcome: 'o5' });
  const figures = await declared.figures();
  expect(Object.keys(figures).filter(name => name.startsWith('decisions_total{'))).toHaveLength(101);
  expect([figures['decisions_total{outcome="o5"}'], figures['decisions_total{outcome="other"}']]).toEqual([2, 50]);
  expect(warned).toEqual([expect.objectContaining({ metric: 'decisions', code: 'metric_series_full' })]);
});

test('a metric, a label or an act that was not declared is refused', () => {
  const { instruments } = made().declared;
  expect(() => instruments['lost']).toThrow('does not declare the metric lost');
  for (const labels of [undefined, {}, { outcome: 'x', extra: 'y' }, { outcome: 1 }])
    expect(() => instruments['decisions']?.add(1, labels as never)).toThrow('has the labels outcome');
  expect(() => instruments['decisions']?.set(1, { outcome: 'x' })).toThrow('is a counter');
  expect(() => instruments['decisions']?.add(-1, { outcome: 'x' })).toThrow();
});
