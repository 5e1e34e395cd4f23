import type { RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import type { Attempt, DeadLetter, DeadLetterFilter } from '../../contract/schema/dead-letter.ts';
import { environmentOf, type EventBusContext } from '../context.ts';
import type { Counters } from '../upkeep/counters.ts';
import { type Envelope, entryOf, type ReadEntry } from '../stream/entry.ts';
import { lowestId } from '../inbox/lowest-id.ts';
import { HELD } from './leases.ts';
import { deadLetterBodiesKey, deadLetterKey, QUEUED_KEY, retryKey, streamKey } from '../stream/names.ts';

const KEPT_MS = 30 * 86_400_000;
const ROWS_PER_READ = 200;
const READS = 50;

const BURY = `${HELD}
if not held(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) or redis.call('XACK', KEYS[1], ARGV[1], ARGV[3]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[4])
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
return 1`;
const BURY_RETRY = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return 1`;
/** A dead letter as it is kept. */
export interface Body {
  readonly envelope: Envelope;
  readonly id: string;
  readonly family: string;
  readonly deliveries: number;
  readonly reason: string;
  readonly history: readonly Attempt[];
  readonly attempts: number;
  readonly group: string;
  readonly failed_at: string;
}
export interface Failure {
  readonly reason: string;
  readonly history: readonly Attempt[];
  readonly attempts: number;
  /** Whose entry it must still be; anybody's of the group when empty. */
  readonly consumer: string;
}

/**
 * Events that nobody could handle, per environment: ids in order in `busq:{env}:dlq`, bodies beside them.
 * Life: pending or queued → dead → replayed, or deleted after 30 days. Every step is one script: nothing is in two places or in none.
 */
export class DeadLetters {
  readonly #ctx: EventBusContext;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, counters: Counters) {
    this.#ctx = ctx;
    this.#counters = counters;
  }

  /** Takes a pending entry out of its group. False when it was not pending any more. */
  async bury(entry: ReadEntry, group: string, failure: Failure): Promise<boolean> {
    const { env } = entry.ref;
    const dlqId = this.#ctx.platform.newId();
    await this.#ctx.kv.call('SADD', QUEUED_KEY, env);
    const body = this.#body(entry, group, failure);
    const moved = await this.#ctx.kv.call(
      'EVAL',
      BURY,
      3,
      streamKey(entry.ref),
      deadLetterKey(env),
      deadLetterBodiesKey(env),
      group,
      failure.consumer,
      entry.id,
      dlqId,
      body,
    );
    return this.#buried(Number(moved) === 1, entry, dlqId, failure.reason);
  }

  /** Takes a record out of the retry queue. */
  async buryRetry(member: string, entry: ReadEntry, group: string, failure: Failure): Promise<boolean> {
    const { env } = entry.ref;
    const dlqId = this.#ctx.platform.newId();
    const moved = await this.#ctx.kv.call(
      'EVAL',
      BURY_RETRY,
      3,
      retryKey(env),
      deadLetterKey(env),
      deadLetterBodiesKey(env),
      member,
      dlqId,
      this.#body(entry, group, failure),
    );
    return this.#buried(Number(moved) === 1, entry, dlqId, failure.reason);
  }

  async list(request: RequestOf<typeof eventBus, 'listDeadLetters'>): Promise<{ items: DeadLetter[]; next_cursor: string | null }> {
    const { limit: most, cursor, env_id, ...filter } = request.query;
    const env = environmentOf(this.#ctx, request, env_id);
    const query = { ...(most === undefined ? {} : { limit: most }), ...(cursor === undefined ? {} : { cursor }) };
    const spec = { list: `dead letters ${env} ${JSON.stringify(filter)}`, order: { dlq_id: 'id' } } as const;
    return this.#ctx.page(query, spec, async ({ after, limit }) => {
      const { items, next } = await this.find(env, filter, { limit, ...(after ? { from: String(after[0]) } : {}) });
      // Where it stopped looking before the page was full, there may be more behind what it saw.
      return items.length < limit && next !== undefined ? { items, next: { dlq_id: next } } : items;
    });
  }

  /**
   * Those that a filter matches, newest first or oldest first, from an id on that was seen; with the id to go on from when there may be
   * more.
   */
  async find(
    env: string,
    filter: DeadLetterFilter,
    { limit, from, oldestFirst = false }: { limit: number; from?: string; oldestFirst?: boolean },
  ): Promise<{ items: DeadLetter[]; next: string | undefined }> {
    const items: DeadLetter[] = [];
    let seen = from;
    for (let reads = 0; reads < READS; reads++) {
      const bounds = oldestFirst
        ? [seen === undefined ? '-' : `(${seen}`, '+', 'BYLEX']
        : [seen === undefined ? '+' : `(${seen}`, '-', 'BYLEX', 'REV'];
      const ids = (await this.#ctx.kv.call('ZRANGE', deadLetterKey(env), ...bounds, 'LIMIT', 0, ROWS_PER_READ)) as string[];
      if (ids.length === 0) return { items, next: undefined };
      const bodies = (await this.#ctx.kv.call('HMGET', deadLetterBodiesKey(env), ...ids)) as (string | null)[];
      for (const [index, id] of ids.entries()) {
        seen = id;
        const text = bodies[index];
        const letter = text ? letterOf(env, id, JSON.parse(text) as Body) : undefined;
        if (!letter || !matches(letter, filter)) continue;
        items.push(letter);
        if (items.length === limit) return { items, next: id };
      }
    }
    return { items, next: seen };
  }

  /** What is kept of one, until it is replayed. */
  async body(env: string, dlqId: string): Promise<Body | undefined> {
    const text = (await this.#ctx.kv.call('HGET', deadLetterBodiesKey(env), dlqId)) as string | null;
    return text === null ? undefined : (JSON.parse(text) as Body);
  }

  async get(env: string, dlqId: string): Promise<DeadLetter | undefined> {
    const body = await this.body(env, dlqId);
    return body && letterOf(env, dlqId, body);
  }

  async count(env: string): Promise<number> {
    return Number(await this.#ctx.kv.call('ZCARD', deadLetterKey(env)));
  }

  /** Deletes what is older than thirty days. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { kv, clock } = this.#ctx;
    const bound = lowestId(new Date(clock.now().getTime() - KEPT_MS));
    for (const env of (await kv.call('SMEMBERS', QUEUED_KEY)) as string[]) {
      for (let reads = 0; reads < READS && !signal.aborted; reads++) {
        const ids = (await kv.call('ZRANGE', deadLetterKey(env), '-', `(${bound}`, 'BYLEX', 'LIMIT', 0, ROWS_PER_READ)) as string[];
        if (ids.length === 0) break;
        await kv.pipeline([
          ['HDEL', deadLetterBodiesKey(env), ...ids],
          ['ZREM', deadLetterKey(env), ...ids],
        ]);
      }
    }
  }

  async #buried(moved: boolean, { ref, envelope }: ReadEntry, dlqId: string, reason: string): Promise<boolean> {
    if (!moved) return false;
    this.#counters.dead_lettered += 1;
    this.#ctx.log.warn(
      { alert: 'dead_letter', env_id: ref.env, stream_family: ref.family, event_type: envelope.event_type, dlq_id: dlqId, reason },
      'an event became a dead letter',
    );
    // A dead letter about dead letters would breed for ever.
    if (envelope.event_type.startsWith('platform:bus:dlq:')) return true;
    await this.#ctx.db.tx(tx =>
      tx.emit('platform:bus:dlq:added', ref.env, { dlq_id: dlqId, stream_family: ref.family, event_type: envelope.event_type, reason }),
    );
    return true;
  }

  #body({ ref, id, envelope, deliveries }: ReadEntry, group: string, { reason, history, attempts }: Failure): string {
    const body: Body = {
      envelope,
      id,
      family: ref.family,
      deliveries,
      reason,
      history,
      attempts,
      group,
      failed_at: this.#ctx.clock.now().toISOString(),
    };
    return JSON.stringify(body);
  }
}

function letterOf(
  env: string,
  dlq_id: string,
  { envelope, id, family, deliveries, reason, history, attempts, group, failed_at }: Body,
): DeadLetter {
  const entry = entryOf({ ref: { env, family }, id, envelope, deliveries });
  return {
    dlq_id,
    env_id: env,
    stream_family: family,
    entry,
    reason,
    reasons: history.map(attempt => attempt.reason),
    history: [...history],
    attempts,
    group,
    failed_at,
  };
}

function matches({ stream_family, entry, group, reason, failed_at }: DeadLetter, wanted: DeadLetterFilter): boolean {
  return (
    (wanted.stream_family === undefined || stream_family === wanted.stream_family) &&
    (wanted.event_type === undefined || entry.event_type === wanted.event_type) &&
    (wanted.group === undefined || group === wanted.group) &&
    (wanted.reason === undefined || reason.includes(wanted.reason)) &&
    (wanted.failed_after === undefined || Date.parse(failed_at) > Date.parse(wanted.failed_after)) &&
    (wanted.failed_before === undefined || Date.parse(failed_at) < Date.parse(wanted.failed_before))
  );
}
