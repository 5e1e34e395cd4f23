import type { EventBusContext } from './context.ts';
import type { DeadLetters } from './dead-letters.ts';
import type { Inbox } from './inbox.ts';
import { environmentsKey, FAMILIES_KEY, type StreamRef, streamKey } from './names.ts';
import { record } from './streams.ts';

const KEPT_MS = 7 * 86_400_000;
const SEEN_MS = 86_400_000;
const CONSUMER_IDLE_MS = 3_600_000;
const STREAMS_PER_ROUND = 100;
const SWEEPS = 500;

/** Lets go of what nobody will ask for: streams after seven days or a million entries, never what an active group still has pending. */
export class Retention {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #deadLetters: DeadLetters;

  constructor(ctx: EventBusContext, inbox: Inbox, deadLetters: DeadLetters) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#deadLetters = deadLetters;
  }

  async trim(signal: AbortSignal): Promise<void> {
    const { kv } = this.#ctx;
    for (const family of (await kv.call('SMEMBERS', FAMILIES_KEY)) as string[]) {
      const refs = ((await kv.call('SMEMBERS', environmentsKey(family))) as string[]).map(env => ({ env, family }));
      for (let start = 0; start < refs.length && !signal.aborted; start += STREAMS_PER_ROUND) await this.#trim(refs.slice(start, start + STREAMS_PER_ROUND));
    }
  }

  async sweep(signal: AbortSignal): Promise<void> {
    for (let sweeps = 0; sweeps < SWEEPS && !signal.aborted; sweeps++) if ((await this.#inbox.sweep()) === 0) break;
    await this.#deadLetters.sweep(signal);
  }

  async #trim(refs: readonly StreamRef[]): Promise<void> {
    const { kv, clock, config } = this.#ctx;
    const horizon = `${clock.now().getTime() - KEPT_MS}-0`;
    const infos = await kv.pipeline(refs.map(ref => ['XINFO', 'STREAM', streamKey(ref)]));
    for (const [index, ref] of refs.entries()) {
      const answer = infos[index];
      if (!Array.isArray(answer)) continue;
      const info = record(answer);
      const length = Number(info['length']);
      const first = Array.isArray(info['first-entry']) ? String(info['first-entry'][0]) : undefined;
      const tooOld = first !== undefined && before(first, horizon);
      if (!tooOld && length <= config.streamEntries) continue;
      const protectedFrom = await this.#oldestPending(ref);
      // Approximately: the store cuts whole nodes, and never too many.
      if (tooOld) await kv.call('XTRIM', streamKey(ref), 'MINID', '~', protectedFrom !== undefined && before(protectedFrom, horizon) ? protectedFrom : horizon);
      if (length > config.streamEntries) await this.#cutToLength(ref, protectedFrom);
    }
  }

  async #cutToLength(ref: StreamRef, protectedFrom: string | undefined): Promise<void> {
    const { kv, config } = this.#ctx;
    if (protectedFrom === undefined) return void (await kv.call('XTRIM', streamKey(ref), 'MAXLEN', '~', config.streamEntries));
    // There is no cut by both: as many as are too many, and none from the pending entry on.
    const surplus = Number(await kv.call('XLEN', streamKey(ref))) - config.streamEntries;
    if (surplus > 0) await kv.call('XTRIM', streamKey(ref), 'MINID', '~', protectedFrom, 'LIMIT', surplus);
  }

  /** The oldest entry that a group seen within a day has not acknowledged. Consumers that are long gone are forgotten on the way. */
  async #oldestPending(ref: StreamRef): Promise<string | undefined> {
    const { kv } = this.#ctx;
    const key = streamKey(ref);
    const groups = ((await kv.call('XINFO', 'GROUPS', key)) as unknown[][]).map(record);
    let oldest: string | undefined;
    for (const { name, pending } of groups) {
      const consumers = ((await kv.call('XINFO', 'CONSUMERS', key, String(name))) as unknown[][]).map(record);
      const gone = consumers.filter(consumer => Number(consumer['pending']) === 0 && Number(consumer['idle']) > CONSUMER_IDLE_MS);
      if (gone.length > 0) await kv.pipeline(gone.map(consumer => ['XGROUP', 'DELCONSUMER', key, String(name), String(consumer['name'])]));
      if (Number(pending) === 0 || !consumers.some(({ idle }) => Number(idle) < SEEN_MS)) continue;
      const [, first] = (await kv.call('XPENDING', key, String(name))) as [number, string | null];
      if (first && (oldest === undefined || before(first, oldest))) oldest = first;
    }
    return oldest;
  }
}

function before(left: string, right: string): boolean {
  const [leftMs = 0n, leftSeq = 0n] = left.split('-').map(BigInt);
  const [rightMs = 0n, rightSeq = 0n] = right.split('-').map(BigInt);
  return leftMs === rightMs ? leftSeq < rightSeq : leftMs < rightMs;
}
