import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tx } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';
import type { Ctx } from './context.ts';

const ROOM = 256;
const BATCH = 64;

type Write = (tx: Tx<typeof certificateAuthority>) => Promise<void>;

/**
 * Queues events beside the operation they tell of; those that wait share a transaction. One that cannot be queued is dropped with a
 * warning: the certificate is what was asked for (CA-086, C26).
 */
export class Announcer implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #waiting: { readonly event: string; readonly write: Write }[] = [];
  #underWay: Promise<void> | undefined;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  tell(event: string, write: Write): void {
    if (this.#waiting.length >= ROOM) return this.#ctx.log.warn({ event_type: event }, 'event dropped: too many wait');
    // Under the correlation id of the request that it comes from.
    const own = AsyncLocalStorage.snapshot();
    this.#waiting.push({ event, write: tx => own(() => write(tx)) });
    this.#underWay ??= this.#send();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#underWay;
  }

  async #send(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH);
      const told = this.#ctx.db.tx(async tx => {
        for (const { write } of batch) await write(tx);
      });
      await told.catch(error => {
        for (const { event } of batch) this.#ctx.log.warn({ err: error, event_type: event }, 'event dropped');
      });
    }
    // In the same turn as the last look: what is told in the next one begins anew.
    this.#underWay = undefined;
  }
}
