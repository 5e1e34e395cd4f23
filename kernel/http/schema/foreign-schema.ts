import type { FieldFault, TSchema } from '@platform/sdk';
import { Check, Errors } from 'typebox/schema';
import { type Fault, readFaults } from './schema.ts';

const KEYWORDS = new Set(['type', 'const', 'enum', 'required', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems']);
const DEEPEST = 32;

/**
 * A check by a schema that somebody else wrote. It is interpreted, never made into code, and only keywords whose cost is bounded count:
 * a pattern of theirs could hold up the process that runs it. Throws on what is nested too deeply.
 */
export function foreignCheck(schema: object, base = ''): (value: unknown) => readonly FieldFault[] {
  const plain = plainOf(schema, 0) as TSchema;
  return value => (Check(plain, value) ? [] : readFaults(Errors(plain, value)[1] as Fault[], base));
}

function plainOf(schema: unknown, depth: number): object {
  if (depth > DEEPEST) throw new Error(`a schema is nested at most ${DEEPEST} levels deep`);
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return {};
  const plain: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (KEYWORDS.has(keyword)) plain[keyword] = value;
    else if (keyword === 'properties')
      plain[keyword] = Object.fromEntries(Object.entries(value as object).map(([name, child]) => [name, plainOf(child, depth + 1)]));
    else if (keyword === 'items') plain[keyword] = plainOf(value, depth + 1);
    else if (keyword === 'anyOf' && Array.isArray(value)) plain[keyword] = value.map(child => plainOf(child, depth + 1));
    else if (keyword === 'additionalProperties') plain[keyword] = typeof value === 'boolean' ? value : plainOf(value, depth + 1);
  }
  return plain;
}
