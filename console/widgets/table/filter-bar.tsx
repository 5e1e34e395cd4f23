import { useEffect, useRef, useState } from 'react';
import type { Field } from '../../api/page-def.ts';
import { FieldControl } from '../form/field-control.tsx';
import { type Draft, draftOf } from '../form/form-values.ts';
import { useFieldOptions } from '../form/use-field-options.ts';

/** Filters apply as they are set; typing waits for a pause. */
export function FilterBar({ fields, change }: { fields: readonly Field[]; change(filter: Record<string, string>): void }) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(fields));
  const options = useFieldOptions(fields);
  const first = useRef(true);
  const apply = useRef(change);
  apply.current = change;

  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(() => apply.current(queryOf(fields, draft)), 300);
    return () => clearTimeout(timer);
  }, [draft, fields]);

  return (
    <form className="filters" role="search" aria-label="Filters" onSubmit={event => event.preventDefault()}>
      {fields.map(field => (
        <FieldControl
          key={field.name}
          field={{ ...field, required: false }}
          entry={draft[field.name] ?? ''}
          blank="Any"
          options={options[field.name] ?? field.options ?? []}
          change={entry => setDraft(before => ({ ...before, [field.name]: entry }))}
        />
      ))}
    </form>
  );
}

function queryOf(fields: readonly Field[], draft: Draft): Record<string, string> {
  const query: Record<string, string> = {};
  for (const { name, type } of fields) {
    const entry = draft[name];
    if (entry === undefined || entry === '' || entry === false) continue;
    const text = Array.isArray(entry) ? entry.join(',') : type === 'datetime' ? new Date(String(entry)).toISOString() : String(entry);
    if (text) query[name] = text;
  }
  return query;
}
