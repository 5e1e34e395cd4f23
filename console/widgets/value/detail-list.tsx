import type { Column } from '../../api/page-def.ts';
import { usePageHost } from '../page/page-host.ts';
import { valueAt } from '../page/path.ts';
import { Value } from './value.tsx';

/** Members of one thing under their labels. */
export function DetailList({ of, fields }: { of: unknown; fields: readonly Column[] }) {
  const host = usePageHost();
  return (
    <dl className="detail">
      {fields.map(({ label, value, format, tone_map, link }) => {
        const found = valueAt(of, value);
        const shown = <Value value={found} format={format} tones={tone_map} />;
        return (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{link && !isNothing(found) ? <a href={host.href(link, { row: of, params: host.params })}>{shown}</a> : shown}</dd>
          </div>
        );
      })}
    </dl>
  );
}

/** What is not there leads nowhere. */
export const isNothing = (value: unknown): boolean => value === undefined || value === null || value === '';
