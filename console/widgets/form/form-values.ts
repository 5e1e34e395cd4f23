import type { Field } from '../../api/page-def.ts';
import type { Problem } from '../../api/gateway/problem.ts';
import { holds } from '../page/condition.ts';
import { valueAt } from '../page/path.ts';

/** What the controls hold: text as typed, so that a half-written number or document is not lost. */
export type Draft = Readonly<Record<string, string | boolean | readonly string[]>>;
export type Faults = Readonly<Record<string, string>>;

export function draftOf(fields: readonly Field[], initial?: unknown): Draft {
  return Object.fromEntries(
    fields.map(field => {
      const value = valueAt(initial, field.name) ?? field.default;
      if (field.type === 'bool') return [field.name, value === true];
      if (field.type === 'multiselect') return [field.name, Array.isArray(value) ? value.map(String) : []];
      if (value === undefined || value === null) return [field.name, ''];
      if (field.type === 'json') return [field.name, JSON.stringify(value, null, 2)];
      if (field.type === 'datetime') return [field.name, localTime(String(value))];
      return [field.name, String(value)];
    }),
  );
}

export function visibleFields(fields: readonly Field[], draft: Draft): Field[] {
  return fields.filter(field => holds(field.when, draft));
}

/** The draft as the service wants it, and what stands in the way. Empty optional members are not sent. */
export function valuesOf(fields: readonly Field[], draft: Draft): { values: Record<string, unknown>; faults: Faults } {
  const values: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of visibleFields(fields, draft)) {
    if (field.read_only) continue;
    const raw = draft[field.name];
    if (raw === undefined || raw === '' || (Array.isArray(raw) && raw.length === 0)) {
      if (field.required) faults[field.name] = `${field.label} is required.`;
      else if (Array.isArray(raw)) put(values, field.name, []);
      continue;
    }
    const { value, fault } = read(field, raw);
    if (fault) faults[field.name] = fault;
    else put(values, field.name, value);
  }
  return { values, faults };
}

function read(field: Field, raw: string | boolean | readonly string[]): { value?: unknown; fault?: string } {
  if (typeof raw !== 'string') return { value: raw };
  switch (field.type) {
    case 'number': {
      const number = Number(raw);
      if (!Number.isFinite(number)) return { fault: 'Enter a number.' };
      if (field.min !== undefined && number < field.min) return { fault: `Enter ${field.min} or more.` };
      if (field.max !== undefined && number > field.max) return { fault: `Enter ${field.max} or less.` };
      return { value: number };
    }
    case 'json':
      try {
        return { value: JSON.parse(raw) };
      } catch (error) {
        return { fault: `This is not JSON: ${(error as Error).message}` };
      }
    case 'datetime':
      return { value: new Date(raw).toISOString() };
    case 'color':
      return /^#[0-9a-f]{6}$/i.test(raw) ? { value: raw.toLowerCase() } : { fault: 'Enter a colour like #0f766e.' };
    case 'secret_ref':
      return /^[a-z]+:\/\/.+/.test(raw) ? { value: raw } : { fault: 'Enter a reference like vault://mount/path#key, never the secret.' };
    case 'file':
    case 'select':
      return { value: raw };
    default:
      if (field.min !== undefined && raw.length < field.min) return { fault: `Enter at least ${field.min} characters.` };
      if (field.max !== undefined && raw.length > field.max) return { fault: `Enter at most ${field.max} characters.` };
      if (field.pattern && !new RegExp(`^(?:${field.pattern})$`, 'u').test(raw))
        return { fault: 'This does not have the form that is asked for.' };
      return { value: raw };
  }
}

/** Puts what the service said where it belongs; what belongs to no field stays with the form. */
export function faultsOf(problem: Problem, fields: readonly Field[]): { faults: Faults; rest: string[] } {
  const faults: Record<string, string> = {};
  const rest: string[] = [];
  for (const { pointer, message } of problem.errors) {
    const name = pointer.replace(/^#?\//, '').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
    const field = fields.find(each => name === each.name || name.startsWith(`${each.name}.`));
    if (field) faults[field.name] ??= message;
    else rest.push(name ? `${name}: ${message}` : message);
  }
  return { faults, rest };
}

function put(values: Record<string, unknown>, path: string, value: unknown): void {
  const steps = path.split('.');
  const last = steps.pop() as string;
  let holder = values;
  for (const step of steps) holder = (holder[step] ??= {}) as Record<string, unknown>;
  holder[last] = value;
}

function localTime(value: string): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
