import { useState } from 'react';
import type { Action, Field, TableSection as Definition } from '../../api/page-def.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { ActionButton } from '../action-button.tsx';
import { Card } from '../card.tsx';
import { FilterBar } from './filter-bar.tsx';
import { usePageHost } from '../page/page-host.ts';
import { Empty, LoadedView } from '../page/page-state.tsx';
import { valueAt } from '../page/path.ts';
import { SortChoice } from './sort.tsx';
import { TableFoot } from './table-foot.tsx';
import { TableRows } from './table-rows.tsx';
import { useChangedRows } from './use-changed-rows.ts';
import { useRowReadings } from './use-row-readings.ts';
import { useTablePage } from './use-table-page.ts';

const NO_FILTERS: readonly Field[] = [];

export function TableSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const host = usePageHost();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const { source, row_key, columns, bulk_actions = [] } = section;
  const { loaded, rows, filter, setFilter, sort, setSort, foot } = useTablePage(source);

  const keyOf = (row: unknown) => String(valueAt(row, row_key));
  const changed = useChangedRows(loaded.data === undefined ? undefined : rows, keyOf, JSON.stringify([filter, sort]));
  const readings = useRowReadings(
    rows,
    keyOf,
    columns.flatMap(({ history, value }) => (history ? [value] : [])),
  );
  const picked = rows.filter(row => chosen.has(keyOf(row)));
  const bulk = bulk_actions.filter(host.may);

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
      {section.filters && section.filters.length > 0 && <FilterBar fields={section.filters ?? NO_FILTERS} change={setFilter} />}
      <SortChoice section={section} sorting={sort} sortBy={setSort} />
      <LoadedView of={loaded}>
        {() =>
          rows.length === 0 ? (
            <Empty title={Object.keys(filter).length ? 'Nothing matches these filters' : (section.empty ?? 'Nothing here yet')} />
          ) : (
            <>
              <div className="table-wrap">
                <TableRows
                  title={title}
                  section={section}
                  rows={rows}
                  choice={bulk.length > 0 ? { keys: chosen, choose: setChosen } : undefined}
                  changed={changed}
                  keyOf={keyOf}
                  readings={readings}
                  sorting={sort}
                  sortBy={setSort}
                />
              </div>
              <TableFoot {...foot} />
            </>
          )
        }
      </LoadedView>
    </Card>
  );
}
