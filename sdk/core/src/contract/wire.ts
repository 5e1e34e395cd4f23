import { type TSchema, Type } from 'typebox';

export const ID_PATTERN = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';
/** UUIDv7 in lower case (G-K-03). */
/** How the wire spells a correlation id (G-K-03). */
export const CORRELATION_PATTERN = '^[A-Za-z0-9._:-]{1,128}$';
export const CorrelationId = Type.String({ pattern: CORRELATION_PATTERN });
export const Id = Type.String({ pattern: ID_PATTERN });
/** ISO 8601 in UTC with milliseconds (G-K-03). */
export const Instant = Type.String({ format: 'date-time' });
/** Immutable name of an org, env or app (G-K-03). */
export const Slug = Type.String({ pattern: '^[a-z][a-z0-9-]{1,38}[a-z0-9]$' });
/** The id of a service or a vertical, as it stands in scopes, events and hosts. */
export const ServiceId = Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' });
/** A member that is always there, with null where it has no value. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** Query members of every keyset listing (G-K-04). Its cursors are those of `ctx.page`; the kernel refuses any other with 400. */
export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
};
/** Query members of a listing that can be sorted by these members of its rows; `ctx.page` takes the order of {@link sorted}. */
export const SortQuery = <const Members extends readonly string[]>(...members: Members) => ({
  sort: Type.Optional(Type.Unsafe<Members[number]>({ type: 'string', enum: [...members], title: 'Sorted by' })),
  order: Type.Optional(Type.Unsafe<'asc' | 'desc'>({ type: 'string', enum: ['asc', 'desc'], title: 'Direction' })),
});
/** The answer of every keyset listing (G-K-04). */
export const Page = <T extends TSchema>(items: T) =>
  Type.Object({ items: Type.Array(items), next_cursor: Type.Union([Type.String(), Type.Null()]) });
