import { type Caller, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Audit } from '../../contract/schema/audit.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';

interface Entry {
  readonly action: string;
  readonly envId: string;
  readonly caller: Caller;
  readonly correlationId: string;
  readonly resource?: { readonly type: string; readonly id: string };
  readonly details?: Readonly<Record<string, unknown>>;
}

type Row = Omit<Audit, 'resource' | 'details'> & { resource: Audit['resource'] | null; details: Audit['details'] | null };

/** The canonical audit trail: append-only, service stamped from the certificate, listed newest first by keyset (G-SYS-13). */
export class AuditTrail {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** An internal write, in the transaction of what it records. */
  async write(tx: RegistryTx, { action, envId, caller, correlationId, resource, details }: Entry): Promise<void> {
    const actor =
      caller.kind === 'machine' ? { kind: 'workload' as const, id: caller.subject } : { kind: 'user' as const, id: caller.userId, ...(caller.kind === 'delegated' ? { act: caller.subject } : {}) };
    await this.#insert(tx, {
      audit_id: this.#ctx.platform.newId(),
      ts: this.#ctx.clock.now().toISOString(),
      service: 'sys',
      env_id: envId,
      action,
      actor,
      outcome: 'success',
      correlation_id: correlationId,
      ...(resource ? { resource } : {}),
      ...(details ? { details } : {}),
    });
  }

  /** `POST /v1/audit`. The idempotency key, where sent, is the row's id: a repeated delivery stores nothing twice. */
  async record({ body, caller, headers, correlationId }: RequestOf<Contract, 'recordAudit'>): Promise<{ audit_id: string }> {
    const key = headers['idempotency-key'];
    const auditId = key && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(key) ? key : this.#ctx.platform.newId();
    await this.#ctx.db.tx(async tx => {
      const [known] = await tx.sql<object[]>`select 1 from audit where audit_id = ${auditId}`;
      if (known) return;
      await this.#insert(tx, {
        audit_id: auditId,
        ts: body.occurred_at ?? this.#ctx.clock.now().toISOString(),
        // Who the certificate says, never what the body says.
        service: caller.service,
        env_id: body.env_id,
        action: body.action,
        actor: body.actor ?? { kind: 'workload', id: caller.subject },
        outcome: body.outcome ?? 'success',
        correlation_id: body.correlation_id ?? correlationId,
        ...(body.resource ? { resource: body.resource } : {}),
        ...(body.details ? { details: body.details } : {}),
      });
    });
    return { audit_id: auditId };
  }

  /** Non-administrators see their own environment, whatever they ask for. */
  async list({ query, caller, targetEnvId }: RequestOf<Contract, 'listAudit'>) {
    if ((query.after_ts === undefined) !== (query.after_id === undefined)) throw this.#ctx.problem('keyset_incomplete');
    if (query.after_ts !== undefined && Number.isNaN(Date.parse(query.after_ts))) throw this.#ctx.problem('invalid_cursor');
    const limit = query.limit ?? 100;
    const everywhere = caller.platformAdmin || (caller.kind === 'machine' && caller.vertical === 'platform');
    const envId = everywhere ? (query.env_id ?? targetEnvId ?? null) : (caller.envId ?? SYSTEM.envId);
    const rows = await this.#ctx.db.sql<Row[]>`
      select audit_id, ts, service, env_id, action, actor, resource, outcome, details, correlation_id from audit
      where (${envId}::uuid is null or env_id = ${envId}::uuid)
        and (${query.service ?? null}::text is null or service = ${query.service ?? null})
        and (${query.action ?? null}::text is null or action = ${query.action ?? null})
        and (${query.after_ts ?? null}::timestamptz is null or (ts, audit_id) < (${query.after_ts ?? null}::timestamptz, ${query.after_id ?? null}::uuid))
      order by ts desc, audit_id desc limit ${limit + 1}`;
    const items = rows.slice(0, limit).map(({ resource, details, ...row }) => ({ ...row, ...(resource ? { resource } : {}), ...(details ? { details } : {}) }));
    const last = items.at(-1);
    return { items, next: rows.length > limit && last ? { after_ts: last.ts, after_id: last.audit_id } : null };
  }

  /** Deletes what is past its retention, in bounded steps. */
  async forget(days: number, signal: AbortSignal): Promise<void> {
    const before = new Date(this.#ctx.clock.now().getTime() - days * 86_400_000).toISOString();
    for (let step = 0; step < 100 && !signal.aborted; step++) {
      const gone = await this.#ctx.db.tx(async tx => {
        await tx.sql`select set_config('platform.audit_retention', 'on', true)`;
        return tx.sql<object[]>`delete from audit where audit_id in (select audit_id from audit where ts < ${before} limit 5000) returning 1`;
      });
      if (gone.length < 5_000) return;
    }
  }

  async #insert(tx: RegistryTx, audit: Audit): Promise<void> {
    const { actor, resource, details, ...row } = audit;
    await tx.sql`insert into audit ${tx.sql.row({ ...row, actor: tx.sql.json(actor), resource: resource ? tx.sql.json(resource) : null, details: details ? tx.sql.json(details) : null })}`;
    // Bound to the system environment; the target is in the payload (doc1, Events).
    await tx.emit('platform:sys:audit:recorded', SYSTEM.envId, audit);
  }
}
