import type { Column } from '../../api/page-def.ts';
import { valueAt } from '../page/path.ts';
import { Value } from './value.tsx';

/** Members of one thing under their labels. */
export function DetailList({ of, fields }: { of: unknown; fields: readonly Column[] }) {
  return (
    <dl className="detail">
      {fields.map(({ label, value, format, tone_map }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>
            <Value value={valueAt(of, value)} format={format} tones={tone_map} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
