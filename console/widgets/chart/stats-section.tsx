import { useEffect, useState } from 'react';
import type { StatsSection as Definition } from '../../api/page-def.ts';
import { historyOf, SparkLine } from './spark-line.tsx';
import { formatted } from '../value/format.ts';
import { usePageHost } from '../page/page-host.ts';
import { LoadedView } from '../page/page-state.tsx';
import { valueAt } from '../page/path.ts';
import { useSource } from '../page/use-source.ts';

export function StatsSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const loaded = useSource(section.source);
  return (
    <section className="stats-section" aria-label={title ?? 'Figures'}>
      {title && <h2 className="section-title">{title}</h2>}
      <LoadedView of={loaded}>{data => <Figures items={section.items} data={data} />}</LoadedView>
    </section>
  );
}

const READINGS = 60;

function Figures({ items, data }: { items: Definition['items']; data: unknown }) {
  const [readings, setReadings] = useState<readonly unknown[]>([]);
  const host = usePageHost();
  useEffect(() => setReadings(before => [...before.slice(1 - READINGS), data]), [data]);
  return (
    <dl className="stats">
      {items.map(({ label, value, format, tone, trend, history, link }) => (
        <div key={label} className="figure-card" data-tone={tone}>
          <dt>{link ? <a href={host.href(link, { row: data, params: host.params })}>{label}</a> : label}</dt>
          <dd>
            <span className="figure">{formatted(valueAt(data, value), format ?? 'text')}</span>
            {trend && <Trend value={valueAt(data, trend)} />}
            {history && (
              <SparkLine
                values={historyOf(
                  history,
                  readings.map(reading => Number(valueAt(reading, value))),
                )}
              />
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A difference as a signed number, or a history as a small line. */
function Trend({ value }: { value: unknown }) {
  if (typeof value === 'number')
    return (
      <span className="trend">
        {value > 0 ? '+' : ''}
        {formatted(value, 'number')}
      </span>
    );
  return Array.isArray(value) ? <SparkLine values={value.map(Number)} /> : null;
}
