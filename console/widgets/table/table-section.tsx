import { useMemo, useState } from 'react';
import type { Action, Field, TableSection as Definition } from '../../api/page-def.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { useConsole } from '../../shell/console-context.ts';
import { ActionButton } from '../action-button.tsx';
import { Card } from '../card.tsx';
import { historyOf, SparkLine } from '../chart/spark-line.tsx';
import { holds } from '../page/condition.ts';
import { FilterBar } from './filter-bar.tsx';
import { usePageHost } from '../page/page-host.ts';
import { Empty, LoadedView } from '../page/page-state.tsx';
import { valueAt } from '../page/path.ts';
import { RowActions } from './row-actions.tsx';
import { RowDetail } from './row-detail.tsx';
import { itemsOf, nextCursorOf } from '../page/source-items.ts';
import { TableFoot } from './table-foot.tsx';
import { useChangedRows } from './use-changed-rows.ts';
import { useRowReadings } from './use-row-readings.ts';
import { useSource } from '../page/use-source.ts';
import { isNumeric, Value } from '../value/value.tsx';

const PAGE = 50;
const NO_FILTERS: readonly Field[] = [];

export function TableSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const host = usePageHost();
  const { notify } = useConsole();
  const [filter, setFilter] = useState<Record<string, string>>({});
  const [size, setSize] = useState(PAGE);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [added, setAdded] = useState<{ to: unknown; rows: readonly unknown[]; cursor: string | undefined }>();
  const [busy, setBusy] = useState(false);
  const { source, row_key, columns, row_actions = [], bulk_actions = [], row_detail = [] } = section;
  const ends = row_actions.length + row_detail.length > 0;
  const loaded = useSource(source, { ...filter, ...(source.paged ? { limit: size } : {}) });

  const keyOf = (row: unknown) => String(valueAt(row, row_key));
  const more = added?.to === loaded.data ? added : undefined;
  const rows = useMemo(() => [...itemsOf(loaded.data, source), ...(more?.rows ?? [])], [loaded.data, more, source]);
  const cursor = source.paged ? (more ? more.cursor : nextCursorOf(loaded.data)) : undefined;
  const changed = useChangedRows(loaded.data === undefined ? undefined : rows, keyOf, JSON.stringify(filter));
  const readings = useRowReadings(
    rows,
    keyOf,
    columns.flatMap(({ history, value }) => (history ? [value] : [])),
  );
  const picked = rows.filter(row => chosen.has(keyOf(row)));
  const bulk = bulk_actions.filter(host.may);

  const loadMore = async () => {
    setBusy(true);
    try {
      const answer = await host.read(source, { ...filter, limit: PAGE, cursor });
      setAdded({ to: loaded.data, rows: [...(more?.rows ?? []), ...itemsOf(answer, source)], cursor: nextCursorOf(answer) });
    } catch (error) {
      notify(Problem.of(error).message, 'bad');
    } finally {
      setBusy(false);
    }
  };
  const runOn = async (action: Action): Promise<string> => {
    const failures: Problem[] = [];
    for (const row of picked) {
      await host.run({ ...action }, { row, params: host.params }).catch(error => failures.push(Problem.of(error)));
    }
    setChosen(new Set());
    if (failures[0] && failures.length === picked.length) throw failures[0];
    const done = `${action.label}: ${picked.length - failures.length} of ${picked.length} done`;
    return failures[0] ? `${done}. ${failures[0].message}` : done;
  };
  const toggle = (key: string, on: boolean) =>
    setChosen(before => {
      const after = new Set(before);
      if (on) after.add(key);
      else after.delete(key);
      return after;
    });

  return (
    <Card
      title={title}
      flush
      actions={
        picked.length > 0 && (
          <>
            <span className="sub">{picked.length} selected</span>
            {bulk.map(action => (
              <ActionButton key={action.id} action={action} scope={{ params: host.params }} runAll={() => runOn(action)} />
            ))}
          </>
        )
      }
    >
      {section.filters && section.filters.length > 0 && (
        <FilterBar
          fields={section.filters ?? NO_FILTERS}
          change={next => {
            setSize(PAGE);
            setFilter(next);
          }}
        />
      )}
      <LoadedView of={loaded}>
        {() =>
          rows.length === 0 ? (
            <Empty title={Object.keys(filter).length ? 'Nothing matches these filters' : (section.empty ?? 'Nothing here yet')} />
          ) : (
            <>
              <div className="table-wrap">
                <table className="table">
                  {title && <caption className="hidden">{title}</caption>}
                  <thead>
                    <tr>
                      {bulk.length > 0 && (
                        <th className="pick">
                          <input
                            type="checkbox"
                            aria-label="Select all rows"
                            checked={picked.length === rows.length}
                            onChange={event => setChosen(new Set(event.target.checked ? rows.map(keyOf) : []))}
                          />
                        </th>
                      )}
                      {columns.map(({ label, format }) => (
                        <th key={label} scope="col" className={isNumeric(format) ? 'num' : undefined}>
                          {label}
                        </th>
                      ))}
                      {ends && (
                        <th scope="col" className="act">
                          <span className="hidden">Actions</span>
                        </th>
                      )}
                    </tr>
                  </thead>
                  <tbody>
                    {rows.map(row => {
                      const key = keyOf(row);
                      return (
                        <tr key={key} data-changed={changed.has(key) || undefined}>
                          {bulk.length > 0 && (
                            <td className="pick">
                              <input
                                type="checkbox"
                                aria-label={`Select ${String(valueAt(row, columns[0]?.value ?? row_key))}`}
                                checked={chosen.has(key)}
                                onChange={event => toggle(key, event.target.checked)}
                              />
                            </td>
                          )}
                          {columns.map(({ label, value, format, tone_map, link, history }) => {
                            const shown = <Value value={valueAt(row, value)} format={format} tones={tone_map} />;
                            return (
                              <td key={label} data-label={label} className={isNumeric(format) ? 'num' : undefined}>
                                {link ? <a href={host.href(link, { row, params: host.params })}>{shown}</a> : shown}
                                {history && <SparkLine values={historyOf(history, readings(key, value))} />}
                              </td>
                            );
                          })}
                          {ends && (
                            <td className="act">
                              <RowActions
                                actions={row_actions.filter(({ when }) => holds(when, row)).filter(host.may)}
                                scope={{ row, params: host.params }}
                              >
                                {row_detail.length > 0 && <RowDetail row={row} fields={row_detail} />}
                              </RowActions>
                            </td>
                          )}
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </div>
              <TableFoot count={rows.length} noun="row" more={cursor !== undefined} busy={busy} onMore={loadMore} />
            </>
          )
        }
      </LoadedView>
    </Card>
  );
}
