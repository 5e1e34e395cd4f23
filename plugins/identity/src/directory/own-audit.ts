import type { RequestOf } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';

const SERVICE = 'auth';
const DEFAULT_LIMIT = 100;

interface Row {
  readonly audit_id: string;
  readonly ts: string;
  readonly env_id: string;
  readonly entry: {
    readonly action: string;
    readonly actor?: { readonly kind: 'user' | 'workload'; readonly id: string; readonly act?: string };
    readonly resource?: { readonly type: string; readonly id: string };
    readonly outcome: 'success' | 'denied' | 'error';
    readonly details?: Record<string, unknown>;
    readonly correlation_id: string;
    readonly occurred_at?: string;
  };
}

/**
 * What this service recorded, for when the canonical trail does not answer (IDN-024): the last 30 days of its own entries, each from the
 * transaction that made it true, delivered to the registry or not. It is neither chained nor signed, and `audit_id` is this service's own.
 */
export class OwnAudit {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /**
   * The registry's question and answer (G-SYS-13): everybody but platform administrators sees the own environment, whatever is asked for.
   */
  async list({ query, caller, env, targetEnvId }: RequestOf<Contract, 'listOwnAudit'>) {
    const {
      after_ts: afterTs,
      after_id: afterId,
      service,
      action = null,
      correlation_id: correlation = null,
      limit = DEFAULT_LIMIT,
    } = query;
    if ((afterTs === undefined) !== (afterId === undefined))
      throw this.#ctx.problem('keyset_incomplete', { detail: 'Send after_ts and after_id, or neither.' });
    if (afterTs !== undefined && Number.isNaN(Date.parse(afterTs)))
      throw this.#ctx.problem('invalid_cursor', { detail: 'after_ts is no time.' });
    const envId = caller.platformAdmin ? (query.env_id ?? targetEnvId ?? null) : env;
    const { sql } = this.#ctx.db;
    const rows =
      service !== undefined && service !== SERVICE
        ? []
        : await sql<Row[]>`
            select audit_id, ts, env_id, entry from own_audit
            where (${envId}::uuid is null or env_id = ${envId}) and (${afterId ?? null}::uuid is null or audit_id < ${afterId ?? null})
              and (${action}::text is null or action = ${action})
                and (${correlation}::text is null or entry ->> 'correlation_id' = ${correlation})
            order by audit_id desc limit ${limit + 1}`;
    const items = rows.slice(0, limit).map(({ audit_id, ts, env_id, entry }) => ({
      audit_id,
      ts: new Date(ts).toISOString(),
      service: SERVICE as 'auth',
      env_id,
      ...entry,
      actor: entry.actor ?? { kind: 'workload' as const, id: SERVICE },
    }));
    const last = items.at(-1);
    return { items, next: rows.length > limit && last ? { after_ts: last.ts, after_id: last.audit_id } : null };
  }
}
