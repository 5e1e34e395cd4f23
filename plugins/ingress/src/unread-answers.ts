import type { ServerResponse } from 'node:http';
import { FairShare } from '@platform/sdk';
import type { Ctx } from './context.ts';
import { cut, streamOf } from './refusal.ts';

/** How long a client may leave what lies ready for it, on a connection or a stream. */
export const SILENT_MS = 120_000;
const SWEEP_MS = 1_000;

interface Watched {
  readonly party: string;
  /** Since when something lies ready that the client does not take. */
  since: number | undefined;
  /** Among those that are counted. */
  place: Disposable | undefined;
}

/**
 * Answers that their client does not read: each keeps memory, and mostly a backend's connection. One that takes nothing for two minutes is
 * cut, whatever else the client says meanwhile, such as pings or one byte's room at a time; of one address so many are kept and no more,
 * the oldest goes first. What lies ready of one answer is bounded by the streams it is written to.
 */
export class UnreadAnswers {
  readonly #ctx: Ctx;
  readonly #share: FairShare;
  readonly #watched = new Map<ServerResponse, Watched>();
  #late = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#share = new FairShare({ total: ctx.config.unread, perParty: ctx.config.unreadPerAddress, atBound: 'end oldest' });
    ctx.own(ctx.every(SWEEP_MS, () => this.#sweep()));
  }

  get figures(): { readonly unread: number; readonly unread_late_total: number; readonly unread_ended_total: number } {
    return { unread: this.#share.size, unread_late_total: this.#late, unread_ended_total: this.#share.outcomes.ended };
  }

  watch(res: ServerResponse, party: string): void {
    const watched: Watched = { party, since: undefined, place: undefined };
    this.#watched.set(res, watched);
    res.on('drain', () => taken(watched));
    res.once('close', () => {
      taken(watched);
      this.#watched.delete(res);
    });
  }

  #sweep(): void {
    const now = this.#ctx.clock.now().getTime();
    for (const [res, watched] of this.#watched) {
      if ((streamOf(res) ?? res).writableLength === 0) taken(watched);
      else if (watched.since === undefined) watched.since = now;
      else if (now - watched.since >= SILENT_MS) {
        this.#late += 1;
        cut(res);
      } else watched.place ??= this.#share.admit(watched.party, () => cut(res));
    }
  }
}

function taken(watched: Watched): void {
  watched.since = undefined;
  watched.place?.[Symbol.dispose]();
  watched.place = undefined;
}
