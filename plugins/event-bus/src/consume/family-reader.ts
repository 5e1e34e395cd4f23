import type { EventBusContext } from '../context.ts';
import type { ReadEntry } from '../stream/entry.ts';
import type { Gap } from '../../contract/schema/consumption.ts';
import type { Gaps } from './gaps.ts';
import type { Groups } from './groups.ts';
import { environmentsKey, type StreamRef } from '../stream/names.ts';
import type { Reader } from './reader.ts';
import type { Wake } from '../stream/wake.ts';

const LOOK_EVERY_MS = 10_000;
const STREAMS_PER_ROUND = 100;
const ROUNDS = 20;

/**
 * One group over all environments of a family, as this process sees it. Streams that were appended to are remembered and read in turn;
 * all of them are looked at now and then, for what a lost message or another process left.
 */
export class FamilyReader implements Disposable {
  readonly #ctx: EventBusContext;
  readonly #reader: Reader;
  readonly #groups: Groups;
  readonly #wake: Wake;
  readonly #gaps: Gaps;
  readonly #family: string;
  readonly #group: string;
  /** In the order they are served; one that had more goes to the end. */
  readonly #stirred = new Set<string>();
  readonly #listening: Disposable;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #found: { gaps: Gap[]; told: () => Promise<void> }[] = [];

  constructor(parts: { ctx: EventBusContext; reader: Reader; groups: Groups; wake: Wake; gaps: Gaps }, family: string, group: string) {
    this.#ctx = parts.ctx;
    this.#reader = parts.reader;
    this.#groups = parts.groups;
    this.#wake = parts.wake;
    this.#gaps = parts.gaps;
    this.#family = family;
    this.#group = group;
    this.#listening = parts.wake.onAppend(ref => {
      if (ref.family === family) this.#stirred.add(ref.env);
    });
  }

  /** Up to `count` entries, the abandoned first, each environment in its order and none before its turn. */
  async read(consumer: string, count: number, start: 'earliest' | 'latest'): Promise<ReadEntry[]> {
    const position = await this.#groups.position(this.#family, this.#group, start);
    const entries = await this.#look(consumer, count);
    for (let round = 0; round < ROUNDS && entries.length < count && this.#stirred.size > 0; round++) {
      const left = count - entries.length;
      const envs = [...this.#stirred].slice(0, Math.min(left, STREAMS_PER_ROUND));
      entries.push(...(await this.#serve(envs, consumer, Math.max(1, Math.floor(left / envs.length)), position, start)));
    }
    // Somebody else of this group may be waiting for what is left.
    if (this.#stirred.size > 0 && entries.length > 0) this.#wake.nudge(this.#family);
    return entries;
  }

  /** Gaps found since they were last asked for. */
  takeGaps(): { gaps: Gap[]; told: () => Promise<void> } {
    const found = this.#found.splice(0);
    return { gaps: found.flatMap(({ gaps }) => gaps), told: async () => void (await Promise.all(found.map(({ told }) => told()))) };
  }

  async #serve(
    envs: readonly string[],
    consumer: string,
    share: number,
    position: string,
    start: 'earliest' | 'latest',
  ): Promise<ReadEntry[]> {
    const refs: StreamRef[] = envs.map(env => ({ env, family: this.#family }));
    for (const env of envs) this.#stirred.delete(env);
    try {
      const { entries, perStream, missing } = await this.#reader.fresh(refs, this.#group, consumer, share);
      for (const [index, env] of envs.entries()) if ((perStream[index] as number) >= share) this.#stirred.add(env);
      if (missing.length > 0) {
        await this.#groups.create(
          missing,
          this.#group,
          await this.#groups.position(this.#family, this.#group, start, true).catch(() => position),
        );
        for (const { env } of missing) this.#stirred.add(env);
      }
      return entries;
    } catch (error) {
      for (const env of envs) this.#stirred.add(env);
      throw error;
    }
  }

  async #look(consumer: string, count: number): Promise<ReadEntry[]> {
    const now = this.#ctx.clock.now().getTime();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return [];
    const envs = (await this.#ctx.kv.call('SMEMBERS', environmentsKey(this.#family))) as string[];
    for (const env of envs) this.#stirred.add(env);
    const refs = envs.map(env => ({ env, family: this.#family }));
    const entries: ReadEntry[] = [];
    // What was found and not asked for is found again.
    this.#found = [];
    for (let at = 0; at < refs.length && entries.length < count; at += STREAMS_PER_ROUND) {
      const some = refs.slice(at, at + STREAMS_PER_ROUND);
      const found = await this.#gaps.of(some, this.#group);
      if (found.gaps.length > 0) this.#found.push(found);
      entries.push(...(await this.#reader.abandoned(some, this.#group, consumer, count - entries.length)));
    }
    // A full answer may have left some unseen: the next call looks again.
    if (entries.length < count) this.#lookedAt = now;
    return entries;
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]();
  }
}
