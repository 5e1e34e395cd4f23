import type { Ctx } from '../../context.ts';
import type { AuditKeys } from './audit-keys.ts';
import { NO_ID } from '../audit-row.ts';
import type { Signed } from '../audit-statement.ts';
import type { AuditWitness, Witnessed } from './audit-witness.ts';

type Anchor = Signed & { readonly day: string };

/** Each takes a check of a signature, and the process serves requests meanwhile. */
const AT_ONCE = 25;
const PAGE = 500;
const MOST_TOLD = 1_000;
const ALL_AGAIN_MS = 3_600_000;
/** Clocks of other machines may be behind by as much. */
const OVERLAP_MS = 60_000;

/** Takes note of what was signed on any machine, and says at once when the database no longer holds what it had. */
export class AuditWatch {
  readonly #ctx: Ctx;
  readonly #keys: AuditKeys;
  readonly #witness: AuditWitness;
  #from = 0;
  #allAt = 0;
  /** When each of those that were signed lately was signed, as it was looked at. */
  #looked: ReadonlyMap<string, number> = new Map();
  /** Whose fault was told since everything was looked at. */
  readonly #told = new Set<string>();

  constructor(ctx: Ctx, parts: { keys: AuditKeys; witness: AuditWitness }) {
    this.#ctx = ctx;
    this.#keys = parts.keys;
    this.#witness = parts.witness;
  }

  /** What was signed lately; at first and once an hour everything, for what was put back is not new. */
  async look(signal: AbortSignal): Promise<void> {
    await this.#keys.refresh();
    const now = this.#ctx.clock.now().getTime();
    if (now - this.#allAt < ALL_AGAIN_MS) return this.#recent(signal);
    this.#told.clear();
    await this.#all(signal);
    this.#from = now - OVERLAP_MS;
    if (!signal.aborted) this.#allAt = now;
  }

  async #all(signal: AbortSignal): Promise<void> {
    for (let after = NO_ID; !signal.aborted; ) {
      const heads = await this.#ctx.db.sql<
        { env_id: string }[]
      >`select env_id from audit_heads where env_id > ${after}::uuid order by env_id limit ${AT_ONCE}`;
      const ids = [...new Set([...heads, ...this.#witness.environments(after, AT_ONCE)].map(({ env_id }) => env_id))]
        .sort()
        .slice(0, AT_ONCE);
      const last = ids.at(-1);
      if (last === undefined) return;
      await this.#compare(ids);
      after = last;
    }
  }

  async #recent(signal: AbortSignal): Promise<void> {
    const looked = new Map<string, number>();
    for (let after = { at: this.#from, env_id: NO_ID }; !signal.aborted; ) {
      const rows = await this.#ctx.db.sql<{ env_id: string; at: number }[]>`
        select env_id, (extract(epoch from signed_at) * 1000)::bigint as at from audit_anchors
        where (signed_at, env_id) > (to_timestamp(${after.at}::bigint / 1000.0), ${after.env_id}::uuid) order by signed_at, env_id
          limit ${PAGE}`;
      const last = rows.at(-1);
      const signed = rows.filter(({ env_id, at }) => this.#looked.get(env_id) !== at).map(({ env_id }) => env_id);
      for (let first = 0; first < signed.length && !signal.aborted; first += AT_ONCE)
        await this.#compare([...new Set(signed.slice(first, first + AT_ONCE))]);
      for (const { env_id, at } of rows) looked.set(env_id, at);
      if (last) this.#from = Math.max(this.#from, last.at - OVERLAP_MS);
      if (!last || rows.length < PAGE) break;
      after = last;
    }
    this.#looked = looked;
  }

  /**
   * A mark moves on only from where the database still holds it: who put an older state back is found out however long the chain grows
   * after.
   */
  async #compare(envIds: readonly string[]): Promise<void> {
    const marks = this.#witness.newest(envIds);
    const { sql } = this.#ctx.db;
    const [anchors, rows, cuts] = await Promise.all([
      sql<Anchor[]>`
        select anchor.* from unnest(${envIds}::uuid[]) env cross join lateral (
          select env_id, position, previous, audit_id, encode(hash, 'hex') as hash, (extract(epoch from signed_at) * 1000)::bigint as at,
            key_id, encode(signature, 'hex') as signature, day::text as day
          from audit_anchors where env_id = env order by day desc limit 1) anchor`,
      sql<{ env_id: string; position: number; hash: string }[]>`
        select env_id, position, encode(hash, 'hex') as hash from audit
          where audit_id = any(${[...marks.values()].map(({ audit_id }) => audit_id)}::uuid[])`,
      sql<Signed[]>`
        select env_id, position, 0 as previous, audit_id, encode(hash, 'hex') as hash, (extract(epoch from cut_at) * 1000)::bigint as at,
          key_id, encode(signature, 'hex') as signature
        from audit_cuts where env_id = any(${envIds}::uuid[])`,
    ]);
    const newest = new Map(anchors.map(anchor => [anchor.env_id, anchor]));
    const held = new Set(rows.map(({ env_id, position, hash }) => `${env_id} ${position} ${hash}`));
    // A cut matters where it took a mark along.
    const passed = cuts.filter(
      found =>
        (this.#witness.oldest(found.env_id) ?? Number.POSITIVE_INFINITY) <= found.position && this.#keys.verify({ ...found, kind: 'cut' }),
    );
    const cut = new Map(passed.map(found => [found.env_id, found]));
    const seen: Witnessed[] = [];
    for (const envId of envIds) {
      const [mark, anchor] = [marks.get(envId), newest.get(envId)];
      const holds = !mark || held.has(`${envId} ${mark.position} ${mark.hash}`) || (cut.get(envId)?.position ?? 0) >= mark.position;
      if (!holds) {
        if (this.#told.has(envId) || this.#told.size >= MOST_TOLD) continue;
        this.#told.add(envId);
        this.#ctx.log.error(
          { env_id: envId, position: mark.position, signed_to: anchor?.position ?? 0 },
          'the audit trail is not what it was when it was seen signed: an earlier state was put back',
        );
      } else if (anchor && anchor.position > (mark?.position ?? 0) && this.#keys.verify({ ...anchor, kind: 'anchor' })) seen.push(anchor);
    }
    this.#witness.note(seen, passed);
  }
}
