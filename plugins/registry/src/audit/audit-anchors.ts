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

  /** Signs every head that moved. */
  async sign(signal: AbortSignal): Promise<void> {
    for (let after = { ts: this.#from, env_id: NO_ID }; ; ) {
      const heads = await this.#ctx.db.sql<{ env_id: string; ts: string }[]>`
        select env_id, ts from audit_heads where (ts, env_id) > (${after.ts}::timestamptz, ${after.env_id}::uuid) order by ts, env_id limit 200`;
      for (const head of heads) {
        if (signal.aborted) return;
        await this.#signEnv(head.env_id);
        after = head;
        // One that moves again within this millisecond is seen again.
        this.#from = new Date(Date.parse(head.ts) - 1).toISOString();
      }
      if (heads.length < 200) return;
    }
  }

  async #signEnv(envId: string): Promise<void> {
    await this.#ctx.db.tx(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${`audit anchor ${envId}`}, 0))`;
      let last = await this.#last(sql, envId);
      for (const place of await unsigned(sql, envId, last)) {
        // Somebody put rows in place of signed ones. Verification names them; the other environments are signed all the same.
        if (place.position <= last.position) return this.#ctx.log.error({ env_id: envId, position: place.position }, 'the audit trail does not go on where it was signed; it is signed no further');
        const statement = {
          kind: 'anchor',
          env_id: envId,
          position: place.position,
          previous: place.day === last.day ? last.previous : last.position,
          audit_id: place.audit_id,
          hash: place.hash,
          at: this.#ctx.clock.now().getTime(),
        } as const;
        await sql`
          insert into audit_anchors (env_id, day, position, previous, audit_id, hash, signed_at, key_id, signature)
          values (${envId}, ${place.day}, ${statement.position}, ${statement.previous}, ${statement.audit_id}, decode(${statement.hash}, 'hex'), to_timestamp(${statement.at}::bigint / 1000.0), ${this.#key.id}, decode(${this.#key.sign(statement)}, 'hex'))
          on conflict (env_id, day) do update set position = excluded.position, previous = excluded.previous, audit_id = excluded.audit_id, hash = excluded.hash,
            signed_at = excluded.signed_at, key_id = excluded.key_id, signature = excluded.signature`;
        last = { ...place, previous: statement.previous };
      }
    });
  }

  /** Where this chain was signed last; behind a cut that took all anchors, the cut. */
  async #last(sql: Sql, envId: string): Promise<Place & { previous: number }> {
    const [anchor] = await sql<(Place & { previous: number })[]>`
      select position, audit_id, encode(hash, 'hex') as hash, day::text as day, previous from audit_anchors where env_id = ${envId} order by day desc limit 1`;
    const [cut] = anchor ? [] : await sql<Place[]>`select position, audit_id, encode(hash, 'hex') as hash, '' as day from audit_cuts where env_id = ${envId}`;
    return anchor ?? { position: 0, audit_id: NO_ID, hash: '', day: '', ...cut, previous: 0 };
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
