import type { RequestOf } from '@platform/sdk';
import type { eventBus } from '../contract/index.ts';
import { MAX_NACKS } from '../contract/schema.ts';
import { environmentOf, type EventBusContext, familyOf, groupOf } from './context.ts';
import type { Counters } from './counters.ts';
import type { DeadLetters } from './dead-letters.ts';
import { type Envelope, envelopeOf, type ReadEntry } from './entry.ts';
import type { GroupCommit } from './group-commit.ts';
import { QUEUED_KEY, retryKey, type StreamRef, streamKey } from './names.ts';

/** What waits in `busq:{env}:retry`, scored by the time it is due. */
export interface RetryRecord {
  readonly id: string;
  readonly family: string;
  readonly group: string;
  readonly envelope: Envelope;
  readonly reasons: readonly string[];
  readonly nacked_at: string;
}

const QUEUE = `
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
return 1`;

/** How entries end: acknowledged, or refused, which queues them for another try in one step with the acknowledgement. */
export class Settlement {
  readonly #ctx: EventBusContext;
  readonly #commit: GroupCommit;
  readonly #deadLetters: DeadLetters;
  readonly #counters: Counters;

  constructor(ctx: EventBusContext, commit: GroupCommit, deadLetters: DeadLetters, counters: Counters) {
    this.#ctx = ctx;
    this.#commit = commit;
    this.#deadLetters = deadLetters;
    this.#counters = counters;
  }

  async ack(request: RequestOf<typeof eventBus, 'ack'>): Promise<{ acked: number }> {
    const { ref, group, ids } = this.#read(request);
    const acked = ids.length === 0 ? 0 : Number(await this.#ctx.kv.call('XACK', streamKey(ref), group, ...ids));
    this.#counters.acked += acked;
    const { caller, correlationId } = request;
    const at = this.#ctx.clock.now().toISOString();
    // The store says how many, not which.
    const outcome = acked === ids.length ? 'accepted' : acked === 0 ? 'unknown' : 'partial';
    this.#commit.record(
      ...ids.map(message_id => ({ at, action: 'ack' as const, sub: caller.subject, env_id: ref.env, stream_family: ref.family, event_type: null, message_id, outcome, correlation_id: correlationId })),
    );
    return { acked };
  }

  async nack(request: RequestOf<typeof eventBus, 'nack'>): Promise<{ queued: number }> {
    const { ref, group, ids } = this.#read(request);
    const { retry_after_secs = 30, reason = '', dead_letter = false } = request.body;
    let queued = 0;
    for (const entry of await this.#entries(ref, ids)) {
      const reasons = [...(JSON.parse(entry.envelope.reasons ?? '[]') as string[]), reason];
      const moved = dead_letter
        ? await this.#deadLetters.bury(entry, group, { reason: reason === '' ? 'refused' : reason, reasons, attempts: reasons.length })
        : await this.#queue(entry, group, reasons, retry_after_secs);
      if (moved) queued += 1;
    }
    this.#counters.nacked += queued;
    return { queued };
  }

  async #queue({ ref, id, envelope }: ReadEntry, group: string, reasons: string[], afterS: number): Promise<boolean> {
    const { kv, clock } = this.#ctx;
    const now = clock.now();
    // With no try left there is nothing to wait for: the reaper's next pass puts it aside.
    const dueAt = reasons.length >= MAX_NACKS ? now.getTime() : now.getTime() + afterS * 1_000;
    const record: RetryRecord = { id, family: ref.family, group, envelope, reasons, nacked_at: now.toISOString() };
    await kv.call('SADD', QUEUED_KEY, ref.env);
    return Number(await kv.call('EVAL', QUEUE, 2, streamKey(ref), retryKey(ref.env), group, id, dueAt, JSON.stringify(record))) === 1;
  }

  async #entries(ref: StreamRef, ids: readonly string[]): Promise<ReadEntry[]> {
    const answers = await this.#ctx.kv.pipeline(ids.map(id => ['XRANGE', streamKey(ref), id, id]));
    for (const answer of answers) if (answer instanceof Error) throw answer;
    return (answers as [string, string[]][][]).flatMap(rows => rows.map(([id, fields]) => ({ ref, id, envelope: envelopeOf(fields), deliveries: 1 })));
  }

  #read(request: RequestOf<typeof eventBus, 'ack'> | RequestOf<typeof eventBus, 'nack'>): { ref: StreamRef; group: string; ids: string[] } {
    const { body, caller } = request;
    const family = familyOf(this.#ctx, body.stream_family);
    const env = environmentOf(this.#ctx, request, body.env_id);
    const given = [...(body.message_ids ?? []), ...(body.message_id === undefined ? [] : [body.message_id])];
    if (given.length === 0) throw this.#ctx.problem('message_ids_required', { detail: 'Name message_ids or message_id.' });
    // What is no id names no entry, which is the same as an unknown one.
    return { ref: { env, family }, group: groupOf(caller, body.consumer_group), ids: [...new Set(given)].filter(id => /^\d{1,20}-\d{1,20}$/.test(id)) };
  }
}
