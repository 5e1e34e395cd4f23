import type { Sql } from '@platform/sdk';
import { conditionOf, type Fragment, readFilter } from './scim-filter.ts';
import { isDocument } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { recordColumns, type ScimRecord } from './scim-record.ts';
import { pathOf } from './scim-user-schema.ts';

const MAX_COUNT = 200;
const DEFAULT_COUNT = 100;
const SEARCH = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest';
const ORDERS = ['id', 'userName', 'externalId', 'meta.created', 'meta.lastModified'] as const;
type Order = (typeof ORDERS)[number];

/** What a list was asked for (RFC 7644, 3.4.2). */
export interface ScimQuery {
  readonly filter?: string | undefined;
  readonly sortBy: Order;
  readonly descending: boolean;
  readonly startIndex: number;
  readonly count: number;
  readonly attributes?: readonly string[] | undefined;
  readonly excludedAttributes?: readonly string[] | undefined;
}

const names = (value: unknown): string[] | undefined => {
  if (value === undefined || value === null) return undefined;
  const list = typeof value === 'string' ? value.split(',') : value;
  if (!Array.isArray(list) || list.length > 100 || list.some(each => typeof each !== 'string'))
    throw new ScimError(400, 'attributes and excludedAttributes are names of attributes.', 'invalidValue');
  return (list as string[]).map(each => each.trim()).filter(Boolean);
};

function whole(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === 'string' && /^-?\d{1,9}$/.test(value.trim()) ? Number(value) : value;
  if (!Number.isSafeInteger(number)) throw new ScimError(400, `${name} is a whole number.`, 'invalidValue');
  return number as number;
}

/** Reads a query string, or the body of a search. */
export function readScimQuery(given: unknown): ScimQuery {
  if (!isDocument(given)) throw new ScimError(400, 'A search is a JSON object.', 'invalidSyntax');
  const { filter, sortBy, sortOrder } = given;
  if (filter !== undefined && filter !== null && typeof filter !== 'string') throw new ScimError(400, 'filter is a text.', 'invalidFilter');
  const order = sortBy === undefined || sortBy === null ? 'id' : orderOf(sortBy);
  if (sortOrder !== undefined && sortOrder !== null && sortOrder !== 'ascending' && sortOrder !== 'descending')
    throw new ScimError(400, 'sortOrder is ascending or descending.', 'invalidValue');
  return {
    filter: filter?.trim() || undefined,
    sortBy: order,
    descending: sortOrder === 'descending',
    // Below one is one, below none is none (RFC 7644, 3.4.2.4).
    startIndex: Math.max(1, whole(given['startIndex'], 'startIndex') ?? 1),
    count: Math.min(MAX_COUNT, Math.max(0, whole(given['count'], 'count') ?? DEFAULT_COUNT)),
    attributes: names(given['attributes']),
    excludedAttributes: names(given['excludedAttributes']),
  };
}

export function readSearch(given: unknown): ScimQuery {
  const schemas = isDocument(given) ? given['schemas'] : undefined;
  if (!Array.isArray(schemas) || !schemas.includes(SEARCH)) throw new ScimError(400, `schemas names ${SEARCH}.`, 'invalidSyntax');
  return readScimQuery(given);
}

function orderOf(sortBy: unknown): Order {
  const path = typeof sortBy === 'string' ? pathOf(sortBy) : undefined;
  const name = path && !path.extension && path.attribute ? [path.attribute.name, ...(path.sub ? [path.sub.name] : [])].join('.') : '';
  const order = ORDERS.find(each => each === name);
  if (!order) throw new ScimError(400, `Sorted by ${ORDERS.join(', ')}.`, 'invalidPath');
  return order;
}

/** One page of people of a realm. Each order has an index that begins with the realm. */
export function pageOf(sql: Sql, envId: string, { filter, sortBy, descending, startIndex, count }: ScimQuery): Fragment {
  const columns = {
    id: sql`u.user_id`,
    userName: sql`u.user_name_ci`,
    externalId: sql`u.external_id`,
    'meta.created': sql`u.created_at`,
    'meta.lastModified': sql`u.updated_at`,
  };
  const by = columns[sortBy];
  // Both are one person's: nothing more is needed to keep an order.
  const sole = sortBy === 'id' || sortBy === 'userName';
  const order = sole ? (descending ? sql`${by} desc` : by) : descending ? sql`${by} desc, u.user_id desc` : sql`${by}, u.user_id`;
  return sql`
    select ${recordColumns(sql)} from users u left join scim_users s using (user_id)
    where u.env_id = ${envId} and ${filter === undefined ? sql`true` : conditionOf(sql, readFilter(filter))}
    order by ${order} offset ${startIndex - 1} limit ${count}`;
}

export async function listPeople(sql: Sql, envId: string, query: ScimQuery): Promise<{ total: number; records: readonly ScimRecord[] }> {
  const { filter, count } = query;
  const counted =
    filter === undefined
      ? sql`select count(*)::int as total from users where env_id = ${envId}`
      : sql`
    select count(*)::int as total from users u left join scim_users s using (user_id) where u.env_id = ${envId}
      and ${conditionOf(sql, readFilter(filter))}`;
  const [totals, records] = await Promise.all([
    counted as Promise<unknown> as Promise<[{ total: number }]>,
    count === 0 ? [] : (pageOf(sql, envId, query) as Promise<ScimRecord[]>),
  ]);
  return { total: totals[0].total, records };
}
