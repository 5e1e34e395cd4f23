import { type Reply, reply, type RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import { HORIZON_DAYS, type Scheduled, type ScheduledRow } from '../../contract/schema/schedule.ts';
import type { Acceptance } from '../produce/acceptance.ts';
import { brief, environmentOf, type EventBusContext } from '../context.ts';
import type { Schedule } from './schedule.ts';

const HORIZON_MS = HORIZON_DAYS * 86_400_000;

/** Publishes events later: accepted now like any other, kept, and moved into the inbox by the reaper when their time has come. */
export class Scheduler {
  readonly #ctx: EventBusContext;
  readonly #acceptance: Acceptance;
  readonly #schedule: Schedule;

  constructor(ctx: EventBusContext, acceptance: Acceptance, schedule: Schedule) {
    this.#ctx = ctx;
    this.#acceptance = acceptance;
    this.#schedule = schedule;
  }

  async schedule({ body, caller, correlationId, headers }: RequestOf<typeof eventBus, 'schedule'>): Promise<Reply<Scheduled>> {
    const { clock, problem } = this.#ctx;
    const { deliver_at, ...event } = body;
    const deliverAt = new Date(deliver_at);
    if (deliverAt.getTime() > clock.now().getTime() + HORIZON_MS)
      throw problem('deliver_at_too_far', {
        detail: `deliver_at lies at most ${HORIZON_DAYS} days ahead. For what recurs, use the scheduler.`,
      });
    const row = this.#acceptance.read({ idempotency_key: headers['idempotency-key'], ...event }, caller, correlationId);
    const [refusal] = await this.#acceptance.admit(caller, [row]);
    if (refusal) throw refusal;
    const kept = await this.#schedule.keep(row, deliverAt).catch(cause => {
      throw problem('inbox_failed', { detail: `inbox persist: ${brief(cause)}`, cause });
    });
    if (kept === 'published')
      throw problem('key_published', { detail: 'Its effect would be lost on consumers that deduplicate. Use another idempotency_key.' });
    const { replayed, ...scheduled } = kept;
    return reply(scheduled, {
      headers: { location: `/v1/scheduled/${kept.schedule_id}`, ...(replayed ? { 'Idempotent-Replay': 'true' } : {}) },
    });
  }

  async list(request: RequestOf<typeof eventBus, 'listScheduled'>): Promise<{ items: ScheduledRow[]; next_cursor: string | null }> {
    const { env_id, include = 'due', ...query } = request.query;
    const env = environmentOf(this.#ctx, request, env_id);
    const spec = { list: `scheduled ${env} ${include}`, order: { schedule_id: 'id' } } as const;
    return this.#ctx.page(query, spec, ({ after, limit }) =>
      this.#schedule.waiting(env, {
        limit,
        ...(include === 'due' ? { dueAt: this.#ctx.clock.now() } : {}),
        ...(after ? { below: String(after[0]) } : {}),
      }),
    );
  }

  async cancel({ params, caller }: RequestOf<typeof eventBus, 'cancelScheduled'>): Promise<void> {
    const { problem } = this.#ctx;
    const unknown = () => problem('unknown_schedule', { detail: 'It was taken back, or never here.' });
    if (caller.kind === 'user' || caller.vertical === undefined)
      throw problem('event_ownership', { detail: 'event_ownership: people publish no events, and take none back.' });
    switch (await this.#schedule.takeBack(params.schedule_id, caller.vertical)) {
      case 'unknown':
        throw unknown();
      case 'foreign':
        throw problem('event_ownership', { detail: `event_ownership: vertical '${caller.vertical}' did not schedule this event` });
      case 'delivered':
        throw problem('schedule_delivered', { detail: 'Its time had come; it is on its stream.' });
    }
  }
}
