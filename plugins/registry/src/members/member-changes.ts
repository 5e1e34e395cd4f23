import { isProblem, SYSTEM } from '@platform/sdk';
import type { Ctx, RegistryTx } from '../context.ts';

/**
 * Transactions that wait for the identity service hold a connection each; the pool must keep some for everybody else, identity included.
 */
const AT_ONCE = 2;
const WAITING = 200;
const IDENTITY_MS = 10_000;
/** Longer than any change can last: what is on record for longer has ended without its commit. */
const BROKEN_AFTER_MS = 60_000;

export const brokenAt = ({ clock }: Pick<Ctx, 'clock'>): Date => new Date(clock.now().getTime() + BROKEN_AFTER_MS);

/**
 * Changes of an organization's members and invitations: one at a time per organization on every process, an identity verb last in the
 * transaction (C7).
 */
export class MemberChanges {
  readonly #ctx: Ctx;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async run<T>(orgId: string, work: (tx: RegistryTx) => Promise<T>): Promise<T> {
    await this.#turn();
    try {
      return await this.#ctx.db.tx(async tx => {
        await tx.sql`select pg_advisory_xact_lock(hashtextextended(${`platform:sys:members:${orgId}`}, 0))`;
        return work(tx);
      });
    } finally {
      // A turn is handed on, not given back: nobody slips in between.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  /** Asks the identity service for a change, bounded; its failure is 502 and takes the transaction with it. */
  async ask<T>(verb: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await verb(AbortSignal.timeout(IDENTITY_MS));
    } catch (cause) {
      if (isProblem(cause) && cause.code === 'group_not_found')
        throw this.#ctx.problem('access_model_missing', {
          cause,
          detail: 'Its groups do not exist at the identity service. An administrator of the platform must repair it.',
        });
      if (isProblem(cause) && cause.code === 'user_not_found')
        throw this.#ctx.problem('not_org_member', { cause, detail: 'caller is not a member of the org' });
      throw this.#ctx.problem('identity_failed', { cause, detail: 'Try again in a moment.' });
    }
  }

  /** Tells everybody whose access is another now. */
  async told(tx: RegistryTx, userId: string): Promise<void> {
    await tx.emit('platform:sys:identity:updated', SYSTEM.envId, { env_id: SYSTEM.envId, subject_ids: [userId] });
  }

  async #turn(): Promise<void> {
    if (this.#running < AT_ONCE) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= WAITING) throw this.#ctx.problem('members_busy', { headers: { 'retry-after': '2' } });
    await new Promise<void>(resolve => this.#waiting.push(resolve));
  }
}
