import type { Column, TableSection as Definition } from '../../api/page-def.ts';
import { isNumeric } from '../value/value.tsx';
import type { Sorting } from './use-table-page.ts';

interface SortProps {
  readonly sorting: Sorting | undefined;
  /** Nothing: as the service orders it. */
  sortBy(sorting: Sorting | undefined): void;
}

/** Up, then down, then as the service orders it. */
export function next(sort: string, sorting: Sorting | undefined): Sorting | undefined {
  if (sorting?.sort !== sort) return { sort, order: 'asc' };
  return sorting.order === 'asc' ? { sort, order: 'desc' } : undefined;
}

/** The head of a column; one that sorts is a button, and says to readers of the screen which way it sorts now. */
export function ColumnHead({ column, sorting, sortBy }: SortProps & { column: Column }) {
  const { label, value, format, sort } = column;
  const order = sorting?.sort === value ? sorting.order : undefined;
  return (
    <th
      scope="col"
      className={isNumeric(format) ? 'num' : undefined}
      {...(sort ? { 'aria-sort': order === 'asc' ? 'ascending' : order === 'desc' ? 'descending' : 'none' } : {})}
    >
      {sort ? (
        <button type="button" className="sort" onClick={() => sortBy(next(value, sorting))}>
          {label}
          <span className="sort-mark" aria-hidden="true">
            {order === 'asc' ? '↑' : order === 'desc' ? '↓' : '↕'}
          </span>
        </button>
      ) : (
        label
      )}
    </th>
  );
}

/** The same as a choice, where rows are cards and there are no heads. */
export function SortChoice({ section, sorting, sortBy }: SortProps & { section: Definition }) {
  const columns = section.columns.filter(({ sort }) => sort);
  if (columns.length === 0) return null;
  const choose = (text: string) => {
    const [order = '', sort = ''] = text.split(' ');
    sortBy(sort ? { sort, order: order as Sorting['order'] } : undefined);
  };
  return (
    <label className="sort-choice">
      <span className="label">Sort by</span>
      <select className="input" value={sorting ? `${sorting.order} ${sorting.sort}` : ''} onChange={event => choose(event.target.value)}>
        <option value="">As listed</option>
        {columns.flatMap(({ label, value }) =>
          (['asc', 'desc'] as const).map(order => (
            <option key={`${order} ${value}`} value={`${order} ${value}`}>
              {label} {order === 'asc' ? '↑' : '↓'}
            </option>
          )),
        )}
      </select>
    </label>
  );
}
