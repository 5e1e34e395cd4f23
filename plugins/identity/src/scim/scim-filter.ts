import { type Filter, parse } from 'scim2-parse-filter';
import type { Sql } from '@platform/sdk';
import { named, type ScimAttribute } from './scim-attribute.ts';
import { isDocument, type Json } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { ENTERPRISE, pathOf, USER } from './scim-user-schema.ts';

const MAX_LENGTH = 4_000;
const MAX_TERMS = 50;

type Comparison = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le';
type Value = string | number | boolean | null;
/** A piece of SQL with its bound values. */
export type Fragment = unknown;

const bad = (detail: string) => new ScimError(400, detail, 'invalidFilter');

/** Reads a filter (RFC 7644, 3.4.2.2), bounded in length and in terms. */
export function readFilter(spelled: string): Filter {
  if (spelled.length > MAX_LENGTH) throw bad(`A filter has at most ${MAX_LENGTH} characters.`);
  // The parser does not read every escape of JSON: it gets a number for each text.
  const texts: string[] = [];
  let filter: Filter;
  try {
    filter = restored(
      parse(spelled.replaceAll(/"(?:[^"\\]|\\.)*"/gs, literal => `"${texts.push(JSON.parse(literal) as string) - 1}"`)),
      texts,
    );
  } catch {
    throw bad('The filter cannot be read.');
  }
  if (termsOf(filter) > MAX_TERMS) throw bad(`A filter has at most ${MAX_TERMS} terms.`);
  return filter;
}

function restored(filter: Filter, texts: readonly string[]): Filter {
  switch (filter.op) {
    case 'and':
    case 'or':
      return { ...filter, filters: filter.filters.map(each => restored(each, texts)) };
    case 'not':
      return { ...filter, filter: restored(filter.filter, texts) };
    case '[]':
      return { ...filter, valFilter: restored(filter.valFilter, texts) };
    case 'pr':
      return filter;
    default:
      return typeof filter.compValue === 'string' ? { ...filter, compValue: texts[Number(filter.compValue)] as string } : filter;
  }
}

function termsOf(filter: Filter): number {
  if (filter.op === 'and' || filter.op === 'or') return filter.filters.reduce((sum, each) => sum + termsOf(each), 0);
  if (filter.op === 'not') return termsOf(filter.filter);
  return filter.op === '[]' ? 1 + termsOf(filter.valFilter) : 1;
}

/** The condition of a filter over `users u left join scim_users s`. Every value is bound; names come from the schema alone. */
export function conditionOf(sql: Sql, filter: Filter): Fragment {
  switch (filter.op) {
    case 'and':
      return filter.filters.map(each => conditionOf(sql, each)).reduce((left, right) => sql`(${left} and ${right})`);
    case 'or':
      return filter.filters.map(each => conditionOf(sql, each)).reduce((left, right) => sql`(${left} or ${right})`);
    case 'not':
      return sql`not coalesce(${conditionOf(sql, filter.filter)}, false)`;
    case '[]': {
      const { attribute, values } = several(sql, filter.attrPath);
      return sql`exists (select 1 from jsonb_array_elements(${values}) as e(v) where ${within(sql, attribute, filter.valFilter)})`;
    }
    case 'pr':
      return present(sql, filter.attrPath);
    default:
      return comparison(sql, filter.attrPath, filter.op, filter.compValue);
  }
}

/** A condition on one value of several; its paths are names of the value's members. */
function within(sql: Sql, attribute: ScimAttribute, filter: Filter): Fragment {
  switch (filter.op) {
    case 'and':
      return filter.filters.map(each => within(sql, attribute, each)).reduce((left, right) => sql`(${left} and ${right})`);
    case 'or':
      return filter.filters.map(each => within(sql, attribute, each)).reduce((left, right) => sql`(${left} or ${right})`);
    case 'not':
      return sql`not coalesce(${within(sql, attribute, filter.filter)}, false)`;
    case '[]':
      throw bad('A filter on values contains no other.');
    default: {
      const sub = named(attribute.subAttributes, filter.attrPath);
      if (!sub) throw bad(`${attribute.name} has no ${filter.attrPath}.`);
      const held = sql`(e.v ->> ${sub.name}::text)`;
      return filter.op === 'pr' ? sql`${held} is not null` : compare(sql, sub, held, filter.op, filter.compValue);
    }
  }
}

function present(sql: Sql, spelled: string): Fragment {
  const { extension, attribute, sub } = known(spelled);
  if (!attribute) return sql`coalesce(s.attributes ? ${ENTERPRISE}, false)`;
  const column = extension ? undefined : columnOf(sql, attribute, sub);
  if (column) return sql`${column.held} is not null`;
  if (!attribute.multiValued) return sql`s.attributes #> ${keysOf(extension, attribute, sub)}::text[] is not null`;
  const held = sub ? sql`e.v ? ${sub.name}` : sql`true`;
  return sql`exists (select 1 from jsonb_array_elements(${several(sql, spelled).values}) as e(v) where ${held})`;
}

function comparison(sql: Sql, spelled: string, op: Comparison, value: Value): Fragment {
  const { extension, attribute, sub } = known(spelled);
  if (!attribute) throw bad(`${spelled} is not one value.`);
  if (value === null && (op === 'eq' || op === 'ne')) return op === 'ne' ? present(sql, spelled) : sql`not ${present(sql, spelled)}`;
  const column = extension ? undefined : columnOf(sql, attribute, sub);
  if (column) return column.compare(op, value);
  if (attribute.multiValued) {
    const { values } = several(sql, spelled);
    const part = sub ?? named(attribute.subAttributes, 'value') ?? (attribute.type === 'complex' ? undefined : attribute);
    if (!part) throw bad(`Say which part of ${attribute.name} is meant.`);
    const held = part === attribute ? sql`(e.v #>> '{}')` : sql`(e.v ->> ${part.name}::text)`;
    return sql`exists (select 1 from jsonb_array_elements(${values}) as e(v) where ${compare(sql, part, held, op, value)})`;
  }
  const leaf = sub ?? attribute;
  if (leaf.type === 'complex') throw bad(`Say which part of ${leaf.name} is meant.`);
  return compare(sql, leaf, sql`(s.attributes #>> ${keysOf(extension, attribute, sub)}::text[])`, op, value);
}

function known(spelled: string) {
  const path = pathOf(spelled);
  if (!path) throw bad(`There is no attribute ${spelled}.`);
  if (path.attribute?.returned === 'never') throw new ScimError(400, `${path.attribute.name} is never told.`, 'sensitive');
  return path;
}

const keysOf = (extension: boolean, attribute: ScimAttribute, sub: ScimAttribute | undefined): string[] => [
  ...(extension ? [ENTERPRISE] : []),
  attribute.name,
  ...(sub ? [sub.name] : []),
];

/** The values of an attribute that may have several, as a JSON array that is always there. */
function several(sql: Sql, spelled: string): { attribute: ScimAttribute; values: Fragment } {
  const { extension, attribute } = known(spelled);
  if (!attribute?.multiValued) throw bad(`${spelled} has not several values.`);
  if (attribute.name === 'groups') {
    return {
      attribute,
      values: sql`(select coalesce(jsonb_agg(jsonb_build_object('value', g.group_id, 'display', g.name, 'type', 'direct')), '[]')
        from group_members m join user_groups g on g.env_id = m.env_id and g.name = m.group_name where m.user_id = u.user_id)`,
    };
  }
  if (attribute.name === 'schemas') {
    return {
      attribute,
      values: sql`(case when s.attributes ? ${ENTERPRISE} then jsonb_build_array(${USER}::text, ${ENTERPRISE}::text)
        else jsonb_build_array(${USER}::text) end)`,
    };
  }
  const held = sql`coalesce(s.attributes #> ${keysOf(extension, attribute, undefined)}::text[], '[]')`;
  // An account that no provisioner has touched has the one address it signs in with.
  return {
    attribute,
    values:
      attribute.name === 'emails'
        ? sql`(case when s.user_id is null then jsonb_build_array(jsonb_build_object('value', u.email, 'primary', true)) else ${held} end)`
        : held,
  };
}

interface Column {
  readonly held: Fragment;
  readonly compare: (op: Comparison, value: Value) => Fragment;
}

/** What lists are found and ordered by, in columns of its own. */
function columnOf(sql: Sql, attribute: ScimAttribute, sub: ScimAttribute | undefined): Column | undefined {
  const of = (held: Fragment, leaf = attribute, lowered?: Fragment): Column => ({
    held,
    compare: (op, value) => compare(sql, leaf, held, op, value, lowered),
  });
  switch (sub ? `${attribute.name}.${sub.name}` : attribute.name) {
    case 'id': {
      const column = of(sql`u.user_id::text`);
      // What is no id is nobody's; the index wants the id itself.
      return {
        ...column,
        compare: (op, value) =>
          op === 'eq' && typeof value === 'string' && ID.test(value) ? sql`u.user_id = ${value}::uuid` : column.compare(op, value),
      };
    }
    case 'userName':
      return of(sql`u.user_name_ci`, attribute, sql`u.user_name_ci`);
    case 'externalId':
      return of(sql`u.external_id`);
    case 'displayName':
      return of(sql`u.display_name`);
    case 'active':
      return of(sql`(u.status <> 'disabled')::text`);
    case 'meta.created':
      return of(sql`u.created_at`, sub);
    case 'meta.lastModified':
      return of(sql`u.updated_at`, sub);
    case 'meta.resourceType':
      return of(sql`'User'`, sub);
    case 'meta.version':
      return of(sql`('W/"' || u.version || '"')`, sub);
    case 'meta.location':
    case 'meta':
      throw bad(`No filter on ${sub ? 'meta.location' : 'meta as a whole'}.`);
    default:
      return undefined;
  }
}
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function compare(sql: Sql, attribute: ScimAttribute, held: Fragment, op: Comparison, value: Value, lowered?: Fragment): Fragment {
  if (attribute.type === 'boolean') {
    if (typeof value !== 'boolean' || (op !== 'eq' && op !== 'ne'))
      throw bad(`${attribute.name} is compared with true or false, by eq or ne.`);
    return op === 'eq' ? sql`${held} = ${String(value)}` : sql`${held} is distinct from ${String(value)}`;
  }
  if (typeof value !== 'string') throw bad(`${attribute.name} is compared with a text.`);
  if (value.includes('\0')) throw bad('A filter has no zero byte.');
  if (attribute.type === 'dateTime') {
    const at = Date.parse(value);
    if (Number.isNaN(at) || op === 'co' || op === 'sw' || op === 'ew')
      throw bad(`${attribute.name} is compared with a date and time, by eq, ne, gt, ge, lt or le.`);
    return ordered(sql, sql`date_trunc('milliseconds', ${held})`, op, sql`${new Date(at).toISOString()}::timestamptz`);
  }
  const wanted = attribute.caseExact ? sql`${value}::text` : sql`lower(${value}::text)`;
  return ordered(sql, attribute.caseExact ? held : (lowered ?? sql`lower(${held})`), op, wanted);
}

function ordered(sql: Sql, held: Fragment, op: Comparison, wanted: Fragment): Fragment {
  switch (op) {
    case 'eq':
      return sql`${held} = ${wanted}`;
    case 'ne':
      return sql`${held} is distinct from ${wanted}`;
    case 'co':
      return sql`strpos(${held}, ${wanted}) > 0`;
    case 'sw':
      return sql`starts_with(${held}, ${wanted})`;
    case 'ew':
      return sql`right(${held}, length(${wanted})) = ${wanted}`;
    case 'gt':
      return sql`${held} > ${wanted}`;
    case 'ge':
      return sql`${held} >= ${wanted}`;
    case 'lt':
      return sql`${held} < ${wanted}`;
    case 'le':
      return sql`${held} <= ${wanted}`;
  }
}

/** Whether one value of several is meant by the filter of a path, as PATCH names values (RFC 7644, 3.5.2). */
export function matches(attribute: ScimAttribute, filter: Filter, value: Json): boolean {
  switch (filter.op) {
    case 'and':
      return filter.filters.every(each => matches(attribute, each, value));
    case 'or':
      return filter.filters.some(each => matches(attribute, each, value));
    case 'not':
      return !matches(attribute, filter.filter, value);
    case '[]':
      throw bad('A filter on values contains no other.');
    default: {
      const sub = named(attribute.subAttributes, filter.attrPath);
      if (!sub) throw bad(`${attribute.name} has no ${filter.attrPath}.`);
      const held = isDocument(value) ? value[sub.name] : undefined;
      if (filter.op === 'pr') return held !== undefined;
      return agree(sub, held, filter.op, filter.compValue);
    }
  }
}

function agree(attribute: ScimAttribute, held: Json | undefined, op: Comparison, wanted: Value): boolean {
  const fold = (value: unknown) => (typeof value === 'string' && !attribute.caseExact ? value.toLowerCase() : value);
  const [left, right] = [fold(held), fold(wanted === null ? undefined : wanted)];
  if (op === 'eq') return left === right;
  if (op === 'ne') return left !== right;
  if (typeof left !== 'string' || typeof right !== 'string') return false;
  const answers = {
    co: left.includes(right),
    sw: left.startsWith(right),
    ew: left.endsWith(right),
    gt: left > right,
    ge: left >= right,
    lt: left < right,
    le: left <= right,
  };
  return answers[op];
}
