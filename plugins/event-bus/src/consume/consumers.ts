import type { Caller, RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import type { Consumed } from '../../contract/schema/consumption.ts';
import type { StreamEntry } from '../../contract/schema/event.ts';
import { Appender } from '../stream/appender.ts';
import { environmentOf, type EventBusContext, familyOf, groupOf } from '../context.ts';
import type { Counters } from '../upkeep/counters.ts';
import { entryOf, type ReadEntry } from '../stream/entry.ts';
import { FamilyReader } from './family-reader.ts';
import type { Gaps } from './gaps.ts';
import type { Groups } from './groups.ts';
import { environmentsKey, type StreamRef } from '../stream/names.ts';
import type { Reader } from './reader.ts';
import type { Wake } from '../stream/wake.ts';

const MOST_FAMILY_READERS = 5_000;
const MOST_PENDING = 1_000;
const STREAMS_PER_ROUND = 100;

export interface ConsumerParts {
  readonly ctx: EventBusContext;
  readonly reader: Reader;
  readonly groups: Groups;
  readonly gaps: Gaps;
  readonly wake: Wake;
  readonly counters: Counters;
}

/** Pulls: one environment's stream, or a family over all environments (`env_id: "*"`, for workloads). */
export class Consumers {
  readonly #parts: ConsumerParts;
  readonly #families = new Map<string, FamilyReader>();

  constructor(parts: ConsumerParts) {
    this.#parts = parts;
  }

  async consume(request: RequestOf<typeof eventBus, 'consume'>): Promise<Consumed> {
    const { ctx, groups, gaps } = this.#parts;
    const { body, caller, signal } = request;
    const { count = 10, block_ms = 0, start = 'earliest', consumer = 'default', consumer_group } = body;
    const family = familyOf(ctx, body.stream_family);
    const group = groupOf(caller, consumer_group);
    // A group that is named after its one consumer is that process's own, and goes when the process is gone.
    if (consumer_group.endsWith(`.${consumer}`)) await groups.touch(family, group);
    const sees = visibility(caller, group, { everywhere: body.env_id === '*', types: body.types });
    const everywhere = body.env_id === '*' ? this.#family(caller, family, group) : undefined;
    const ref = everywhere ? { env: '*', family } : { env: environmentOf(ctx, request, body.env_id), family };
    const read = everywhere ? () => everywhere.read(consumer, count, start) : () => this.readStream(ref, group, consumer, count, start);
    if (body.pending)
      return { entries: (await this.#pending(everywhere ? undefined : ref, family, group, consumer)).filter(sees).map(entryOf) };
    const known = everywhere ? undefined : await gaps.of([ref], group);
    // Who has missed something is told at once.
    const waitMs = known && known.gaps.length > 0 ? 0 : block_ms;
    const entries = await this.#poll({ ref, group, consumer, read, sees, until: performance.now() + waitMs, signal });
    const missed = known ?? (everywhere as FamilyReader).takeGaps();
    if (missed.gaps.length === 0 || signal.aborted) return { entries };
    await missed.told();
    return { entries, gaps: missed.gaps };
  }

  async closeGroup({ body, caller }: RequestOf<typeof eventBus, 'closeGroup'>): Promise<{ closed: number }> {
    const { ctx, groups } = this.#parts;
    const family = familyOf(ctx, body.stream_family);
    if (caller.kind !== 'machine') throw ctx.problem('m2m_only', { detail: 'Groups over all environments belong to workloads.' });
    const group = groupOf(caller, body.consumer_group);
    this.#families.get(`${family}\n${group}`)?.[Symbol.dispose]();
    this.#families.delete(`${family}\n${group}`);
    return { closed: await groups.close(family, group) };
  }

  /** What a consumer has in its hands, on one stream or on those of every environment: how its successor under the same name goes on. */
  async #pending(ref: StreamRef | undefined, family: string, group: string, consumer: string): Promise<ReadEntry[]> {
    const { ctx, reader } = this.#parts;
    const refs = ref ? [ref] : ((await ctx.kv.call('SMEMBERS', environmentsKey(family))) as string[]).map(env => ({ env, family }));
    const entries: ReadEntry[] = [];
    for (let start = 0; start < refs.length && entries.length < MOST_PENDING; start += STREAMS_PER_ROUND)
      entries.push(...(await reader.held(refs.slice(start, start + STREAMS_PER_ROUND), group, consumer, MOST_PENDING)));
    return entries;
  }

  /** One stream: the abandoned first, then the new. */
  async readStream(ref: StreamRef, group: string, consumer: string, count: number, start: 'earliest' | 'latest'): Promise<ReadEntry[]> {
    const entries = await this.#parts.reader.abandoned([ref], group, consumer, count);
    if (entries.length < count) entries.push(...(await this.readNew(ref, group, consumer, count - entries.length, start)));
    return entries;
  }

  /** New entries; the group is made when it is missing. */
  async readNew(ref: StreamRef, group: string, consumer: string, count: number, start: 'earliest' | 'latest'): Promise<ReadEntry[]> {
    const { ctx, reader, groups } = this.#parts;
    const first = await reader.fresh([ref], group, consumer, count);
    if (first.missing.length === 0) return first.entries;
    await groups.create([ref], group, start === 'earliest' ? '0' : '$');
    await ctx.kv.pipeline(Appender.known([ref]));
    return (await reader.fresh([ref], group, consumer, count)).entries;
  }

  async #poll({
    ref,
    group,
    consumer,
    read,
    sees,
    until,
    signal,
  }: {
    ref: StreamRef;
    group: string;
    consumer: string;
    read: () => Promise<ReadEntry[]>;
    sees: (entry: ReadEntry) => boolean;
    until: number;
    signal: AbortSignal;
  }): Promise<StreamEntry[]> {
    const { reader, wake, counters } = this.#parts;
    using waiter = wake.waiter(ref.family, ref.env, signal);
    for (;;) {
      const entries = await read();
      if (signal.aborted) {
        if (entries.length > 0) await reader.giveBack(entries, group, consumer);
        return [];
      }
      const visible = entries.filter(sees);
      await reader.acknowledge(
        entries.filter(entry => !visible.includes(entry)),
        group,
      );
      const left = until - performance.now();
      if (visible.length > 0 || left <= 0 || waiter.closed) {
        counters.consumed += visible.length;
        return visible.map(entryOf);
      }
      if (entries.length === 0) await waiter.wait(left);
    }
  }

  #family({ kind, vertical }: Caller, family: string, group: string): FamilyReader {
    const { ctx } = this.#parts;
    if (kind !== 'machine') throw ctx.problem('m2m_only', { detail: 'All environments at once are for workloads.' });
    if (vertical === undefined) throw ctx.problem('env_mismatch', { detail: 'The workload belongs to no vertical.' });
    const name = `${family}\n${group}`;
    let reader = this.#families.get(name);
    if (reader) this.#families.delete(name);
    reader ??= new FamilyReader(this.#parts, family, group);
    this.#families.set(name, reader);
    if (this.#families.size > MOST_FAMILY_READERS) {
      const [oldest, idle] = this.#families.entries().next().value as [string, FamilyReader];
      idle[Symbol.dispose]();
      this.#families.delete(oldest);
    }
    return reader;
  }
}

/**
 * Which entries a group gets: redelivered copies only in the group that refused them; over all environments, a vertical hears the platform
 * and itself. In one named environment consumption is unrestricted (doc2); what is not seen is acknowledged unread.
 */
export function visibility(
  { vertical }: Caller,
  group: string,
  asked: { everywhere: boolean; types?: readonly string[] | undefined },
): (entry: ReadEntry) => boolean {
  const restricted = asked.everywhere && vertical !== 'platform';
  // A replayed dead letter is the same event once more (C3, C18).
  const types = asked.types && new Set(asked.types.flatMap(type => [type, `${type}.replayed`]));
  return ({ envelope: { only_group, event_type } }) =>
    (only_group === undefined || only_group === group) &&
    (types === undefined || types.has(event_type)) &&
    (!restricted || event_type.startsWith('platform:') || event_type.startsWith(`${vertical}:`));
}
