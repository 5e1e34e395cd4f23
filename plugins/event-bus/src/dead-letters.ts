import { type Caller, reply, type RequestOf } from '@platform/sdk';
import type { eventBus } from '../contract/index.ts';
import type { DeadLetter, Replayed } from '../contract/schema.ts';
import { Appender } from './appender.ts';
import { environmentOf, type EventBusContext } from './context.ts';
import type { Counters } from './counters.ts';
import { type Envelope, entryOf, fieldsOf, type ReadEntry } from './entry.ts';
import type { GroupCommit } from './group-commit.ts';
import { lowestId, newId } from './ids.ts';
import { deadLetterBodiesKey, deadLetterKey, QUEUED_KEY, retryKey, shownStream, type StreamRef, streamKey } from './names.ts';
import type { Wake } from './wake.ts';

const KEPT_MS = 30 * 86_400_000;
const ROWS_PER_READ = 200;
const READS = 50;

const BURY = `
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[3])
redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])
return 1`;
const BURY_RETRY = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return 1`;
const REPLAY = `
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return false end
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('XADD', KEYS[3], '*', unpack(ARGV, 2))`;

interface Body {
  readonly envelope: Envelope;
  readonly id: string;
  readonly family: string;
  readonly deliveries: number;
  readonly reason: string;
  readonly reasons: readonly string[];
  readonly attempts: number;
  readonly group: string;
  readonly failed_at: string;
}
export interface Failure {
  readonly reason: string;
  readonly reasons: readonly string[];
  readonly attempts: number;
}

/**
 * Events that nobody could handle, per environment: ids in order in `busq:{env}:dlq`, bodies beside them.
 * Life: pending or queued → dead → replayed, or deleted after 30 days. Every step is one script: nothing is in two places or in none.
 */
export class DeadLetters {
  readonly #ctx: EventBusContext;
  readonly #wake: Wake;
  readonly #commit: GroupCommit;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, wake: Wake, commit: GroupCommit, counters: Counters) {
    this.#ctx = ctx;
    this.#wake = wake;
    this.#commit = commit;
    this.#counters = counters;
  }

  /** Takes a pending entry out of its group. False when it was not pending any more. */
  async bury(entry: ReadEntry, group: string, failure: Failure): Promise<boolean> {
    const { env } = entry.ref;
    const dlqId = newId();
    await this.#ctx.kv.call('SADD', QUEUED_KEY, env);
    const moved = await this.#ctx.kv.call('EVAL', BURY, 3, streamKey(entry.ref), deadLetterKey(env), deadLetterBodiesKey(env), group, entry.id, dlqId, this.#body(entry, group, failure));
    return this.#buried(Number(moved) === 1, entry, dlqId, failure.reason);
  }

  /** Takes a record out of the retry queue. */
  async buryRetry(member: string, entry: ReadEntry, group: string, failure: Failure): Promise<boolean> {
    const { env } = entry.ref;
    const dlqId = newId();
    const moved = await this.#ctx.kv.call('EVAL', BURY_RETRY, 3, retryKey(env), deadLetterKey(env), deadLetterBodiesKey(env), member, dlqId, this.#body(entry, group, failure));
    return this.#buried(Number(moved) === 1, entry, dlqId, failure.reason);
  }

  async list(request: RequestOf<typeof eventBus, 'listDeadLetters'>): Promise<{ items: DeadLetter[]; next_cursor: string | null }> {
    const { kv } = this.#ctx;
    const { limit = 50, cursor, stream_family } = request.query;
    const env = environmentOf(this.#ctx, request, request.query.env_id);
    const items: DeadLetter[] = [];
    let below = cursor === undefined ? '+' : `(${this.#cursor(cursor)}`;
    for (let reads = 0; reads < READS; reads++) {
      const ids = (await kv.call('ZRANGE', deadLetterKey(env), below, '-', 'BYLEX', 'REV', 'LIMIT', 0, ROWS_PER_READ)) as string[];
      if (ids.length === 0) return { items, next_cursor: null };
      const bodies = (await kv.call('HMGET', deadLetterBodiesKey(env), ...ids)) as (string | null)[];
      for (const [index, id] of ids.entries()) {
        below = `(${id}`;
        const text = bodies[index];
        if (!text) continue;
        const letter = letterOf(env, id, JSON.parse(text) as Body);
        if (stream_family !== undefined && letter.stream_family !== stream_family) continue;
        items.push(letter);
        if (items.length === limit) return { items, next_cursor: Buffer.from(id).toString('base64url') };
      }
    }
    return { items, next_cursor: Buffer.from(below.slice(1)).toString('base64url') };
  }

  async replayOne(request: RequestOf<typeof eventBus, 'replay'>): Promise<Replayed> {
    const env = environmentOf(this.#ctx, request, request.query.env_id);
    return this.#replay(env, request.params.dlq_id, request.caller, request.correlationId);
  }

  async replayMany(request: RequestOf<typeof eventBus, 'replayDeadLetters'>) {
    const { body, caller, correlationId } = request;
    const env = environmentOf(this.#ctx, request, body.env_id);
    if (body.dlq_id !== undefined) return reply(await this.#replay(env, body.dlq_id, caller, correlationId), {});
    if (body.dlq_ids === undefined) throw this.#ctx.problem('message_ids_required', { detail: 'Name dlq_id or dlq_ids.' });
    const results: (Replayed | { dlq_id: string; error: string; status: number })[] = [];
    for (const dlqId of body.dlq_ids) {
      results.push(
        await this.#replay(env, dlqId, caller, correlationId).catch((error: { code?: string; status?: number }) => ({ dlq_id: dlqId, error: error.code ?? 'internal', status: error.status ?? 500 })),
      );
    }
    return reply({ results }, {});
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

  async #replay(env: string, dlqId: string, caller: Caller, correlationId: string): Promise<Replayed> {
    const { kv, problem, clock, db } = this.#ctx;
    const unknown = () => problem('unknown_dead_letter', { detail: 'It was replayed, deleted after 30 days, or never here.' });
    const text = (await kv.call('HGET', deadLetterBodiesKey(env), dlqId)) as string | null;
    if (!text) throw unknown();
    const { envelope, family } = JSON.parse(text) as Body;
    const { nacks: _nacks, only_group: _group, reasons: _reasons, ...original } = envelope;
    const first = original.original_idempotency_key ?? original.idempotency_key;
    const replayed: Envelope = {
      ...original,
      event_type: original.event_type.endsWith('.replayed') ? original.event_type : `${original.event_type}.replayed`,
      produced_at: clock.now().toISOString(),
      idempotency_key: `${first}:replay:${dlqId}`,
      original_idempotency_key: first,
      replayed_from_dlq: '1',
    };
    const ref: StreamRef = { env, family };
    await kv.pipeline(Appender.known([ref]));
    const id = await kv.call('EVAL', REPLAY, 3, deadLetterKey(env), deadLetterBodiesKey(env), streamKey(ref), dlqId, ...fieldsOf(replayed));
    if (id === null) throw unknown();
    const message_id = String(id);
    this.#wake.announce([ref]);
    await kv.call(...this.#wake.announcement([ref]));
    this.#commit.record({
      at: replayed.produced_at,
      action: 'replay',
      sub: caller.subject,
      env_id: env,
      stream_family: family,
      event_type: replayed.event_type,
      message_id,
      outcome: 'accepted',
      correlation_id: correlationId,
    });
    await db.tx(tx => tx.emit('platform:bus:dlq:replayed', env, { dlq_id: dlqId, message_id }));
    return { message_id, stream: shownStream(ref), event_type: replayed.event_type };
  }

  async #buried(moved: boolean, { ref, envelope }: ReadEntry, dlqId: string, reason: string): Promise<boolean> {
    if (!moved) return false;
    this.#counters.dead_lettered += 1;
    this.#ctx.log.warn({ alert: 'dead_letter', env_id: ref.env, stream_family: ref.family, event_type: envelope.event_type, dlq_id: dlqId, reason }, 'an event became a dead letter');
    // A dead letter about dead letters would breed for ever.
    if (envelope.event_type.startsWith('platform:bus:dlq:')) return true;
    await this.#ctx.db.tx(tx => tx.emit('platform:bus:dlq:added', ref.env, { dlq_id: dlqId, stream_family: ref.family, event_type: envelope.event_type, reason }));
    return true;
  }

  #body({ ref, id, envelope, deliveries }: ReadEntry, group: string, { reason, reasons, attempts }: Failure): string {
    const body: Body = { envelope, id, family: ref.family, deliveries, reason, reasons, attempts, group, failed_at: this.#ctx.clock.now().toISOString() };
    return JSON.stringify(body);
  }

  #cursor(text: string): string {
    const id = Buffer.from(text, 'base64url').toString();
    if (!/^[0-9a-f-]{36}$/.test(id)) throw this.#ctx.problem('bad_cursor');
    return id;
  }
}

function letterOf(env: string, dlq_id: string, { envelope, id, family, deliveries, reason, reasons, attempts, group, failed_at }: Body): DeadLetter {
  return { dlq_id, env_id: env, stream_family: family, entry: entryOf({ ref: { env, family }, id, envelope, deliveries }), reason, reasons: [...reasons], attempts, group, failed_at };
}
