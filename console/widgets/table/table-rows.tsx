import type { TableSection as Definition } from '../../api/page-def.ts';
import { historyOf, SparkLine } from '../chart/spark-line.tsx';
import { holds } from '../page/condition.ts';
import { usePageHost } from '../page/page-host.ts';
import { valueAt } from '../page/path.ts';
import { isNumeric, Value } from '../value/value.tsx';
import { ColumnHead } from './sort.tsx';
import { RowActions } from './row-actions.tsx';
import { RowDetail } from './row-detail.tsx';
import type { Sorting } from './use-table-page.ts';

/** Which rows are chosen; nothing where a table has no act for several rows at once. */
export interface Choice {
  readonly keys: ReadonlySet<string>;
  choose(keys: ReadonlySet<string>): void;
}

interface Rows {
  readonly section: Definition;
  readonly rows: readonly unknown[];
  readonly choice: Choice | undefined;
  /** Rows that have just changed. */
  readonly changed: ReadonlySet<string>;
  readonly sorting: Sorting | undefined;
  sortBy(sorting: Sorting | undefined): void;
  keyOf(row: unknown): string;
  /** What a column of a row said before. */
  readings(key: string, path: string): readonly number[];
}

const hasEnd = ({ row_actions = [], row_detail = [] }: Definition): boolean => row_actions.length + row_detail.length > 0;

/** The head and the rows of a table, as its section declares them. */
export function TableRows({ title, ...parts }: Rows & { title?: string | undefined }) {
  const { rows, keyOf } = parts;
  return (
    <table className="table">
      {title && <caption className="hidden">{title}</caption>}
      <Head {...parts} />
      <tbody>
        {rows.map(row => (
          <Row key={keyOf(row)} row={row} {...parts} />
        ))}
      </tbody>
    </table>
  );
}

function Head({ section, rows, choice, keyOf, sorting, sortBy }: Rows) {
  const all = () => new Set(rows.map(keyOf));
  return (
    <thead>
      <tr>
        {choice && (
          <th className="pick">
            <input
              type="checkbox"
              aria-label="Select all rows"
              checked={rows.every(row => choice.keys.has(keyOf(row)))}
              onChange={event => choice.choose(event.target.checked ? all() : new Set())}
            />
          </th>
        )}
        {section.columns.map(column => (
          <ColumnHead key={column.label} column={column} sorting={sorting} sortBy={sortBy} />
        ))}
        {hasEnd(section) && (
          <th scope="col" className="act">
            <span className="hidden">Actions</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

function Row({ row, section, choice, changed, keyOf, readings }: Rows & { row: unknown }) {
  const host = usePageHost();
  const { row_key, columns, row_actions = [], row_detail = [] } = section;
  const key = keyOf(row);
  const scope = { row, params: host.params };
  const toggle = (on: boolean) => choice?.choose(new Set([...[...choice.keys].filter(each => each !== key), ...(on ? [key] : [])]));
  return (
    <tr data-changed={changed.has(key) || undefined}>
      {choice && (
        <td className="pick">
          <input
            type="checkbox"
            aria-label={`Select ${String(valueAt(row, columns[0]?.value ?? row_key))}`}
            checked={choice.keys.has(key)}
            onChange={event => toggle(event.target.checked)}
          />
        </td>
      )}
      {columns.map(({ label, value, format, tone_map, link, history }) => {
        const shown = <Value value={valueAt(row, value)} format={format} tones={tone_map} />;
        return (
          <td key={label} data-label={label} className={isNumeric(format) ? 'num' : undefined}>
            {link ? <a href={host.href(link, scope)}>{shown}</a> : shown}
            {history && <SparkLine values={historyOf(history, readings(key, value))} />}
          </td>
        );
      })}
      {hasEnd(section) && (
        <td className="act">
          <RowActions actions={row_actions.filter(({ when }) => holds(when, row)).filter(host.may)} scope={scope}>
            {row_detail.length > 0 && <RowDetail row={row} fields={row_detail} />}
          </RowActions>
        </td>
      )}
    </tr>
  );
}
