import type { RequestOf } from '@platform/sdk';
import type { eventBus } from '../contract/index.ts';
import type { GroupLag, StreamRow } from '../contract/schema.ts';
import { environmentOf, type EventBusContext, familyOf } from './context.ts';
import type { Counters } from './counters.ts';
import type { DeadLetters } from './dead-letters.ts';
import type { Inbox } from './inbox.ts';
import { delayedKey, parseStreamKey, QUEUED_KEY, retryKey, shownStream, type StreamRef, streamKey } from './names.ts';

const KEYS_PER_SCAN = 100;
const SCANS = 1_000;
const MOST_STREAMS = 1_000;

/** What operators see: streams, groups and how far they are behind, depths of the queues. */
export class Streams {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #deadLetters: DeadLetters;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, inbox: Inbox, deadLetters: DeadLetters, counters: Counters) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#deadLetters = deadLetters;
    this.#counters = counters;
  }

  async list(request: RequestOf<typeof eventBus, 'listStreams'>): Promise<{ items: StreamRow[]; next_cursor: string | null }> {
    const { limit = 50, cursor, env_id } = request.query;
    const env = environmentOf(this.#ctx, request, env_id);
    const { refs, next } = await this.#scan(env, cursor === undefined ? '0' : this.#cursor(cursor), limit);
    return { items: await this.#rows(refs), next_cursor: next === '0' ? null : Buffer.from(next).toString('base64url') };
  }

  async lag(request: RequestOf<typeof eventBus, 'streamLag'>): Promise<{ stream: string; groups: GroupLag[] }> {
    const ref = { env: environmentOf(this.#ctx, request, request.query.env_id), family: familyOf(this.#ctx, request.params.family) };
    return { stream: shownStream(ref), groups: await this.#groups(ref) };
  }

  async listGroups(request: RequestOf<typeof eventBus, 'listGroups'>): Promise<{ items: (GroupLag & { stream_family: string })[] }> {
    const { refs } = await this.#scan(environmentOf(this.#ctx, request, request.query.env_id), '0', MOST_STREAMS);
    const items = await Promise.all(refs.map(async ref => (await this.#groups(ref)).map(group => ({ stream_family: ref.family, ...group }))));
    return { items: items.flat() };
  }

  async overview(request: RequestOf<typeof eventBus, 'overview'>) {
    const env = environmentOf(this.#ctx, request, request.query.env_id);
    const { refs } = await this.#scan(env, '0', MOST_STREAMS);
    const [rows, groups, retries, dead_letters] = await Promise.all([
      this.#rows(refs),
      Promise.all(refs.map(ref => this.#groups(ref))),
      this.#ctx.kv.call('ZCARD', retryKey(env)),
      this.#deadLetters.count(env),
    ]);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      streams: rows.length,
      entries: sum(rows.map(({ length }) => length)),
      groups: groups.flat().length,
      pending: sum(groups.flat().map(({ pending }) => pending)),
      retries: Number(retries),
      dead_letters,
    };
  }

  async metrics() {
    const { kv } = this.#ctx;
    const envs = (await kv.call('SMEMBERS', QUEUED_KEY)) as string[];
    const depths = (
      await kv.pipeline(
        envs.flatMap(env => [
          ['ZCARD', retryKey(env)],
          ['ZCARD', delayedKey(env)],
        ]),
      )
    ).map(Number);
    const every = (offset: number): number => depths.filter((_, index) => index % 2 === offset).reduce((total, depth) => total + depth, 0);
    return { ...this.#counters, inbox_unrelayed: await this.#inbox.unrelayed(), retry_depth: every(0), delayed_depth: every(1) };
  }

  /** By cursor, a hundred keys at a time; never a listing that blocks the store. */
  async #scan(env: string, from: string, atLeast: number): Promise<{ refs: StreamRef[]; next: string }> {
    const found = new Map<string, StreamRef>();
    let next = from;
    for (let scans = 0; scans < SCANS; scans++) {
      const [cursor, keys] = (await this.#ctx.kv.call('SCAN', next, 'MATCH', streamKey({ env, family: '*' }), 'COUNT', KEYS_PER_SCAN, 'TYPE', 'stream')) as [string, string[]];
      for (const key of keys) {
        const ref = parseStreamKey(key);
        if (ref) found.set(key, ref);
      }
      next = cursor;
      if (cursor === '0' || found.size >= atLeast) break;
    }
    return { refs: [...found.values()].sort((left, right) => (left.family < right.family ? -1 : 1)), next };
  }

  async #rows(refs: readonly StreamRef[]): Promise<StreamRow[]> {
    const answers = await this.#ctx.kv.pipeline(refs.map(ref => ['XINFO', 'STREAM', streamKey(ref)]));
    return refs.flatMap((ref, index) => {
      const answer = answers[index];
      if (!Array.isArray(answer)) return [];
      const info = record(answer);
      const idOf = (entry: unknown): string | null => (Array.isArray(entry) ? String(entry[0]) : null);
      return [
        {
          stream: shownStream(ref),
          env_id: ref.env,
          stream_family: ref.family,
          length: Number(info['length']),
          first_id: idOf(info['first-entry']),
          last_id: idOf(info['last-entry']),
          groups: Number(info['groups']),
        },
      ];
    });
  }

  async #groups(ref: StreamRef): Promise<GroupLag[]> {
    const { kv, clock } = this.#ctx;
    const groups = await kv.call('XINFO', 'GROUPS', streamKey(ref)).then(
      rows => (rows as unknown[][]).map(record),
      () => [],
    );
    const oldest = await kv.pipeline(groups.map(({ name }) => ['XPENDING', streamKey(ref), String(name)]));
    return groups.map(({ name, pending, lag, 'last-delivered-id': last }, index) => {
      const summary = oldest[index];
      const first = Array.isArray(summary) && summary[1] ? Number(String(summary[1]).split('-')[0]) : undefined;
      return {
        group: String(name),
        pending: Number(pending),
        lag: lag === null || lag === undefined ? null : Number(lag),
        last_delivered_id: String(last),
        oldest_pending_ms: first === undefined ? null : Math.max(0, clock.now().getTime() - first),
      };
    });
  }

  #cursor(text: string): string {
    const cursor = Buffer.from(text, 'base64url').toString();
    if (!/^\d{1,20}$/.test(cursor)) throw this.#ctx.problem('bad_cursor');
    return cursor;
  }
}

/** Names and values in turn, as the store answers them. */
export function record(pairs: readonly unknown[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) made[String(pairs[index])] = pairs[index + 1];
  return made;
}
