import { type DeliveryResult, type OutboxRow, unanswered } from './delivery.ts';
import type { RelayOptions } from './relay-options.ts';

/** The calls of the relay that carry the rows of one service, each with its deadline. */
export class RelayCalls {
  readonly #service: string;
  readonly #options: Pick<Required<RelayOptions>, 'clock' | 'deliver' | 'callTimeoutMs'>;
  /** Ends the calls under way. Not a signal they all hear: each that hangs on one that lasts would live until the next full collection. */
  readonly #underWay = new Set<(reason: Error) => void>();

  constructor(service: string, options: Pick<Required<RelayOptions>, 'clock' | 'deliver' | 'callTimeoutMs'>) {
    this.#service = service;
    this.#options = options;
  }

  /** What became of each row; a call that fails, or gets no answer in time, counts as unanswered for all of them. */
  async make(rows: readonly OutboxRow[]): Promise<readonly DeliveryResult[]> {
    const { clock, deliver, callTimeoutMs } = this.#options;
    const ended = new AbortController();
    const gone = Promise.withResolvers<never>();
    const giveUp = (reason: Error): void => {
      ended.abort(reason);
      gone.reject(reason);
    };
    const cancel = clock.after(callTimeoutMs, () => giveUp(new Error('no answer in time')));
    this.#underWay.add(giveUp);
    try {
      return await Promise.race([deliver(rows, { service: this.#service, signal: ended.signal }), gone.promise]);
    } catch (error) {
      return rows.map(() => unanswered(error instanceof Error ? error.message : String(error)));
    } finally {
      cancel();
      this.#underWay.delete(giveUp);
    }
  }

  giveUp(reason: Error): void {
    for (const giveUp of this.#underWay) giveUp(reason);
  }
}
