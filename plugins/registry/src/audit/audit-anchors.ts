import type { Sql } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { AuditKey, Statement } from './audit-key.ts';
import { NO_ID } from './audit-row.ts';

/** A signed statement as it is stored. */
export interface Signed extends Omit<Statement, 'kind'> {
  readonly key_id: string;
  readonly signature: string;
}
type AnchorContext = Pick<Ctx, 'clock' | 'log'> & { readonly db: { tx<T>(work: (tx: { readonly sql: Sql }) => Promise<T>): Promise<T>; readonly sql: Sql } };
interface Place {
  readonly position: number;
  readonly audit_id: string;
  readonly hash: string;
  readonly day: string;
}

type Last = Place & { readonly previous: number };
const BEGINNING: Last = { position: 0, audit_id: NO_ID, hash: '', day: '', previous: 0 };
const ENVIRONMENTS_AT_ONCE = 20;

/** Signs where chains stand: the last row of every day that has rows, and the head. */
export class AuditAnchors {
  readonly #ctx: AnchorContext;
  readonly #key: AuditKey;
  /** Heads that moved before this were signed by this process; the first round looks at all. */
  #from = new Date(0).toISOString();

  constructor(ctx: AnchorContext, key: AuditKey) {
    this.#ctx = ctx;
    this.#key = key;
  }

  /** Signs every head that moved, some environments at a time. */
  async sign(signal: AbortSignal): Promise<void> {
    for (let after = { ts: this.#from, env_id: NO_ID }; !signal.aborted; ) {
      const heads = await this.#ctx.db.sql<{ env_id: string; ts: string; signed: boolean }[]>`
        select env_id, ts, exists (select 1 from audit_anchors anchor where anchor.env_id = head.env_id and anchor.position = head.position and anchor.hash = head.hash) as signed
        from audit_heads head where (ts, env_id) > (${after.ts}::timestamptz, ${after.env_id}::uuid) order by ts, env_id limit ${ENVIRONMENTS_AT_ONCE}`;
      // Another process may have signed some of them.
      const moved = heads.flatMap(({ env_id, signed }) => (signed ? [] : [env_id]));
      if (moved.length > 0) await this.#signHeads(moved);
      after = heads.at(-1) ?? after;
      // One that moves again within this millisecond is seen again.
      this.#from = new Date(Date.parse(after.ts) - 1).toISOString();
      if (heads.length < ENVIRONMENTS_AT_ONCE) return;
    }
  }

  async #signHeads(envIds: readonly string[]): Promise<void> {
    await this.#ctx.db.tx(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(hashtextextended('audit anchor ' || env_id, 0)) from (select unnest(${envIds}::uuid[]) as env_id order by 1) asked`;
      const lasts = await this.#lasts(sql, envIds);
      const places = await Promise.all(envIds.map(envId => unsigned(sql, envId, lasts.get(envId) ?? BEGINNING)));
      const statements = envIds.flatMap((envId, index) => this.#statements(envId, lasts.get(envId) ?? BEGINNING, places[index] as Place[]));
      if (statements.length === 0) return;
      const anchors = await Promise.all(statements.map(async ({ day, ...statement }) => ({ ...statement, day, key_id: this.#key.id, signature: await this.#key.sign(statement) })));
      await sql`
        insert into audit_anchors (env_id, day, position, previous, audit_id, hash, signed_at, key_id, signature)
        select env_id, day, position, previous, audit_id, decode(hash, 'hex'), to_timestamp(at / 1000.0), key_id, decode(signature, 'hex')
        from json_to_recordset(${JSON.stringify(anchors)}::text::json) as anchor(
          env_id uuid, day date, position bigint, previous bigint, audit_id uuid, hash text, at bigint, key_id text, signature text)
        on conflict (env_id, day) do update set position = excluded.position, previous = excluded.previous, audit_id = excluded.audit_id, hash = excluded.hash,
          signed_at = excluded.signed_at, key_id = excluded.key_id, signature = excluded.signature`;
    });
  }

  /** One for every day since the last anchor, each naming the one before it. */
  #statements(envId: string, since: Last, places: readonly Place[]): (Statement & { readonly day: string })[] {
    const statements: (Statement & { readonly day: string })[] = [];
    let last = since;
    for (const { position, day, audit_id, hash } of places) {
      // Somebody put rows in place of signed ones. Verification names them; the other environments are signed all the same.
      if (position <= last.position) {
        this.#ctx.log.error({ env_id: envId, position }, 'the audit trail does not go on where it was signed; it is signed no further');
        break;
      }
      const previous = day === last.day ? last.previous : last.position;
      statements.push({ kind: 'anchor', env_id: envId, position, previous, audit_id, hash, at: this.#ctx.clock.now().getTime(), day });
      last = { position, audit_id, hash, day, previous };
    }
    return statements;
  }

  /** Where these chains were signed last; behind a cut that took all anchors, the cut. */
  async #lasts(sql: Sql, envIds: readonly string[]): Promise<Map<string, Last>> {
    const [anchors, cuts] = await Promise.all([
      sql<(Last & { env_id: string })[]>`
        select anchor.* from unnest(${envIds}::uuid[]) env cross join lateral (
          select env_id, position, audit_id, encode(hash, 'hex') as hash, day::text as day, previous from audit_anchors where env_id = env order by day desc limit 1) anchor`,
      sql<(Place & { env_id: string })[]>`select env_id, position, audit_id, encode(hash, 'hex') as hash, '' as day from audit_cuts where env_id = any(${envIds}::uuid[])`,
    ]);
    return new Map([...cuts.map(cut => ({ ...cut, previous: 0 })), ...anchors].map(last => [last.env_id, last]));
  }
}

/** The last row of every day since `last`, one step of the index for each day; the newest is the head. */
function unsigned(sql: Sql, envId: string, last: Place): Promise<Place[]> {
  const nextDay = sql`(lpad(to_hex((step.day + 1 - date '1970-01-01') * 86400000::bigint), 12, '0') || repeat('0', 20))::uuid`;
  // Rows are compared whole, so that the index of an environment is walked and no other.
  return sql<Place[]>`
    with recursive step (day) as (
      (select ts::date from audit where (env_id, audit_id) > (${envId}::uuid, ${last.audit_id}::uuid) and env_id <= ${envId}::uuid order by env_id, audit_id limit 1)
      union all
      select following.day from step cross join lateral (
        select ts::date as day from audit where (env_id, audit_id) > (${envId}::uuid, ${nextDay}) and env_id <= ${envId}::uuid order by env_id, audit_id limit 1) following)
    select place.position, place.audit_id, encode(place.hash, 'hex') as hash, step.day::text as day from step cross join lateral (
      select position, audit_id, hash from audit where (env_id, audit_id) < (${envId}::uuid, ${nextDay}) and env_id >= ${envId}::uuid order by env_id desc, audit_id desc limit 1) place
    order by place.position`;
}
