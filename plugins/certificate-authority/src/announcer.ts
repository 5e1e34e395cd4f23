import type { Tx } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';
import type { Ctx } from './context.ts';

const ROOM = 256;

/** Queues events beside the operation they tell of. One that cannot be queued is dropped with a warning: the certificate is what was asked for (CA-086, C26). */
export class Announcer implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #underWay = new Set<Promise<void>>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  tell(event: string, write: (tx: Tx<typeof certificateAuthority>) => Promise<void>): void {
    if (this.#underWay.size >= ROOM) return this.#ctx.log.warn({ event_type: event }, 'event dropped: too many wait');
    const told = this.#ctx.db
      .tx(write)
      .catch(error => this.#ctx.log.warn({ err: error, event_type: event }, 'event dropped'))
      .finally(() => this.#underWay.delete(told));
    this.#underWay.add(told);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#underWay);
  }
}
