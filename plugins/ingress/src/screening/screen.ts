import { formsOf, isPlain } from './decoded.ts';
import { pathTraversal } from './path-traversal.ts';
import { type Place, type RequestValue, type ScreenedRequest, valuesOf } from './request-values.ts';
import { scriptInjection } from './script-injection.ts';
import { sqlInjection } from './sql-injection.ts';

export type Threat = 'sql_injection' | 'cross_site_scripting' | 'path_traversal';
/** Why a request is refused: what in it, where, and the words that say so, cut and without secrets. */
export interface Finding {
  readonly threat: Threat;
  readonly place: Place;
  readonly name: string;
  readonly reason: string;
  readonly excerpt: string;
}

const EXCERPT = 200;
const SECRET = /pass|secret|token|authorization|session|csrf|api[-_]?key|credential/i;

/**
 * Looks for SQL injection, cross-site scripting and path traversal in everything a request says (ING-035). Keeps nothing; linear in the
 * request.
 */
export function screen(request: ScreenedRequest): Finding | undefined {
  for (const value of valuesOf(request)) {
    const found = screenValue(value);
    if (found) return found;
  }
  return undefined;
}

/** The same for one value. */
export const screenValue = (value: RequestValue): Finding | undefined =>
  isPlain(value.value) && !WORTH_A_LOOK.test(value.value) ? undefined : judged(value);

/** Words that need no punctuation to be part of an attack. */
const WORTH_A_LOOK =
  /::|schema|tempdb|msys|backup|\.sql|\.bak|regexp|into|create|alter|select|union|insert|delete|waitfor|exec|declare|pg_|xp_|msdb|northwind|information_schema|schema_name|sqlite|mysql|having|4294967|2147483|18446744|2\.2250|window|document|\.e\.|\.\.|^\.|e\d{3}|\bor\b|\band\b|\bcase\b/i;

function judged({ place, name, value }: RequestValue): Finding | undefined {
  for (const form of formsOf(value)) {
    const [threat, reason] = threatIn(form, place) ?? [];
    if (threat && reason)
      return { threat, place, name: name.slice(0, 100), reason, excerpt: SECRET.test(name) ? '(masked)' : form.slice(0, EXCERPT) };
  }
  return undefined;
}

function threatIn(form: string, place: Place): [Threat, string] | undefined {
  const traversal = place === 'referer' ? undefined : pathTraversal(form, place === 'path');
  if (traversal) return ['path_traversal', traversal];
  const script = scriptInjection(form);
  if (script) return ['cross_site_scripting', script];
  // A path and the address a person came from are not spliced into statements; what a careless router makes of a segment is.
  const sql =
    place === 'referer' && !/['"]|waitfor/i.test(form)
      ? undefined
      : place === 'path'
        ? (form.split('/').map(sqlInjection).find(Boolean) ?? (form.includes('/*') ? sqlInjection(form) : undefined))
        : sqlInjection(form);
  return sql ? ['sql_injection', sql] : undefined;
}
