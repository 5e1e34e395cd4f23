import { useId } from 'react';
import type { Field } from '../../api/page-def.ts';

type Entry = string | boolean | readonly string[];
export type Option = { value: string; label: string };

interface FieldControlProps {
  field: Field;
  entry: Entry;
  options: readonly Option[];
  fault?: string | undefined;
  /** What an empty choice is called. */
  blank?: string;
  change(entry: Entry): void;
}

/** One labelled control for every field type, with its help and its fault tied to it. */
export function FieldControl({ field, entry, options, fault, blank = 'None', change }: FieldControlProps) {
  const id = useId();
  const helpId = field.help ? `${id}-help` : undefined;
  const faultId = fault ? `${id}-fault` : undefined;
  const common = {
    id,
    name: field.name,
    className: 'input',
    'aria-describedby': [faultId, helpId].filter(Boolean).join(' ') || undefined,
    'aria-invalid': fault ? (true as const) : undefined,
    'aria-required': field.required || undefined,
  };

  if (field.type === 'bool') {
    return (
      <div className="field">
        <label className="check">
          <input
            {...common}
            className=""
            type="checkbox"
            checked={entry === true}
            disabled={field.read_only}
            onChange={event => change(event.target.checked)}
          />
          <span>{field.label}</span>
        </label>
        <Notes field={field} fault={fault} helpId={helpId} faultId={faultId} />
      </div>
    );
  }
  if (field.type === 'multiselect') {
    const chosen = Array.isArray(entry) ? (entry as string[]) : [];
    return (
      <fieldset className="field choices" aria-describedby={common['aria-describedby']}>
        <legend className="label">
          {field.label}
          {field.required && <Required />}
        </legend>
        {options.map(({ value, label }) => (
          <label key={value} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(value)}
              disabled={field.read_only}
              onChange={event => change(event.target.checked ? [...chosen, value] : chosen.filter(each => each !== value))}
            />
            <span>{label}</span>
          </label>
        ))}
        {options.length === 0 && <p className="sub">There is nothing to choose from.</p>}
        <Notes field={field} fault={fault} helpId={helpId} faultId={faultId} />
      </fieldset>
    );
  }
  return (
    <div className="field">
      <label className="label" htmlFor={id}>
        {field.label}
        {field.required && <Required />}
      </label>
      <Control field={field} entry={String(entry)} options={options} common={common} blank={blank} change={change} />
      <Notes field={field} fault={fault} helpId={helpId} faultId={faultId} />
    </div>
  );
}

function Required() {
  return (
    <span className="required" title="Required" aria-hidden="true">
      {' '}
      *
    </span>
  );
}

function Notes({
  field,
  fault,
  helpId,
  faultId,
}: {
  field: Field;
  fault: string | undefined;
  helpId: string | undefined;
  faultId: string | undefined;
}) {
  return (
    <>
      {fault && (
        <p id={faultId} className="fault">
          {fault}
        </p>
      )}
      {field.help && (
        <p id={helpId} className="sub">
          {field.help}
        </p>
      )}
    </>
  );
}

interface ControlProps {
  field: Field;
  entry: string;
  options: readonly Option[];
  common: { id: string; name: string; className: string };
  blank: string;
  change(entry: string): void;
}

function Control({ field, entry, options, common, blank, change }: ControlProps) {
  const read = { readOnly: field.read_only ?? false };
  switch (field.type) {
    case 'textarea':
      return <textarea {...common} {...read} rows={4} value={entry} onChange={event => change(event.target.value)} />;
    case 'json':
      return (
        <textarea
          {...common}
          {...read}
          className="input mono"
          rows={8}
          spellCheck={false}
          value={entry}
          onChange={event => change(event.target.value)}
        />
      );
    case 'select':
      return (
        <select {...common} disabled={field.read_only} value={entry} onChange={event => change(event.target.value)}>
          {(!field.required || entry === '') && <option value="">{field.required ? 'Choose…' : blank}</option>}
          {options.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      );
    case 'number':
      return <input {...common} {...read} type="text" inputMode="decimal" value={entry} onChange={event => change(event.target.value)} />;
    case 'datetime':
      return <input {...common} {...read} type="datetime-local" step="1" value={entry} onChange={event => change(event.target.value)} />;
    case 'color':
      return (
        <span className="color-pair">
          <input
            type="color"
            aria-label={`${field.label}, picker`}
            disabled={field.read_only}
            value={/^#[0-9a-f]{6}$/i.test(entry) ? entry : '#808080'}
            onChange={event => change(event.target.value)}
          />
          <input
            {...common}
            {...read}
            className="input mono"
            placeholder="#0f766e"
            spellCheck={false}
            value={entry}
            onChange={event => change(event.target.value)}
          />
        </span>
      );
    case 'secret_ref':
      return (
        <input
          {...common}
          {...read}
          className="input mono"
          placeholder="backend://path"
          autoComplete="off"
          spellCheck={false}
          value={entry}
          onChange={event => change(event.target.value)}
        />
      );
    case 'file':
      return (
        <input {...common} type="file" disabled={field.read_only} onChange={async event => change(await base64(event.target.files?.[0]))} />
      );
    default:
      return <input {...common} {...read} type="text" value={entry} onChange={event => change(event.target.value)} />;
  }
}

/** A file travels as base64 inside the JSON body. */
function base64(file: File | undefined): Promise<string> {
  if (!file) return Promise.resolve('');
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
