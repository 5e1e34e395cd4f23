import type { Sql } from '@platform/sdk';
import type { Ctx } from '../../context.ts';
import type { AuditKeys } from './audit-keys.ts';
import { NO_ID } from '../audit-row.ts';
import { type Signed, type Statement, statementText } from '../audit-statement.ts';

type AnchorContext = Pick<Ctx, 'clock' | 'log'> & {
  readonly db: { tx<T>(work: (tx: { readonly sql: Sql }) => Promise<T>): Promise<T>; readonly sql: Sql };
};
interface Place {
  readonly position: number;
  readonly audit_id: string;
  readonly hash: string;
  readonly day: string;
}

/** What was signed last: an anchor, or the cut behind which there is none. */
type Last = Place & Pick<Signed, 'previous' | 'at' | 'key_id' | 'signature'> & { readonly kind: Statement['kind'] };
const BEGINNING: Last = { kind: 'anchor', position: 0, audit_id: NO_ID, hash: '', day: '', previous: 0, at: 0, key_id: '', signature: '' };
const ENVIRONMENTS_AT_ONCE = 20;
const BEGINNING_OF_TIME = new Date(0).toISOString();

/**
 * Signs where chains stand: the last row of every day that has rows, and the head. What a retired key signed last the key in force
 * confirms.
 */
export class AuditAnchors {
  readonly #ctx: AnchorContext;
  readonly #keys: AuditKeys;
  /** Heads that moved before this were signed by this process, with this key; the first round looks at all. */
  #from = BEGINNING_OF_TIME;
  #signedBy = '';

  constructor(ctx: AnchorContext, keys: AuditKeys) {
    this.#ctx = ctx;
    this.#keys = keys;
  }

  /** Signs every head that moved, some environments at a time. */
  async sign(signal: AbortSignal): Promise<void> {
    await this.#keys.refresh();
    const { id: keyId } = this.#keys.current;
    if (keyId !== this.#signedBy) [this.#from, this.#signedBy] = [BEGINNING_OF_TIME, keyId];
    for (let after = { ts: this.#from, env_id: NO_ID }; !signal.aborted; ) {
      const heads = await this.#ctx.db.sql<{ env_id: string; ts: string; signed: boolean }[]>`
        select env_id, ts,
          exists (select 1 from audit_anchors anchor where anchor.env_id = head.env_id and anchor.position = head.position
            and anchor.hash = head.hash and anchor.key_id = ${keyId})
          and not exists (select 1 from audit_cuts cut where cut.env_id = head.env_id and cut.key_id <> ${keyId}) as signed
        from audit_heads head where (ts, env_id) > (${after.ts}::timestamptz, ${after.env_id}::uuid) order by ts, env_id
          limit ${ENVIRONMENTS_AT_ONCE}`;
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
      const key = await this.#keys.inForce(sql);
      await sql`select pg_advisory_xact_lock(hashtextextended('audit anchor ' || env_id, 0))
        from (select unnest(${envIds}::uuid[]) as env_id order by 1) asked`;
      const { anchors: lasts, cuts } = await this.#lasts(sql, envIds);
      const behind = (envId: string) => lasts.get(envId) ?? cuts.get(envId) ?? BEGINNING;
      const places = await Promise.all(envIds.map(envId => unsigned(sql, envId, behind(envId))));
      const at = Math.max(this.#ctx.clock.now().getTime(), this.#keys.since);
      // One at a time: all at once they would take every core from the requests, and nobody waits for them.
      const sign = <S extends Statement>(statements: readonly S[]) =>
        Array.fromAsync(statements, async statement => ({
          ...statement,
          key_id: key.id,
          signature: await key.sign(statementText(statement)),
        }));
      const anchors = await sign(
        envIds.flatMap((envId, index) =>
          this.#statements(envId, { since: behind(envId), places: places[index] as Place[], at, keyId: key.id }),
        ),
      );
      const confirmed = await sign(envIds.flatMap(envId => this.#confirmed(envId, cuts.get(envId), { at, keyId: key.id })));
      if (anchors.length > 0)
        await sql`
        insert into audit_anchors (env_id, day, position, previous, audit_id, hash, signed_at, key_id, signature)
        select env_id, day, position, previous, audit_id, decode(hash, 'hex'), to_timestamp(at / 1000.0), key_id, decode(signature, 'hex')
        from json_to_recordset(${JSON.stringify(anchors)}::text::json) as anchor(
          env_id uuid, day date, position bigint, previous bigint, audit_id uuid, hash text, at bigint, key_id text, signature text)
        on conflict (env_id, day) do update set position = excluded.position, previous = excluded.previous, audit_id = excluded.audit_id,
          hash = excluded.hash,
          signed_at = excluded.signed_at, key_id = excluded.key_id, signature = excluded.signature`;
      for (const cut of confirmed)
        await sql`update audit_cuts set cut_at = to_timestamp(${cut.at}::bigint / 1000.0), key_id = ${cut.key_id},
          signature = decode(${cut.signature}, 'hex')
          where env_id = ${cut.env_id} and position = ${cut.position} and key_id <> ${cut.key_id}`;
    });
  }

  /**
   * One for every day since the last anchor, each naming the one before it; where there is none, the last anchor when a retired key signed
   * it.
   */
  #statements(
    envId: string,
    { since, places, at, keyId }: { since: Last; places: readonly Place[]; at: number; keyId: string },
  ): (Statement & { readonly day: string })[] {
    if (places.length === 0) return this.#confirmed(envId, since.kind === 'anchor' ? since : undefined, { at, keyId });
    const statements: (Statement & { readonly day: string })[] = [];
    let last: Pick<Last, 'position' | 'day' | 'previous'> = since;
    for (const { position, day, audit_id, hash } of places) {
      // Somebody put rows in place of signed ones. Verification names them; the other environments are signed all the same.
      if (position <= last.position) {
        this.#ctx.log.error({ env_id: envId, position }, 'the audit trail does not go on where it was signed; it is signed no further');
        break;
      }
      const previous = day === last.day ? last.previous : last.position;
      statements.push({ kind: 'anchor', env_id: envId, position, previous, audit_id, hash, at, day });
      last = { position, day, previous };
    }
    return statements;
  }

  /** The same statement for the key in force to sign; none where it was signed by another hand. */
  #confirmed(
    envId: string,
    last: Last | undefined,
    { at, keyId }: { at: number; keyId: string },
  ): (Statement & { readonly day: string })[] {
    if (!last || last.position === 0 || last.key_id === keyId) return [];
    const { key_id: _key, signature: _signature, ...statement } = last;
    if (this.#keys.verify({ ...last, env_id: envId })) return [{ ...statement, env_id: envId, at }];
    this.#ctx.log.error(
      { env_id: envId, position: last.position },
      'what a retired key should have signed is not signed by it; it is not confirmed',
    );
    return [];
  }

  /** Where these chains were signed last, and where they were cut. */
  async #lasts(sql: Sql, envIds: readonly string[]): Promise<{ anchors: ReadonlyMap<string, Last>; cuts: ReadonlyMap<string, Last> }> {
    const [anchors, cuts] = await Promise.all([
      sql<(Last & { env_id: string })[]>`
        select anchor.* from unnest(${envIds}::uuid[]) env cross join lateral (
          select 'anchor' as kind, env_id, position, audit_id, encode(hash, 'hex') as hash, day::text as day, previous,
            (extract(epoch from signed_at) * 1000)::bigint as at, key_id, encode(signature, 'hex') as signature
          from audit_anchors where env_id = env order by day desc limit 1) anchor`,
      sql<(Last & { env_id: string })[]>`
        select 'cut' as kind, env_id, position, audit_id, encode(hash, 'hex') as hash, '' as day, 0 as previous,
          (extract(epoch from cut_at) * 1000)::bigint as at, key_id, encode(signature, 'hex') as signature
        from audit_cuts where env_id = any(${envIds}::uuid[])`,
    ]);
    return { anchors: new Map(anchors.map(last => [last.env_id, last])), cuts: new Map(cuts.map(last => [last.env_id, last])) };
  }
}

/** The last row of every day since `last`, one step of the index for each day; the newest is the head. */
function unsigned(sql: Sql, envId: string, last: Place): Promise<Place[]> {
  const nextDay = sql`(lpad(to_hex((step.day + 1 - date '1970-01-01') * 86400000::bigint), 12, '0') || repeat('0', 20))::uuid`;
  // Rows are compared whole, so that the index of an environment is walked and no other.
  return sql<Place[]>`
    with recursive step (day) as (
      (select ts::date from audit where (env_id, audit_id) > (${envId}::uuid, ${last.audit_id}::uuid) and env_id <= ${envId}::uuid
        order by env_id, audit_id limit 1)
      union all
      select following.day from step cross join lateral (
        select ts::date as day from audit where (env_id, audit_id) > (${envId}::uuid, ${nextDay}) and env_id <= ${envId}::uuid
          order by env_id, audit_id limit 1) following)
    select place.position, place.audit_id, encode(place.hash, 'hex') as hash, step.day::text as day from step cross join lateral (
      select position, audit_id, hash from audit where (env_id, audit_id) < (${envId}::uuid, ${nextDay}) and env_id >= ${envId}::uuid
        order by env_id desc, audit_id desc limit 1) place
    order by place.position`;
}
