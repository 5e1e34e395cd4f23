import type { Ctx } from '../../context.ts';
import type { AuditRow } from '../audit-row.ts';
import type { Signed } from '../audit-statement.ts';

export interface ChainEnd {
  readonly head: { readonly position: number; readonly hash: string } | undefined;
  /** Position of the newest anchor, and the key that signed it. */
  readonly anchor: number;
  readonly signedBy: string | null;
}

/** What the database says of a chain: its rows, its end, and what was signed of it. */
export class StoredChain {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async end(envId: string): Promise<ChainEnd> {
    const [end] = await this.#ctx.db.sql<[{ position: number | null; hash: string | null; anchor: number | null; key_id: string | null }]>`
      select head.position, encode(head.hash, 'hex') as hash, last.position as anchor, last.key_id from (select) one
      left join audit_heads head on head.env_id = ${envId}
      left join lateral (select position, key_id from audit_anchors where env_id = ${envId} order by position desc limit 1) last on true`;
    return {
      head: end.position === null ? undefined : { position: end.position, hash: end.hash ?? '' },
      anchor: end.anchor ?? 0,
      signedBy: end.key_id,
    };
  }

  rows(envId: string, after: string): Promise<(AuditRow & { hash: string })[]> {
    return this.#ctx.db.sql`
      select env_id, position, audit_id, (extract(epoch from ts) * 1000)::bigint as ts, service, action, actor::text as actor,
        resource::text as resource, outcome,
             details::text as details, correlation_id, (extract(epoch from occurred_at) * 1000)::bigint as occurred_at, delivery_key,
               encode(hash, 'hex') as hash
      from audit where (env_id, audit_id) > (${envId}::uuid, ${after}::uuid) and env_id <= ${envId}::uuid order by env_id, audit_id
        limit 1000`;
  }

  async anchors(envId: string, after: number, to: number): Promise<ReadonlyMap<number, Signed>> {
    const rows = await this.#ctx.db.sql<Signed[]>`
      select env_id, position, previous, audit_id, encode(hash, 'hex') as hash, (extract(epoch from signed_at) * 1000)::bigint as at,
        key_id, encode(signature, 'hex') as signature
      from audit_anchors where env_id = ${envId} and position > ${after} and position <= ${to}`;
    return new Map(rows.map(row => [row.position, row]));
  }

  async cut(envId: string): Promise<Signed | undefined> {
    const [cut] = await this.#ctx.db.sql<Signed[]>`
      select env_id, position, 0 as previous, audit_id, encode(hash, 'hex') as hash, (extract(epoch from cut_at) * 1000)::bigint as at,
        key_id, encode(signature, 'hex') as signature
      from audit_cuts where env_id = ${envId}`;
    return cut;
  }
}
