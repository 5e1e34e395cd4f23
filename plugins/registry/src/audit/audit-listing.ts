import { type Caller, type RequestOf, type Sql, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import { type Access, isTrusted } from '../tenants/access.ts';
import { boundOf } from './audit-id.ts';
import { type AuditRow, NO_ID, wireOf } from './audit-row.ts';

/** Above every id that is made here. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const DEFAULT_LIMIT = 100;

export interface AuditFilter {
  readonly envId: string | undefined;
  readonly service: string | undefined;
  readonly action: string | undefined;
  readonly correlationId: string | undefined;
}
interface Key {
  readonly column: unknown;
  readonly value: unknown;
}

/** Everybody but platform administrators and services of the platform sees the own environment, whatever is asked for. */
export function envOf(
  ctx: Pick<Ctx, 'problem'>,
  {
    query,
    caller,
    targetEnvId,
  }: { query: { env_id?: string }; caller: RequestOf<Contract, 'listAudit'>['caller']; targetEnvId: string | undefined },
): string | undefined {
  if (isTrusted(caller)) return query.env_id ?? targetEnvId;
  // Who has no environment of its own, as a workload of a vertical, has no trail to read either: the system's least of all.
  if (caller.envId === undefined) throw ctx.problem('audit_env_required', { detail: 'The caller has no environment of its own.' });
  return caller.envId;
}

/** Pages of the trail, newest first. Ids follow commit order, so a page neither skips nor repeats what commits meanwhile (H-20). */
export class AuditListing {
  readonly #ctx: Ctx;
  readonly #access: Access;

  constructor(ctx: Ctx, access: Access) {
    this.#ctx = ctx;
    this.#access = access;
  }

  async list({ query, caller, targetEnvId }: RequestOf<Contract, 'listAudit'>) {
    if ((query.after_ts === undefined) !== (query.after_id === undefined)) throw this.#ctx.problem('keyset_incomplete');
    const ms = Date.parse(query.after_ts ?? '');
    if (query.after_ts !== undefined && Number.isNaN(ms)) throw this.#ctx.problem('invalid_cursor', { detail: 'after_ts is no time.' });
    const limit = query.limit ?? DEFAULT_LIMIT;
    const filter = {
      envId: envOf(this.#ctx, { query, caller, targetEnvId }),
      service: query.service,
      action: query.action,
      correlationId: query.correlation_id,
    };
    const after = query.after_id === undefined ? LAST_ID : boundOf(ms, query.after_id);
    // Everybody's rows stand in the system environment: a caller that is not of the platform sees those about its own tenants (D-01).
    const isShared = filter.envId === SYSTEM.envId && !isTrusted(caller);
    const rows = isShared ? await this.#about(await this.#reach(caller), { filter, after, limit }) : await this.page(filter, after, limit);
    const items = rows.slice(0, limit).map(wireOf);
    const last = items.at(-1);
    return { items, next: rows.length > limit && last ? { after_ts: last.ts, after_id: last.audit_id } : null };
  }

  /** Organizations and environments of a caller, as the rows name them. */
  async #reach(caller: Caller): Promise<string[]> {
    const { orgs, envs } = await this.#access.levels(caller);
    return [...orgs.keys(), ...envs.keys()];
  }

  /** Rows of the system environment about these tenants, newest first: of each tenant as many as a page needs, by the index of its rows. */
  async #about(
    tenants: readonly string[],
    { filter, after, limit }: { filter: AuditFilter; after: string; limit: number },
  ): Promise<AuditRow[]> {
    const { sql } = this.#ctx.db;
    const { service = null, action = null, correlationId = null } = filter;
    return sql<AuditRow[]>`
      select ${whole(sql)} from audit where audit_id in (
        select page.audit_id from unnest(${[...tenants]}::text[]) as tenant(id) cross join lateral (
          select audit_id from audit
          where env_id = ${SYSTEM.envId}::uuid and audit_about(resource, details) = tenant.id and audit_id < ${after}::uuid
            and (${service}::text is null or service = ${service}) and (${action}::text is null or action = ${action})
            and (${correlationId}::text is null or correlation_id = ${correlationId})
          order by audit_id desc limit ${limit + 1}) page
        order by page.audit_id desc limit ${limit + 1})
      order by audit_id desc`;
  }

  /** At least one row more than `limit`, if there are as many. */
  async page(filter: AuditFilter, after: string, limit: number): Promise<AuditRow[]> {
    const { sql } = this.#ctx.db;
    // Written out, because a plan made for an unknown limit expects a tenth of the table; two texts, so that few plans are kept.
    const most = limit <= DEFAULT_LIMIT ? sql`limit 101` : sql`limit 501`;
    const env: Key[] = filter.envId === undefined ? [] : [{ column: sql`env_id`, value: sql`${filter.envId}::uuid` }];
    const service: Key[] = filter.service === undefined ? [] : [{ column: sql`service`, value: sql`${filter.service}::text` }];
    if (filter.correlationId !== undefined) {
      // Few rows share one: what else is asked for is looked up on them.
      const also = [
        ...env,
        ...service,
        ...(filter.action === undefined ? [] : [{ column: sql`action`, value: sql`${filter.action}::text` }]),
      ];
      return sql<
        AuditRow[]
      >`${range(sql, [{ column: sql`correlation_id`, value: sql`${filter.correlationId}::text` }], sql`${after}::uuid`, { also })} ${most}`;
    }
    if (filter.action === undefined) return sql<AuditRow[]>`${range(sql, [...env, ...service], sql`${after}::uuid`)} ${most}`;
    const action: Key = { column: sql`action`, value: sql`${filter.action}::text` };
    if (filter.service !== undefined) return sql<AuditRow[]>`${range(sql, [...env, action, ...service], sql`${after}::uuid`)} ${most}`;
    const keys = [...env, action];
    const next = (after: unknown) =>
      sql`select ${list(sql, [...keys.map(({ column }) => column), sql`service`])} from audit
          where (${list(sql, [...keys.map(({ column }) => column), sql`service`])}) > (${list(sql, [
            ...keys.map(({ value }) => value),
            after,
          ])})
          order by ${list(sql, [...keys.map(({ column }) => column), sql`service`])} limit 1`;
    const same = list(
      sql,
      keys.map(({ column, value }) => sql`${column} = ${value}`),
      sql` and `,
    );
    // One step of an index for each service that does this, then the newest of each.
    return sql<AuditRow[]>`
      with recursive doer (service) as (
        select case when ${same} then service end from (${next(sql`''`)}) first
        union all
        select (select case when ${same} then service end from (${next(sql`doer.service`)}) following) from doer
          where doer.service is not null)
      select ${whole(sql)} from audit where audit_id in (
        select audit_id from doer cross
          join lateral (${range(sql, [...keys, { column: sql`service`, value: sql`doer.service` }], sql`${after}::uuid`, {
            select: sql`audit_id`,
          })} ${most}) page
        where doer.service is not null order by audit_id desc ${most})
      order by audit_id desc`;
  }
}

/**
 * Rows whose keys have these values and whose id is below `after`. A comparison of rows instead of equal signs, ordered by all columns:
 * then only the index of exactly these columns gives the order, and no statistics can talk the planner into walking another.
 */
function range(
  sql: Sql,
  keys: readonly Key[],
  after: unknown,
  { also = [], select = whole(sql) }: { also?: readonly Key[]; select?: unknown } = {},
): unknown {
  const columns = [...keys.map(({ column }) => column), sql`audit_id`];
  const values = keys.map(({ value }) => value);
  const filters = also.map(({ column, value }) => sql`and ${column} = ${value}`);
  return sql`
    select ${select}
    from audit
    where (${list(sql, columns)}) > (${list(sql, [...values, sql`${NO_ID}::uuid`])})
      and (${list(sql, columns)}) < (${list(sql, [...values, after])}) ${list(sql, filters, sql` `)}
    order by ${list(
      sql,
      columns.map(column => sql`${column} desc`),
    )}`;
}

/** The columns of an {@link AuditRow}. */
const whole = (sql: Sql) => sql`
  env_id, position, audit_id, (extract(epoch from ts) * 1000)::bigint as ts, service, action, actor::text as actor,
    resource::text as resource, outcome,
  details::text as details, correlation_id, (extract(epoch from occurred_at) * 1000)::bigint as occurred_at, delivery_key`;

/** Fragments one after the other. */
function list(sql: Sql, parts: readonly unknown[], between: unknown = sql`, `): unknown {
  return parts.length === 0 ? sql`` : parts.slice(1).reduce((joined, part) => sql`${joined}${between}${part}`, parts[0]);
}
