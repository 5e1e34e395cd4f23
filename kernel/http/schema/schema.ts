import type { FieldFault, TSchema } from '@platform/sdk';
import { Compile } from 'typebox/compile';

const MAX_FAULTS = 10;

interface SchemaNode {
  type?: string;
  properties?: Record<string, SchemaNode>;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  allOf?: SchemaNode[];
  additionalProperties?: unknown;
  [keyword: string]: unknown;
}

/** A schema ready to check values, compiled on first use: boot pays for none of them. */
export class Validator {
  readonly schema: TSchema;
  #compiled: ReturnType<typeof Compile> | undefined;

  constructor(schema: TSchema) {
    this.schema = schema;
  }

  check(value: unknown): boolean {
    this.#compiled ??= Compile(this.schema);
    return this.#compiled.Check(value);
  }

  /** Up to ten faults, each with a JSON pointer into the value (G-K-01). */
  faults(value: unknown, base = ''): FieldFault[] {
    this.#compiled ??= Compile(this.schema);
    return readFaults(this.#compiled.Errors(value), base);
  }
}

/** What a validator found, as faults: up to ten, one per place. */
export function readFaults(errors: Iterable<Fault>, base: string): FieldFault[] {
  const faults = new Map<string, FieldFault>();
  for (const error of errors) {
    for (const fault of readFault(error, base)) if (!faults.has(fault.pointer)) faults.set(fault.pointer, fault);
    if (faults.size >= MAX_FAULTS) break;
  }
  return [...faults.values()];
}

export type Fault = { keyword: string; instancePath: string; params: object; message: string };

function readFault({ keyword, instancePath, params, message }: Fault, base: string): FieldFault[] {
  const pointer = base + instancePath;
  switch (keyword) {
    case 'required':
      return ((params as { requiredProperties?: string[] }).requiredProperties ?? []).map(name => ({
        pointer: `${pointer}/${name}`,
        code: 'required',
        message: 'is required',
      }));
    case 'boolean':
      return [{ pointer, code: 'unknown_member', message: 'is not a member of this request' }];
    case 'additionalProperties':
      return ((params as { additionalProperties?: string[] }).additionalProperties ?? []).map(name => ({
        pointer: `${pointer}/${name}`,
        code: 'unknown_member',
        message: 'is not a member of this request',
      }));
    default:
      return [{ pointer, code: keyword, message }];
  }
}

/** The same schema with every object closed that does not open itself: unknown members of requests are refused (house 24). */
export function closed(schema: TSchema): TSchema {
  return closeNode(structuredCloneable(schema)) as TSchema;
}

const structuredCloneable = (schema: TSchema): SchemaNode => JSON.parse(JSON.stringify(schema)) as SchemaNode;

function closeNode(node: SchemaNode): SchemaNode {
  if (node.allOf) return node;
  const next: SchemaNode = { ...node };
  if (next.properties) {
    next.properties = Object.fromEntries(Object.entries(next.properties).map(([name, child]) => [name, closeNode(child)]));
    next.additionalProperties ??= false;
  }
  if (next.items && typeof next.items === 'object') next.items = closeNode(next.items);
  if (next.anyOf) next.anyOf = next.anyOf.map(closeNode);
  return next;
}

/**
 * Where a value carries U+0000 or half of a surrogate pair, which no database of ours takes as text: each place as a fault with its JSON
 * pointer, up to ten (F-19). Names of members are looked at as well.
 */
export function characterFaults(value: unknown, base = ''): FieldFault[] {
  const faults: FieldFault[] = [];
  const look = (node: unknown, pointer: string): void => {
    if (faults.length >= MAX_FAULTS) return;
    if (typeof node === 'string') {
      const fault = characterFault(node);
      if (fault) faults.push({ pointer, ...fault });
      return;
    }
    if (typeof node !== 'object' || node === null) return;
    for (const [name, child] of Object.entries(node)) {
      const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      const fault = characterFault(name);
      if (fault) faults.push({ pointer: at.replaceAll('\0', '\uFFFD').toWellFormed(), ...fault });
      else look(child, at);
    }
  };
  look(value, base);
  return faults;
}

function characterFault(text: string): Omit<FieldFault, 'pointer'> | undefined {
  if (text.includes('\0')) return { code: 'nul_character', message: 'contains U+0000' };
  return text.isWellFormed() ? undefined : { code: 'lone_surrogate', message: 'contains half of a surrogate pair' };
}

/** Reads query text into the types its schema names. What does not read stays text, for the validator to refuse by name. */
export function readQuery(search: URLSearchParams, properties: Readonly<Record<string, TSchema>>): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name);
    const schema = properties[name] as SchemaNode | undefined;
    query[name] =
      schema?.type === 'array'
        ? values.flatMap(value => value.split(','))
        : values.length > 1
          ? values
          : readScalar(values[0] as string, schema);
  }
  return query;
}

function readScalar(text: string, schema: SchemaNode | undefined): unknown {
  if ((schema?.type === 'integer' || schema?.type === 'number') && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  if (schema?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
