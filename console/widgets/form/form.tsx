import { type ReactNode, useRef, useState } from 'react';
import type { Field } from '../../api/page-def.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { FieldControl } from './field-control.tsx';
import { FormAlert } from './form-alert.tsx';
import { type Draft, draftOf, type Faults, faultsOf, valuesOf, visibleFields } from './form-values.ts';
import { useFieldOptions } from './use-field-options.ts';

interface FormProps {
  fields: readonly Field[];
  initial?: unknown;
  submitLabel: string;
  tone?: string | undefined;
  /** Other buttons of the form, given the values. */
  more?: ReactNode;
  /** Hears the values as they stand, half-filled or not. */
  change?: (values: Record<string, unknown>) => void;
  submit(values: Record<string, unknown>): Promise<void>;
}

/** Fields to a body: checked here first, then by the service, whose findings return to the fields they name. */
export function Form({ fields, initial, submitLabel, tone, more, change, submit }: FormProps) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(fields, initial));
  const [faults, setFaults] = useState<Faults>({});
  const [failure, setFailure] = useState<{ problem: Problem; rest: string[] }>();
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const options = useFieldOptions(fields);

  const show = (found: Faults) => {
    setFaults(found);
    const first = fields.find(({ name }) => found[name]);
    if (first) requestAnimationFrame(() => form.current?.querySelector<HTMLElement>(`[name="${CSS.escape(first.name)}"]`)?.focus());
  };

  const send = async (event: React.FormEvent) => {
    event.preventDefault();
    setFailure(undefined);
    const { values, faults: found } = valuesOf(fields, draft);
    show(found);
    if (Object.keys(found).length > 0) return;
    setBusy(true);
    try {
      await submit(values);
    } catch (error) {
      const problem = Problem.of(error);
      const sorted = faultsOf(problem, fields);
      show(sorted.faults);
      if (Object.keys(sorted.faults).length === 0 || sorted.rest.length > 0) setFailure({ problem, rest: sorted.rest });
    } finally {
      setBusy(false);
    }
  };

  return (
    <form ref={form} className="stack form" noValidate onSubmit={send}>
      {visibleFields(fields, draft).map(field => (
        <FieldControl
          key={field.name}
          field={field}
          entry={draft[field.name] ?? ''}
          options={options[field.name] ?? field.options ?? []}
          fault={faults[field.name]}
          change={entry => {
            const next = { ...draft, [field.name]: entry };
            setDraft(next);
            change?.(valuesOf(fields, next).values);
            setFaults(({ [field.name]: _gone, ...left }) => left);
          }}
        />
      ))}
      {failure && <FormAlert problem={failure.problem} rest={failure.rest} />}
      <footer className="row end">
        {more}
        <button type="submit" className={`btn ${tone === 'bad' ? 'danger' : 'primary'}`} disabled={busy}>
          {busy ? 'Working…' : submitLabel}
        </button>
      </footer>
    </form>
  );
}
