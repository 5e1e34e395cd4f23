import type { AnyRoute, FieldType, TSchema } from '@platform/sdk';
import type { WireField } from './page-schema.ts';

export type Node = TSchema & {
  /** Which control asks for it, where the type does not tell. */
  widget?: FieldType;
  /** The route whose items are the choices. */
  optionsFrom?: string;
  type?: string;
  properties?: Record<string, Node>;
  items?: Node;
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Node[];
  title?: string;
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
  maxLength?: number;
};

/** The controls that ask for a route's body. */
export function bodyFields(route: AnyRoute | undefined): WireField[] {
  const body = route?.options.body as Node | undefined;
  return Object.entries(body?.properties ?? {}).map(([name, schema]) => field(name, schema, body?.required?.includes(name) ?? false));
}

/** A widget follows from its schema (house 16). */
export function field(name: string, schema: Node, required: boolean): WireField {
  const choices = choicesOf(schema);
  const several = schema.type === 'array' && schema.items ? choicesOf(schema.items) : undefined;
  const inner = !choices && schema.anyOf ? (schema.anyOf.find(option => option.type !== 'null') ?? schema) : schema;
  const options = choices ?? several;
  const listed = schema.optionsFrom ?? schema.items?.optionsFrom;
  const type = choices || schema.optionsFrom ? 'select' : several || listed ? 'multiselect' : widget(inner);
  return {
    name,
    label: schema.title ?? sentence(name),
    type,
    // A switch always has a value; `required` would ask for yes.
    ...(required && type !== 'bool' ? { required } : {}),
    ...(schema.default === undefined ? {} : { default: schema.default }),
    ...(options ? { options } : {}),
    ...(listed ? { options_source: { resource: `options/${listed}` } } : {}),
    ...(inner.pattern ? { pattern: inner.pattern } : {}),
    ...(inner.minimum === undefined ? {} : { min: inner.minimum }),
    ...(inner.maximum === undefined ? {} : { max: inner.maximum }),
    ...(schema.description ? { help: schema.description } : {}),
  };
}

/** The control that narrows a listing: words that are looked for stand in one line, however long they may be. */
export function filterField(name: string, schema: Node): WireField {
  const asked = field(name, schema, false);
  return asked.type === 'textarea' ? { ...asked, type: 'text' } : asked;
}

/** The values a schema names one by one, as options. */
function choicesOf(schema: Node): { value: string; label: string }[] | undefined {
  const named = (value: unknown, title?: string) => ({ value: String(value), label: title ?? sentence(String(value)) });
  if (schema.enum) return schema.enum.map(value => named(value));
  return schema.anyOf?.every(option => option.const !== undefined)
    ? schema.anyOf.map(option => named(option.const, option.title))
    : undefined;
}

function widget(schema: Node): FieldType {
  if (schema.widget) return schema.widget;
  if (schema.type === 'integer' || schema.type === 'number') return 'number';
  if (schema.type === 'boolean') return 'bool';
  if (schema.type === 'object' || schema.type === 'array') return 'json';
  if (schema.format === 'date-time') return 'datetime';
  return (schema.maxLength ?? 0) > 200 ? 'textarea' : 'text';
}

const sentence = (name: string) => {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
