import { IDLE_MS, MAX_DELIVERIES } from '../../contract/schema/event.ts';
import type { EventBusContext } from '../context.ts';
import type { DeadLetters } from './dead-letters.ts';
import { envelopeOf, historyOf, type ReadEntry } from '../stream/entry.ts';
import { type StreamRef, streamKey } from '../stream/names.ts';

const LEAVE = `
local ok, rows = pcall(redis.call, 'XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if not ok or rows.err or #rows > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])`;

type RawEntry = [id: string, fields: string[] | null];

/** Reads streams in a group without blocking a connection: many streams are one round trip. */
export class Reader {
  readonly #ctx: EventBusContext;
  readonly #deadLetters: DeadLetters;

  constructor(ctx: EventBusContext, deadLetters: DeadLetters) {
    this.#ctx = ctx;
    this.#deadLetters = deadLetters;
  }

  /** New entries, at most `count` of each stream, and the streams that do not know the group. */
  async fresh(
    refs: readonly StreamRef[],
    group: string,
    consumer: string,
    count: number,
  ): Promise<{ entries: ReadEntry[]; perStream: number[]; missing: StreamRef[] }> {
    const answers = await this.#ctx.kv.pipeline(
      refs.map(ref => ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', count, 'STREAMS', streamKey(ref), '>']),
    );
    const entries: ReadEntry[] = [];
    const missing: StreamRef[] = [];
    let fault: Error | undefined;
    const perStream = refs.map((ref, index) => {
      const answer = answers[index];
      if (answer instanceof Error) {
        if (answer.message.startsWith('NOGROUP')) missing.push(ref);
        else fault ??= answer;
        return 0;
      }
      const read = entriesOf(answer).flatMap(raw => entryAt(ref, raw, 1));
      entries.push(...read);
      return read.length;
    });
    // What was read is pending for this consumer and would wait a minute: it is handed out rather than lost in a fault of another stream.
    if (fault && entries.length === 0) throw fault;
    return { entries, perStream, missing };
  }

  /** Entries that this consumer has read before and not settled, in their order; those that retention cut are let go. */
  async held(refs: readonly StreamRef[], group: string, consumer: string, count: number): Promise<ReadEntry[]> {
    const answers = await this.#ctx.kv.pipeline(
      refs.map(ref => ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', count, 'STREAMS', streamKey(ref), '0']),
    );
    const entries: ReadEntry[] = [];
    for (const [index, ref] of refs.entries()) {
      const rows = entriesOf(answers[index]);
      entries.push(...rows.flatMap(raw => entryAt(ref, raw, 2)));
      const cut = rows.filter(([, fields]) => !fields).map(([id]) => id);
      if (cut.length > 0) await this.#ctx.kv.call('XACK', streamKey(ref), group, ...cut);
    }
    return entries;
  }

  /** Entries that somebody took and left: ours now, unless they were handed out too often, which makes dead letters of them. */
  async abandoned(refs: readonly StreamRef[], group: string, consumer: string, count: number): Promise<ReadEntry[]> {
    const { kv } = this.#ctx;
    const pending = await kv.pipeline(refs.map(ref => ['XPENDING', streamKey(ref), group, 'IDLE', IDLE_MS, '-', '+', count]));
    const entries: ReadEntry[] = [];
    for (const [index, ref] of refs.entries()) {
      const rows = pending[index];
      if (!Array.isArray(rows) || rows.length === 0 || entries.length >= count) continue;
      const deliveries = new Map((rows as [string, string, number, number][]).map(([id, , , times]) => [id, times]));
      const claimed = await this.#claim(ref, group, consumer, [...deliveries.keys()].slice(0, count - entries.length));
      for (const raw of claimed) {
        for (const entry of entryAt(ref, raw, (deliveries.get(raw[0]) ?? 1) + 1)) {
          if (entry.deliveries <= MAX_DELIVERIES) entries.push(entry);
          else {
            const history = [...historyOf(entry.envelope), { at: this.#ctx.clock.now().toISOString(), reason: 'max_deliveries' }];
            await this.#deadLetters.bury(entry, group, { reason: 'max_deliveries', history, attempts: entry.deliveries - 1, consumer });
          }
        }
      }
    }
    return entries;
  }

  async acknowledge(entries: readonly ReadEntry[], group: string): Promise<void> {
    if (entries.length > 0) await this.#ctx.kv.pipeline(entries.map(({ ref, id }) => ['XACK', streamKey(ref), group, id]));
  }

  /** Gives back what its reader did not wait for: the next one need not wait for it to become idle. */
  async giveBack(entries: readonly ReadEntry[], group: string, consumer: string): Promise<void> {
    await this.#ctx.kv.pipeline(
      entries.map(({ ref, id }) => ['XCLAIM', streamKey(ref), group, consumer, 0, id, 'IDLE', IDLE_MS, 'JUSTID']),
    );
  }

  /** Takes a consumer out of its group when nothing waits in its name: what does is found by the others. */
  async leave(ref: StreamRef, group: string, consumer: string): Promise<void> {
    await this.#ctx.kv.call('EVAL', LEAVE, 1, streamKey(ref), group, consumer);
  }

  async pendingOf(ref: StreamRef, group: string): Promise<number> {
    const summary = (await this.#ctx.kv.call('XPENDING', streamKey(ref), group)) as [number, ...unknown[]];
    return summary[0];
  }

  async #claim(ref: StreamRef, group: string, consumer: string, ids: readonly string[]): Promise<RawEntry[]> {
    if (ids.length === 0) return [];
    // Checked again by the store: of two that look at once, one gets each entry.
    return (await this.#ctx.kv.call('XCLAIM', streamKey(ref), group, consumer, IDLE_MS, ...ids)) as RawEntry[];
  }
}

/** The entries of one stream's answer, which the client gives as a pair in a list or as the pair itself, by the protocol it speaks. */
function entriesOf(answer: unknown): RawEntry[] {
  if (!Array.isArray(answer)) return [];
  const pair = (Array.isArray(answer[0]) ? answer[0] : answer) as [string, RawEntry[] | undefined];
  return pair[1] ?? [];
}

function entryAt(ref: StreamRef, raw: RawEntry | null, deliveries: number): ReadEntry[] {
  return raw?.[1] ? [{ ref, id: raw[0], envelope: envelopeOf(raw[1]), deliveries }] : [];
}
