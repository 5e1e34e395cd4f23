import { type Manifest, wireNameOf } from '@platform/sdk';
import type { AddFinding } from './finding.ts';

const NAME = /^[a-z][a-z0-9_]{0,62}$/;
/** Endings that the exposition format gives by itself. */
const ENDING = /_(total|count|sum|bucket|info|created)$/;
const UNIT = /^[a-z][a-z_]{0,30}$/;
const TAKEN = new Set(['le', 'quantile', 'service']);
const MOST = 50;
const MOST_LABELS = 4;
const MOST_BUCKETS = 30;

/** Checks the metrics of a contract: names that every collector reads, and labels that can stay few. */
export function checkMetrics(manifest: Manifest, add: AddFinding): void {
  const metrics = Object.entries(manifest.metrics ?? {});
  if (metrics.length > MOST)
    add('E047', 'metrics', `${metrics.length} metrics are more than anybody reads.`, `Keep at most ${MOST}; tell cases apart by a label.`);
  const wireNames = new Set<string>();
  for (const [name, def] of metrics) {
    const where = `metrics.${name}`;
    const { kind, help, unit, labels = [], buckets } = def;
    if (!['counter', 'gauge', 'histogram'].includes(kind))
      add('E047', `${where}.kind`, `'${String(kind)}' is no kind of metric.`, 'Declare it with counter, gauge or histogram.');
    if (!NAME.test(name))
      add('E047', where, `"${name}" is no name of a metric.`, 'Use a-z, 0-9 and _, starting with a letter, such as loans_open.');
    else if (ENDING.test(name))
      add('E047', where, `The ending of "${name}" is given by the format.`, 'Leave the ending out: a counter gets _total by itself.');
    if (!help) add('E047', `${where}.help`, 'Nothing says what it counts.', 'Say it in a few words.');
    if (unit !== undefined && !UNIT.test(unit))
      add('E047', `${where}.unit`, `"${unit}" is no unit.`, 'Use a base unit in the plural, such as seconds or bytes.');
    if (labels.length > MOST_LABELS || new Set(labels).size < labels.length)
      add('E047', `${where}.labels`, 'Too many labels, or one twice.', `Use at most ${MOST_LABELS}, each once.`);
    for (const label of labels)
      if (!NAME.test(label) || label.startsWith('__') || TAKEN.has(label))
        add('E047', `${where}.labels`, `"${label}" is no label, or taken.`, 'Use a-z, 0-9 and _, starting with a letter.');
    const rising = (buckets ?? [1]).every(
      (bound, index, all) => Number.isFinite(bound) && (index === 0 || bound > (all[index - 1] as number)),
    );
    if (buckets !== undefined && (kind !== 'histogram' || buckets.length === 0 || buckets.length > MOST_BUCKETS || !rising))
      add(
        'E047',
        `${where}.buckets`,
        'Buckets are the ascending upper bounds of a histogram.',
        `Write 1 to ${MOST_BUCKETS} numbers, each larger than the one before.`,
      );
    const wireName = wireNameOf(manifest.id, name, def);
    if (wireNames.has(wireName)) add('E047', where, `Another metric is called ${wireName} as well.`, 'Rename one of them.');
    wireNames.add(wireName);
  }
}
