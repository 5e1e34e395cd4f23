import type { RequestOf } from '@platform/sdk';
import type { AuditKeyEntry, AuditReceipt } from '../../../contract/schema/audit.ts';
import type { Contract, Ctx } from '../../context.ts';
import { isTrusted } from '../../tenants/access.ts';
import type { AuditKeys } from './audit-keys.ts';
import type { AuditTrail } from '../audit-trail.ts';
import type { AuditWitness } from './audit-witness.ts';
import { receiptText } from './receipt-text.ts';

const HEADS = 500;

/** What a verifier keeps elsewhere: the keys and how each came into force, and signed receipts of where the chains stand. */
export class AuditProofs {
  readonly #ctx: Ctx;
  readonly #keys: AuditKeys;
  readonly #witness: AuditWitness;
  readonly #audit: AuditTrail;

  constructor(ctx: Ctx, parts: { keys: AuditKeys; witness: AuditWitness; audit: AuditTrail }) {
    this.#ctx = ctx;
    this.#keys = parts.keys;
    this.#witness = parts.witness;
    this.#audit = parts.audit;
  }

  /** The key that a verifier may keep, so that nobody can put another in its place. */
  async key() {
    await this.#keys.refresh();
    const { id, publicKey } = this.#keys.current;
    return {
      algorithm: 'ML-DSA-65' as const,
      key_id: id,
      public_key: publicKey,
      keys: this.#entries(),
      witness_since: this.#witness.since,
    };
  }

  /** Newest first, the next one before them. */
  async list() {
    await this.#keys.refresh();
    const next = await this.#keys.awaited();
    const entries = this.#entries().reverse();
    const waiting: AuditKeyEntry[] = next
      ? [
          {
            seq: entries.length + 1,
            key_id: next.id,
            status: 'next',
            public_key: next.publicKey,
            since: null,
            by_previous: null,
            by_itself: null,
          },
        ]
      : [];
    return { items: [...waiting, ...entries], next_cursor: null };
  }

  /** Brings the key that the caller names into force. */
  async rotate({ params, caller, correlationId }: RequestOf<Contract, 'rotateAuditKey'>) {
    await this.#keys.rotate(params.key_id, { audit: this.#audit, caller, correlationId });
    return this.list();
  }

  /** Some heads at a time, by the environment's id. */
  async receipt({ query, caller }: RequestOf<Contract, 'auditReceipt'>): Promise<AuditReceipt> {
    if (!isTrusted(caller)) throw this.#ctx.problem('platform_admin_required');
    await this.#keys.refresh();
    const key = this.#keys.current;
    const spec = { list: 'audit receipt', order: { env_id: 'id' }, ascending: true } as const;
    const { items: heads, next_cursor } = await this.#ctx.page(
      { limit: HEADS, ...query },
      spec,
      ({ where, order, limit }) => this.#ctx.db.sql<AuditReceipt['heads']>`
        select env_id, position, encode(hash, 'hex') as hash from audit_heads where ${where} order by ${order} limit ${limit}`,
    );
    const page = { at: this.#ctx.clock.now().toISOString(), key_id: key.id, after: query.cursor ?? null, heads, next_cursor };
    return { ...page, signature: await key.sign(receiptText(page)) };
  }

  #entries(): AuditKeyEntry[] {
    const { entries, current } = this.#keys;
    return entries.map(({ since, ...entry }) => ({
      ...entry,
      status: entry.key_id === current.id ? ('current' as const) : ('retired' as const),
      since: since === 0 ? null : new Date(since).toISOString(),
    }));
  }
}
