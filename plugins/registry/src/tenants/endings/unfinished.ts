import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { Unfinished as Row } from '../../../contract/schema/upkeep.ts';
import type { AuditTrail } from '../../audit/audit-trail.ts';
import type { Contract, Ctx } from '../../context.ts';
import { ABANDONED_S, type Creations } from './creations.ts';
import type { IdentityFollowUps } from './identity-follow-ups.ts';

/** For operators: creates that a dead process left behind and clean-ups that wait, newest first, each with what blocks it (H-32). */
export class Unfinished {
  readonly #ctx: Ctx;
  readonly #audit: AuditTrail;
  readonly #creations: Creations;
  readonly #followUps: IdentityFollowUps;

  constructor(ctx: Ctx, { audit, creations, followUps }: { audit: AuditTrail; creations: Creations; followUps: IdentityFollowUps }) {
    this.#ctx = ctx;
    this.#audit = audit;
    this.#creations = creations;
    this.#followUps = followUps;
  }

  async list({ query }: RequestOf<Contract, 'listUnfinished'>) {
    const waiting = (await this.#followUps.left()).map(({ payload, createdAt, attempts, dueAt, failure }) => ({
      ...payload,
      since: createdAt,
      attempts,
      next_try_at: dueAt,
      blocked_by: failure ?? 'nothing: it is about to be done',
    }));
    return this.#ctx.page(
      query,
      { list: 'unfinished', order: { since: 'time', id: 'id' } },
      ({ where, order, limit }) => this.#ctx.db.sql<Row[]>`
      select * from (
        select c.subject_id as id, c.subject_kind as kind, c.org_id, coalesce(e.slug, o.slug) as name, 'create' as work,
          c.started_at as since, 0 as attempts, null::timestamptz as next_try_at,
          'its process died before the access model was made: archive or delete it, then create it again' as blocked_by
        from creations c join orgs o using (org_id) left join envs e on e.env_id = c.subject_id
          where c.started_at < now() - make_interval(secs => ${ABANDONED_S})
        union all
        select id, kind, org_id, name, 'clean_up', since, attempts, next_try_at, blocked_by
          from jsonb_to_recordset(${this.#ctx.db.sql.json(waiting)})
          as row(id uuid, kind text, org_id uuid, name text, since timestamptz, attempts int, next_try_at timestamptz,
            blocked_by text)) unfinished
      where ${where} order by ${order} limit ${limit}`,
    );
  }

  async retry({ params, caller, correlationId, signal }: RequestOf<Contract, 'retryUnfinished'>) {
    const { sql } = this.#ctx.db;
    const left = async () =>
      (await this.#followUps.left(params.id)).length > 0 ||
      (
        await sql<
          object[]
        >`select 1 from creations where subject_id = ${params.id} and started_at < now() - make_interval(secs => ${ABANDONED_S})`
      ).length > 0;
    if (!(await left())) throw this.#ctx.problem('nothing_unfinished', { detail: 'It has ended in the meantime.' });
    const resource = { type: 'unfinished', id: params.id };
    await this.#ctx.db.tx(tx =>
      this.#audit.write(tx, { action: 'unfinished.retried', envId: SYSTEM.envId, caller, correlationId, resource }),
    );
    await this.#followUps.tryNow([{ id: params.id }]);
    await this.#creations.recover(signal);
    return { done: !(await left()) };
  }
}
