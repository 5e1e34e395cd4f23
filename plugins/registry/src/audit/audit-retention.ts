import type { Ctx } from '../context.ts';
import type { AuditKeys } from './proof/audit-keys.ts';
import { NO_ID } from './audit-row.ts';
import { type Signed, statementText } from './audit-statement.ts';

const STEPS = 200;

/** Cuts whole prefixes behind a signed anchor: the cut is signed first, then the rows go in bounded steps, then the anchors before it. */
export class AuditRetention {
  readonly #ctx: Ctx;
  readonly #keys: AuditKeys;

  constructor(ctx: Ctx, keys: AuditKeys) {
    this.#ctx = ctx;
    this.#keys = keys;
  }

  /** Forgets days that ended more than `days` ago. What a stopped run left is taken up by the next. */
  async forget(days: number, signal: AbortSignal): Promise<void> {
    await this.#keys.refresh();
    const before = new Date(this.#ctx.clock.now().getTime() - days * 86_400_000).toISOString().slice(0, 10);
    const refused: string[] = [];
    for (let step = 0; step < STEPS && !signal.aborted; ) {
      const [anchor] = await this.#ctx.db.sql<Signed[]>`
        select env_id, position, previous, audit_id, encode(hash, 'hex') as hash, (extract(epoch from signed_at) * 1000)::bigint as at,
          key_id, encode(signature, 'hex') as signature
        from audit_anchors where env_id = (select env_id from audit_anchors where day < ${before} and env_id <> all(${refused}::uuid[])
          order by day limit 1) and day < ${before} order by day desc limit 1`;
      if (!anchor) return;
      // Behind what we did not sign nothing is thrown away: it may be all that shows who changed it.
      if (!this.#keys.verify({ ...anchor, kind: 'anchor' })) {
        this.#ctx.log.error(
          { env_id: anchor.env_id, position: anchor.position },
          'an anchor of the audit trail is not ours; nothing of this environment is forgotten until somebody looks',
        );
        refused.push(anchor.env_id);
        step += 1;
        continue;
      }
      await this.#sign(anchor);
      while (step++ < STEPS && !signal.aborted) {
        const gone = await this.#ctx.db.sql<object[]>`
          delete from audit where audit_id in (select audit_id from audit 
            where (env_id, audit_id) > (${anchor.env_id}::uuid, ${NO_ID}::uuid)
              and (env_id, audit_id) <= (${anchor.env_id}::uuid, ${anchor.audit_id}::uuid)
            order by env_id, audit_id limit 5000) returning 1`;
        if (gone.length === 5_000) continue;
        await this.#ctx.db.sql`delete from audit_anchors where env_id = ${anchor.env_id} and position <= ${anchor.position}`;
        break;
      }
    }
  }

  async #sign({ env_id, position, audit_id, hash }: Signed): Promise<void> {
    await this.#ctx.db.tx(async ({ sql }) => {
      const key = await this.#keys.inForce(sql);
      const at = Math.max(this.#ctx.clock.now().getTime(), this.#keys.since);
      const signature = await key.sign(statementText({ kind: 'cut', env_id, position, previous: 0, audit_id, hash, at }));
      await sql`
      insert into audit_cuts (env_id, position, audit_id, hash, cut_at, key_id, signature)
      values (${env_id}, ${position}, ${audit_id}, decode(${hash}, 'hex'), to_timestamp(${at}::bigint / 1000.0), ${key.id},
        decode(${signature}, 'hex'))
      on conflict (env_id) do update set position = excluded.position, audit_id = excluded.audit_id, hash = excluded.hash,
        cut_at = excluded.cut_at, key_id = excluded.key_id, signature = excluded.signature
        where excluded.position > audit_cuts.position`;
    });
  }
}
