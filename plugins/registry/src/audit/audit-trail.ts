import type { Caller, RequestOf } from '@platform/sdk';
import type { Actor, NewAudit } from '../../contract/schema/audit.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { AuditChain, AuditDraft } from './proof/audit-chain.ts';
import { AuditIngest } from './audit-ingest.ts';

interface Entry {
  readonly action: string;
  readonly envId: string;
  readonly caller: Caller;
  readonly correlationId: string;
  /** The service that did it where the registry only keeps what is changed, and who it says asked for it. */
  readonly service?: string;
  readonly actor?: Actor;
  readonly resource?: { readonly type: string; readonly id: string };
  readonly details?: Readonly<Record<string, unknown>>;
}

const KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** An escape that JSON may write and Postgres cannot store: U+0000 and half a surrogate pair. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/** The canonical audit trail: append-only, the service stamped from the certificate (G-SYS-13). */
export class AuditTrail {
  readonly #ctx: Ctx;
  readonly #chain: AuditChain;
  readonly #ingest: AuditIngest;
  readonly #ends = new WeakMap<RegistryTx, AuditDraft[]>();

  constructor(ctx: Ctx, chain: AuditChain) {
    this.#ctx = ctx;
    this.#chain = chain;
    this.#ingest = new AuditIngest(ctx, chain);
  }

  /**
   * An internal write, in the transaction of what it records; all of one transaction are appended at its end, where the lock is held
   * briefly.
   */
  async write(tx: RegistryTx, entry: Entry): Promise<void> {
    const drafts = this.#ends.get(tx) ?? [];
    if (drafts.length === 0) {
      this.#ends.set(tx, drafts);
      tx.atEnd(async () => (await this.#chain.place(tx, drafts)).writes);
    }
    drafts.push(ownDraft(entry));
  }

  /** The only entry of a transaction that may turn out to have nothing to do. */
  writeIf(tx: RegistryTx, happened: PromiseLike<boolean>, entry: Entry): void {
    tx.atEnd(async () => (await this.#chain.place(tx, [ownDraft(entry)], happened)).writes);
  }

  /** `POST /v1/audit`. The idempotency key, where sent, makes a repeated delivery the first one's answer. */
  async record({ body, caller, headers, correlationId }: RequestOf<Contract, 'recordAudit'>): Promise<{ audit_id: string }> {
    return { audit_id: await this.#ingest.store(this.#draft(body, caller, { key: headers['idempotency-key'], correlationId })) };
  }

  /** The same for many, in their order: all are stored when it answers. */
  async recordMany({ body, caller, correlationId }: RequestOf<Contract, 'recordAudits'>): Promise<{ audit_ids: string[] }> {
    const drafts = body.events.map(({ idempotency_key: key, ...event }) => this.#draft(event, caller, { key, correlationId }));
    return { audit_ids: await Promise.all(drafts.map(draft => this.#ingest.store(draft))) };
  }

  #draft(
    event: NewAudit,
    caller: RequestOf<Contract, 'recordAudit'>['caller'],
    { key, correlationId }: { key: string | undefined; correlationId: string },
  ): AuditDraft {
    if (UNSTORABLE.test(JSON.stringify(event)))
      throw this.#ctx.problem('audit_unstorable', { detail: 'Leave U+0000 and lone surrogates out of every text.' });
    return {
      // Who the certificate says, never what the body says.
      service: caller.service,
      env_id: event.env_id,
      action: event.action,
      actor: JSON.stringify(event.actor ?? { kind: 'workload', id: caller.subject }),
      resource: event.resource ? JSON.stringify(event.resource) : null,
      outcome: event.outcome ?? 'success',
      details: event.details ? JSON.stringify(event.details) : null,
      correlation_id: event.correlation_id ?? correlationId,
      occurred_at: event.occurred_at === undefined ? null : Date.parse(event.occurred_at),
      delivery_key: key && KEY.test(key) ? key : null,
      subject: caller.subject,
    };
  }
}

/** What the registry itself did, or wrote for a service whose data it keeps. */
function ownDraft({ action, envId, caller, correlationId, service, actor, resource, details }: Entry): AuditDraft {
  return {
    service: service ?? 'sys',
    env_id: envId,
    action,
    actor: JSON.stringify(actor ?? actorOf(caller)),
    resource: resource ? JSON.stringify(resource) : null,
    outcome: 'success',
    details: details ? JSON.stringify(details) : null,
    correlation_id: correlationId,
    occurred_at: null,
    delivery_key: null,
  };
}

const actorOf = (caller: Caller): Actor =>
  caller.kind === 'machine'
    ? { kind: 'workload', id: caller.subject }
    : { kind: 'user', id: caller.userId, ...(caller.kind === 'delegated' ? { act: caller.subject } : {}) };
