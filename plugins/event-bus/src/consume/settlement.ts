import type { RequestOf } from '@platform/sdk';
import type { Acked, Extended, Nacked } from '../../contract/schema/consumption.ts';
import type { Attempt } from '../../contract/schema/dead-letter.ts';
import { IDLE_MS, MAX_NACKS } from '../../contract/schema/event.ts';
import type { eventBus } from '../../contract/index.ts';
import { environmentOf, type EventBusContext, familyOf, groupOf } from '../context.ts';
import type { Counters } from '../upkeep/counters.ts';
import type { DeadLetters } from './dead-letters.ts';
import { type Envelope, envelopeOf, historyOf, type ReadEntry } from '../stream/entry.ts';
import type { GroupCommit } from '../produce/group-commit.ts';
import { HELD, type Leases } from './leases.ts';
import { QUEUED_KEY, retryKey, type StreamRef, streamKey } from '../stream/names.ts';

/** What waits in `busq:{env}:retry`, scored by the time it is due. */
export interface RetryRecord {
  readonly id: string;
  readonly family: string;
  readonly group: string;
  readonly envelope: Envelope;
  /** Every refusal so far, oldest first. */
  readonly history: readonly Attempt[];
}

type Settling = RequestOf<typeof eventBus, 'ack'> | RequestOf<typeof eventBus, 'nack'> | RequestOf<typeof eventBus, 'extend'>;

const QUEUE = `${HELD}
if not held(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) or redis.call('XACK', KEYS[1], ARGV[1], ARGV[3]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
return 1`;

/**
 * How entries end: acknowledged, or refused, which queues them for another try in one step with the acknowledgement. Only what is still
 * the caller's counts; what is not is named (H-21).
 */
export class Settlement {
  readonly #ctx: EventBusContext;
  readonly #leases: Leases;
  readonly #commit: GroupCommit;
  readonly #deadLetters: DeadLetters;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, parts: { leases: Leases; commit: GroupCommit; deadLetters: DeadLetters; counters: Counters }) {
    this.#ctx = ctx;
    this.#leases = parts.leases;
    this.#commit = parts.commit;
    this.#deadLetters = parts.deadLetters;
    this.#counters = parts.counters;
  }

  async ack(request: RequestOf<typeof eventBus, 'ack'>): Promise<Acked> {
    const { ref, group, consumer, ids, nonsense } = this.#read(request);
    const { done, lost } = await this.#leases.acknowledge(ref, group, consumer, ids);
    this.#counters.acked += done.length;
    const { caller, correlationId } = request;
    const at = this.#ctx.clock.now().toISOString();
    for (const [outcome, message_ids] of [
      ['accepted', done],
      ['lost', lost],
    ] as const) {
      if (message_ids.length === 0) continue;
      this.#commit.record({
        at,
        action: 'ack',
        sub: caller.subject,
        env_id: ref.env,
        stream_family: ref.family,
        event_type: null,
        message_ids: [...message_ids],
        outcome,
        correlation_id: correlationId,
      });
    }
    return { acked: done.length, lost: [...lost, ...nonsense] };
  }

  async nack(request: RequestOf<typeof eventBus, 'nack'>): Promise<Nacked> {
    const { ref, group, consumer, ids, nonsense } = this.#read(request);
    const { retry_after_secs = 30, reason = '', dead_letter = false, earlier = [] } = request.body;
    const attempts: Attempt[] = [...earlier, { at: this.#ctx.clock.now().toISOString(), reason }].map(attempt => ({
      ...attempt,
      ...(consumer === '' ? {} : { consumer }),
    }));
    const queued = new Set<string>();
    for (const entry of await this.#entries(ref, ids)) {
      const history = [...historyOf(entry.envelope), ...attempts];
      const moved = dead_letter
        ? await this.#deadLetters.bury(entry, group, {
            reason: reason === '' ? 'refused' : reason,
            history,
            attempts: history.length,
            consumer,
          })
        : await this.#queue(entry, { group, consumer, history, afterS: retry_after_secs });
      if (moved) queued.add(entry.id);
    }
    this.#counters.nacked += queued.size;
    return { queued: queued.size, lost: [...ids.filter(id => !queued.has(id)), ...nonsense] };
  }

  /** The handler is still at work: another minute. */
  async extend(request: RequestOf<typeof eventBus, 'extend'>): Promise<Extended> {
    const { ref, group, consumer, ids, nonsense } = this.#read(request);
    const { done, lost } = await this.#leases.extend(ref, group, consumer, ids);
    return { extended: done.length, lease_secs: IDLE_MS / 1_000, lost: [...lost, ...nonsense] };
  }

  async #queue(
    { ref, id, envelope }: ReadEntry,
    refusal: { group: string; consumer: string; history: readonly Attempt[]; afterS: number },
  ): Promise<boolean> {
    const { kv, clock } = this.#ctx;
    const { group, consumer, history, afterS } = refusal;
    const now = clock.now().getTime();
    // With no try left there is nothing to wait for: the reaper's next pass puts it aside.
    const dueAt = history.length >= MAX_NACKS ? now : now + afterS * 1_000;
    const record: RetryRecord = { id, family: ref.family, group, envelope, history };
    await kv.call('SADD', QUEUED_KEY, ref.env);
    return (
      Number(await kv.call('EVAL', QUEUE, 2, streamKey(ref), retryKey(ref.env), group, consumer, id, dueAt, JSON.stringify(record))) === 1
    );
  }

  async #entries(ref: StreamRef, ids: readonly string[]): Promise<ReadEntry[]> {
    const answers = await this.#ctx.kv.pipeline(ids.map(id => ['XRANGE', streamKey(ref), id, id]));
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return (answers as [string, string[]][][]).flatMap(rows =>
      rows.map(([id, fields]) => ({ ref, id, envelope: envelopeOf(fields), deliveries: 1 })),
    );
  }

  #read(request: Settling): { ref: StreamRef; group: string; consumer: string; ids: string[]; nonsense: string[] } {
    const { body, caller } = request;
    const family = familyOf(this.#ctx, body.stream_family);
    const env = environmentOf(this.#ctx, request, body.env_id);
    const given = [...new Set([...(body.message_ids ?? []), ...(body.message_id === undefined ? [] : [body.message_id])])];
    if (given.length === 0) throw this.#ctx.problem('message_ids_required', { detail: 'Name message_ids or message_id.' });
    // What is no id names no entry, which is the same as an unknown one.
    const isId = (id: string): boolean => /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,19})$/.test(id);
    return {
      ref: { env, family },
      group: groupOf(caller, body.consumer_group),
      consumer: body.consumer ?? '',
      ids: given.filter(isId),
      nonsense: given.filter(id => !isId(id)),
    };
  }
}
