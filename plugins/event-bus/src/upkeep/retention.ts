import type { EventBusContext } from '../context.ts';
import type { DeadLetters } from '../consume/dead-letters.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { environmentsKey, FAMILIES_KEY, gapsKey, type StreamRef, streamKey } from '../stream/names.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { TRIM } from '../stream/trim-script.ts';

const KEPT_MS = 7 * 86_400_000;
const SEEN_MS = 86_400_000;
const STREAMS_PER_ROUND = 100;
/** A cut takes some ten thousand entries at most; a stream that outgrew that is cut again. */
const CUTS = 100;
const SWEEPS = 500;

/**
 * Lets go of what nobody will ask for: streams after seven days or a million entries, never what a group seen within a day still has
 * pending. What a group loses that way it is told (see `Gaps`).
 */
export class Retention {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #schedule: Schedule;
  readonly #deadLetters: DeadLetters;

  constructor(ctx: EventBusContext, parts: { inbox: Inbox; schedule: Schedule; deadLetters: DeadLetters }) {
    this.#ctx = ctx;
    this.#inbox = parts.inbox;
    this.#schedule = parts.schedule;
    this.#deadLetters = parts.deadLetters;
  }

  async trim(signal: AbortSignal): Promise<void> {
    const { kv } = this.#ctx;
    for (const family of (await kv.call('SMEMBERS', FAMILIES_KEY)) as string[]) {
      const refs = ((await kv.call('SMEMBERS', environmentsKey(family))) as string[]).map(env => ({ env, family }));
      for (let start = 0; start < refs.length && !signal.aborted; start += STREAMS_PER_ROUND)
        await this.#trim(refs.slice(start, start + STREAMS_PER_ROUND), signal);
    }
  }

  async sweep(signal: AbortSignal): Promise<void> {
    for (let sweeps = 0; sweeps < SWEEPS && !signal.aborted; sweeps++)
      if ((await this.#inbox.sweep()) + (await this.#schedule.sweep()) === 0) break;
    await this.#deadLetters.sweep(signal);
  }

  async #trim(refs: readonly StreamRef[], signal: AbortSignal): Promise<void> {
    const { kv, clock, config, log } = this.#ctx;
    const now = clock.now().getTime();
    let left = refs;
    for (let cuts = 0; left.length > 0 && cuts < CUTS && !signal.aborted; cuts++) {
      const answers = await kv.pipeline(
        left.map(ref => [
          'EVAL',
          TRIM,
          2,
          streamKey(ref),
          gapsKey(ref.env),
          `${now - KEPT_MS}-0`,
          config.streamEntries,
          now - SEEN_MS,
          ref.family,
        ]),
      );
      const fault = answers.find(answer => answer instanceof Error);
      if (fault) log.warn({ err: fault }, 'a stream cannot be cut');
      left = left.filter((_, index) => Number(answers[index]) > 0);
    }
  }
}
