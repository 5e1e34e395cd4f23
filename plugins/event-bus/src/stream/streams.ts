import { type PagePart, type RequestOf, sorted } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import type { GroupLag, GroupRow, StreamRow } from '../../contract/schema/operation.ts';
import { environmentOf, type EventBusContext, familyOf } from '../context.ts';
import type { Counters } from '../upkeep/counters.ts';
import type { DeadLetters } from '../consume/dead-letters.ts';
import type { Inbox } from '../inbox/inbox.ts';
import { FAMILIES_KEY, QUEUED_KEY, retryKey, shownStream, type StreamRef, streamKey } from './names.ts';
import type { Schedule } from '../schedule/schedule.ts';

const NAMES_PER_SCAN = 100;
const SCANS = 1_000;
const STREAMS_PER_ROUND = 100;
const MOST_STREAMS = 1_000;
/** What streams are listed by. Their names are looked for; a size is known of a stream that was asked for alone. */
const ORDERS = { stream_family: ['stream_family', 'text'], length: ['length', 'number'], groups: ['groups', 'number'] } as const;
type Size = 'length' | 'groups';
/** A size, and the name that says which comes first of two that are as large. */
type SizeKey = readonly [size: number, family: string];

/** What operators see: streams, groups and how far they are behind, depths of the queues. */
export class Streams {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #deadLetters: DeadLetters;
  readonly #schedule: Schedule;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, parts: { inbox: Inbox; deadLetters: DeadLetters; schedule: Schedule; counters: Counters }) {
    this.#ctx = ctx;
    this.#inbox = parts.inbox;
    this.#deadLetters = parts.deadLetters;
    this.#schedule = parts.schedule;
    this.#counters = parts.counters;
  }

  async list(request: RequestOf<typeof eventBus, 'listStreams'>): Promise<{ items: StreamRow[]; next_cursor: string | null }> {
    const { env_id, ...query } = request.query;
    const env = environmentOf(this.#ctx, request, env_id);
    const spec = sorted({ list: `streams ${env}`, order: { stream_family: 'text' }, ascending: true }, query, ORDERS);
    const { ascending = false } = spec;
    const { sort: by } = query;
    return this.#ctx.page(query, spec, ({ after, limit }) =>
      by === 'length' || by === 'groups'
        ? this.#rowsBySize(env, by, { ascending, after, limit })
        : this.#rowsOf(env, limit, { ascending, after: after?.[0] }),
    );
  }

  async lag(request: RequestOf<typeof eventBus, 'streamLag'>): Promise<{ stream: string; groups: GroupLag[] }> {
    const ref = { env: environmentOf(this.#ctx, request, request.query.env_id), family: familyOf(this.#ctx, request.params.family) };
    return { stream: shownStream(ref), groups: await this.#groups(ref) };
  }

  async listGroups(request: RequestOf<typeof eventBus, 'listGroups'>): Promise<{ items: GroupRow[] }> {
    const rows = await this.#rowsOf(environmentOf(this.#ctx, request, request.query.env_id), MOST_STREAMS);
    const items = await Promise.all(
      rows.map(async ({ env_id, stream_family }) =>
        (await this.#groups({ env: env_id, family: stream_family })).map(group => ({
          row_id: `${stream_family}/${group.group}`,
          stream_family,
          ...group,
        })),
      ),
    );
    return { items: items.flat() };
  }

  async overview(request: RequestOf<typeof eventBus, 'overview'>) {
    const env = environmentOf(this.#ctx, request, request.query.env_id);
    const rows = await this.#rowsOf(env, MOST_STREAMS);
    const [groups, retries, delayed, dead_letters] = await Promise.all([
      Promise.all(rows.map(({ stream_family: family }) => this.#groups({ env, family }))),
      this.#ctx.kv.call('ZCARD', retryKey(env)),
      this.#schedule.count(env),
      this.#deadLetters.count(env),
    ]);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      streams: rows.length,
      entries: sum(rows.map(({ length }) => length)),
      groups: groups.flat().length,
      pending: sum(groups.flat().map(({ pending }) => pending)),
      retries: Number(retries),
      delayed,
      dead_letters,
    };
  }

  async metrics() {
    const { kv } = this.#ctx;
    const envs = (await kv.call('SMEMBERS', QUEUED_KEY)) as string[];
    const depths = (await kv.pipeline(envs.map(env => ['ZCARD', retryKey(env)]))).map(Number);
    const retry_depth = depths.reduce((total, depth) => total + depth, 0);
    return { ...this.#counters, inbox_unrelayed: await this.#inbox.unrelayed(), retry_depth, delayed_depth: await this.#schedule.count() };
  }

  /**
   * Streams of an environment behind a family, in the order of their names, either way. Families are read by cursor, a hundred at a time:
   * never a listing that blocks the store, and nothing of other tenants is gone through.
   */
  async #rowsOf(
    env: string,
    limit: number,
    { ascending = true, after }: { readonly ascending?: boolean; readonly after?: string | number | undefined } = {},
  ): Promise<StreamRow[]> {
    const isBehind = (name: string) => after === undefined || (ascending ? name > String(after) : name < String(after));
    const families = new Set<string>();
    let next = '0';
    for (let scans = 0; scans < SCANS; scans++) {
      const [cursor, names] = (await this.#ctx.kv.call('SSCAN', FAMILIES_KEY, next, 'COUNT', NAMES_PER_SCAN)) as [string, string[]];
      for (const name of names) if (isBehind(name)) families.add(name);
      next = cursor;
      if (cursor === '0') break;
    }
    const names = [...families].sort();
    const refs = (ascending ? names : names.reverse()).map(family => ({ env, family }));
    const rows: StreamRow[] = [];
    for (let start = 0; start < refs.length && rows.length < limit; start += STREAMS_PER_ROUND)
      rows.push(...(await this.#rows(refs.slice(start, start + STREAMS_PER_ROUND))));
    return rows.slice(0, limit);
  }

  /** Streams by how much they hold: every one is looked at, and so there may not be more than one answer looks at. */
  async #rowsBySize(
    env: string,
    by: Size,
    { ascending, after, limit }: Pick<PagePart, 'after' | 'limit'> & { readonly ascending: boolean },
  ): Promise<StreamRow[]> {
    const rows = await this.#rowsOf(env, MOST_STREAMS + 1);
    if (rows.length > MOST_STREAMS)
      throw this.#ctx.problem('too_many_streams', {
        detail: `This environment has more than ${MOST_STREAMS} streams. List them by stream_family, or without an order.`,
      });
    const way = ascending ? 1 : -1;
    const named = (left: string, right: string) => Number(left > right) - Number(left < right);
    const compared = (left: SizeKey, right: SizeKey) => way * (left[0] - right[0] || named(left[1], right[1]));
    const keyOf = (row: StreamRow): SizeKey => [row[by], row.stream_family];
    const last: SizeKey | undefined = after && [Number(after[0]), String(after[1])];
    return rows
      .filter(row => !last || compared(keyOf(row), last) > 0)
      .sort((left, right) => compared(keyOf(left), keyOf(right)))
      .slice(0, limit);
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
}

/** Names and values in turn, as the store answers them. */
export function record(pairs: readonly unknown[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) made[String(pairs[index])] = pairs[index + 1];
  return made;
}
