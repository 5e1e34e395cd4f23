import { SYSTEM, type Sql } from '@platform/sdk';
import type { Ctx, RegistryTx } from '../../context.ts';
import { auditId } from '../audit-id.ts';
import { type AuditRow, chainHash, GENESIS, wireOf } from '../audit-row.ts';

/** What is to be recorded, before it has its place. */
export type AuditDraft = Omit<AuditRow, 'position' | 'audit_id' | 'ts'> & { readonly subject?: string };

interface Head {
  readonly env_id: string;
  position: number;
  hash: string;
}

const COUNTED = 1 << 26;

/** Appends to the chains: one lock for all of them, one statement for all rows, hashed in their order, told in the same transaction. */
export class AuditChain {
  readonly #now: () => Date;

  constructor(ctx: Pick<Ctx, 'clock'>) {
    this.#now = () => ctx.clock.now();
  }

  /** {@link place}, and the rows are written. */
  async append(tx: Pick<RegistryTx, 'sql' | 'emitAll'>, drafts: readonly AuditDraft[]): Promise<string[]> {
    const { ids, writes } = await this.place(tx, drafts);
    await Promise.all(writes);
    return ids;
  }

  /**
   * Answers the id of each draft, and what is still to be written; a delivery that is there already gets the id it has, and is stored and
   * told once. Locks until the transaction ends: call it last, and let the writes go out with the commit. Where `happened` turns out false
   * there is nothing to record; it is waited for together with what is asked here.
   */
  async place(
    tx: Pick<RegistryTx, 'sql' | 'emitAll'>,
    drafts: readonly AuditDraft[],
    happened?: PromiseLike<boolean>,
  ): Promise<{ ids: string[]; writes: readonly PromiseLike<unknown>[] }> {
    const { sql } = tx;
    // In this order on one connection: what is read after the lock was granted is the truth until commit.
    const [clock, heads, known, isToBeTold = true] = await Promise.all([
      // A statement is sent when somebody waits for it: this one before the others are made.
      sql<[{ ms: number; n: number }]>`select ms, n from audit_clock for update`.then(([row]) => row),
      sql<Head[]>`select env_id, position, encode(hash, 'hex') as hash from audit_heads
        where env_id = any(${[...new Set(drafts.map(({ env_id }) => env_id))]}::uuid[])`,
      delivered(sql, drafts),
      happened,
    ]);
    if (!isToBeTold) return { ids: [], writes: [] };
    const chains = new Map(heads.map(head => [head.env_id, head]));
    const rows: (AuditRow & { readonly hash: string })[] = [];
    const told: { readonly correlationId: string; readonly subject?: string }[] = [];
    let { ms, n } = clock;
    const now = this.#now().getTime();
    const ids = drafts.map(({ subject, ...draft }) => {
      const key = draft.delivery_key && `${draft.service} ${draft.delivery_key}`;
      const first = key ? known.get(key) : undefined;
      if (first) return first;
      [ms, n] = now > ms ? [now, 0] : n + 1 < COUNTED ? [ms, n + 1] : [ms + 1, 0];
      const chain = chains.get(draft.env_id) ?? { env_id: draft.env_id, position: 0, hash: GENESIS };
      const row: AuditRow = { ...draft, position: chain.position + 1, audit_id: auditId(ms, n), ts: ms };
      const hash = chainHash(chain.hash, row);
      chains.set(row.env_id, { env_id: row.env_id, position: row.position, hash });
      rows.push({ ...row, hash });
      told.push({ correlationId: row.correlation_id, ...(subject ? { subject } : {}) });
      if (key) known.set(key, row.audit_id);
      return row.audit_id;
    });
    if (rows.length === 0) return { ids, writes: [] };
    // Bound to the system environment; the target is in the payload (doc1, Events).
    await tx.emitAll(
      'platform:sys:audit:recorded',
      rows.map((row, index) => ({ envId: SYSTEM.envId, payload: wireOf(row), ...told[index] })),
    );
    return { ids, writes: [insert(sql, rows, { ms, n })] };
  }
}

async function delivered(sql: Sql, drafts: readonly AuditDraft[]): Promise<Map<string, string>> {
  const keyed = drafts.filter(({ delivery_key }) => delivery_key !== null);
  if (keyed.length === 0) return new Map();
  const rows = await sql<{ service: string; delivery_key: string; audit_id: string }[]>`
    select audit.service, audit.delivery_key, audit_id from audit
    join unnest(${keyed.map(({ service }) => service)}::text[],
      ${keyed.map(({ delivery_key }) => delivery_key)}::uuid[]) as asked (service, delivery_key)
      on audit.service = asked.service and audit.delivery_key = asked.delivery_key`;
  return new Map(rows.map(({ service, delivery_key, audit_id }) => [`${service} ${delivery_key}`, audit_id]));
}

/** The rows, the heads of their chains and the clock. Sent when it is awaited. */
function insert(
  sql: Sql,
  rows: readonly (AuditRow & { readonly hash: string })[],
  { ms, n }: { ms: number; n: number },
): PromiseLike<unknown> {
  return sql`
    with moved as (update audit_clock set ms = ${ms}, n = ${n}),
    stored as (
      insert into audit (audit_id, position, ts, service, env_id, action, actor, resource, outcome, details, correlation_id, occurred_at,
        delivery_key, hash)
      select audit_id, position, to_timestamp(ts / 1000.0), service, env_id, action, actor::json, resource::json, outcome, details::json,
        correlation_id,
             to_timestamp(occurred_at / 1000.0), delivery_key, decode(hash, 'hex')
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as row (audit_id uuid, position bigint, ts bigint, service text,
        env_id uuid, action text, actor text,
             resource text, outcome text, details text, correlation_id text, occurred_at bigint, delivery_key uuid, hash text)
      returning env_id, position, audit_id, ts, hash)
    insert into audit_heads (env_id, position, audit_id, ts, hash)
    select distinct on (env_id) env_id, position, audit_id, ts, hash from stored order by env_id, position desc
    on conflict (env_id) do update set position = excluded.position, audit_id = excluded.audit_id, ts = excluded.ts, hash = excluded.hash`;
}
