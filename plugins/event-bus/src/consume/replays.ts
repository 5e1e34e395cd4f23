import { type Caller, isProblem, reply, type RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import type { DeadLetter, DeadLetterFilter, Replayed, ReplayReport } from '../../contract/schema/dead-letter.ts';
import { Appender } from '../stream/appender.ts';
import { environmentOf, type EventBusContext } from '../context.ts';
import type { DeadLetters } from './dead-letters.ts';
import { type Envelope, fieldsOf } from '../stream/entry.ts';
import type { GroupCommit } from '../produce/group-commit.ts';
import { deadLetterBodiesKey, deadLetterKey, shownStream, type StreamRef, streamKey } from '../stream/names.ts';
import type { Wake } from '../stream/wake.ts';

const MOST_AT_ONCE = 100;

const REPLAY = `
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return false end
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('XADD', KEYS[3], '*', unpack(ARGV, 2))`;

interface By {
  readonly caller: Caller;
  readonly correlationId: string;
}

/** Gives dead letters back to their streams, once each, as `{event_type}.replayed` under a key of their own (C3, C18). */
export class Replays {
  readonly #ctx: EventBusContext;
  readonly #wake: Wake;
  readonly #commit: GroupCommit;
  readonly #deadLetters: DeadLetters;

  constructor(ctx: EventBusContext, wake: Wake, commit: GroupCommit, deadLetters: DeadLetters) {
    this.#ctx = ctx;
    this.#wake = wake;
    this.#commit = commit;
    this.#deadLetters = deadLetters;
  }

  async one(request: RequestOf<typeof eventBus, 'replay'>): Promise<Replayed> {
    return this.#replay(environmentOf(this.#ctx, request, request.query.env_id), request.params.dlq_id, request);
  }

  /** By id, by ids, or by filter; a dry run says what it would be. */
  async many(request: RequestOf<typeof eventBus, 'replayDeadLetters'>) {
    const { env_id, dlq_id, dlq_ids, filter, dry_run = false, limit = MOST_AT_ONCE } = request.body;
    const env = environmentOf(this.#ctx, request, env_id);
    if (filter !== undefined) return reply(await this.#byFilter(env, filter, { dry_run, limit }, request), {});
    const ids = dlq_ids ?? (dlq_id === undefined ? undefined : [dlq_id]);
    if (ids === undefined) throw this.#ctx.problem('message_ids_required', { detail: 'Name dlq_id, dlq_ids or filter.' });
    if (dry_run) {
      const letters = (await Promise.all(ids.map(id => this.#deadLetters.get(env, id)))).filter(letter => letter !== undefined);
      return reply({ dry_run: true, matched: letters.length, replayed: 0, more: false, matches: letters.map(matchOf) }, {});
    }
    if (dlq_ids === undefined) return reply(await this.#replay(env, dlq_id as string, request), {});
    const results: (Replayed | { dlq_id: string; error: string; status: number })[] = [];
    for (const id of dlq_ids) results.push(await this.#replay(env, id, request).catch(error => ({ dlq_id: id, ...refusalOf(error) })));
    return reply({ results }, {});
  }

  async matching(request: RequestOf<typeof eventBus, 'replayMatching'>): Promise<ReplayReport> {
    const { dry_run = true, limit = MOST_AT_ONCE, ...filter } = request.body;
    return this.#byFilter(environmentOf(this.#ctx, request, request.query.env_id), filter, { dry_run, limit }, request);
  }

  /** Oldest first, as they would have been handled. */
  async #byFilter(
    env: string,
    filter: DeadLetterFilter,
    { dry_run, limit }: { dry_run: boolean; limit: number },
    by: By,
  ): Promise<ReplayReport> {
    const { items, next } = await this.#deadLetters.find(env, filter, { limit, oldestFirst: true });
    const matches: ReplayReport['matches'] = [];
    let replayed = 0;
    for (const letter of items) {
      const match = matchOf(letter);
      if (dry_run) matches.push(match);
      else {
        const error = await this.#replay(env, letter.dlq_id, by).then(
          () => undefined,
          failure => refusalOf(failure).error,
        );
        if (error === undefined) replayed += 1;
        matches.push(error === undefined ? match : { ...match, error });
      }
    }
    const more =
      next !== undefined && (await this.#deadLetters.find(env, filter, { limit: 1, from: next, oldestFirst: true })).items.length > 0;
    return { dry_run, matched: items.length, replayed, more, matches };
  }

  async #replay(env: string, dlqId: string, { caller, correlationId }: By): Promise<Replayed> {
    const { kv, problem, clock, db } = this.#ctx;
    const unknown = () => problem('unknown_dead_letter', { detail: 'It was replayed, deleted after 30 days, or never here.' });
    const body = await this.#deadLetters.body(env, dlqId);
    if (!body) throw unknown();
    const { nacks: _nacks, only_group: _group, history: _history, ...original } = body.envelope;
    const first = original.original_idempotency_key ?? original.idempotency_key;
    const replayed: Envelope = {
      ...original,
      event_type: original.event_type.endsWith('.replayed') ? original.event_type : `${original.event_type}.replayed`,
      produced_at: clock.now().toISOString(),
      idempotency_key: `${first}:replay:${dlqId}`,
      original_idempotency_key: first,
      replayed_from_dlq: '1',
    };
    const ref: StreamRef = { env, family: body.family };
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
      stream_family: ref.family,
      event_type: replayed.event_type,
      message_ids: [message_id],
      outcome: 'accepted',
      correlation_id: correlationId,
    });
    await db.tx(async tx => {
      await tx.emit('platform:bus:dlq:replayed', env, { dlq_id: dlqId, message_id });
      await tx.audit({
        action: 'bus.deadletter.replayed',
        envId: env,
        caller,
        resource: { type: 'dead_letter', id: dlqId },
        details: { event_type: replayed.event_type, stream_family: ref.family, message_id },
      });
    });
    return { message_id, stream: shownStream(ref), event_type: replayed.event_type };
  }
}

const matchOf = ({ dlq_id, entry, stream_family, group, reason, failed_at }: DeadLetter): ReplayReport['matches'][number] => ({
  dlq_id,
  event_type: entry.event_type,
  stream_family,
  group,
  reason,
  failed_at,
});
const refusalOf = (error: unknown): { error: string; status: number } =>
  isProblem(error) ? { error: error.code, status: error.status } : { error: 'internal', status: 500 };
