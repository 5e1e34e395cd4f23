import { isProblem, type Reply, reply, type RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import { MAX_BATCH } from '../../contract/schema/event.ts';
import type { Acceptance } from './acceptance.ts';
import type { Receipt } from './arrivals.ts';
import type { EventBusContext } from '../context.ts';
import type { GroupCommit } from './group-commit.ts';
import type { InboxRow } from '../inbox/inbox-group.ts';
import { shownStream } from '../stream/names.ts';

type Produced = { message_id: string; stream: string };
type Refused = { error: string; status: number; detail?: string };

/** Publishes events now: accepted, then stored and appended with whatever else is under way. */
export class Producer {
  readonly #ctx: EventBusContext;
  readonly #commit: GroupCommit;
  readonly #acceptance: Acceptance;

  constructor(ctx: EventBusContext, commit: GroupCommit, acceptance: Acceptance) {
    this.#ctx = ctx;
    this.#commit = commit;
    this.#acceptance = acceptance;
  }

  async produce({ body, caller, correlationId, headers }: RequestOf<typeof eventBus, 'produce'>): Promise<Reply<Produced>> {
    const row = this.#acceptance.read({ idempotency_key: headers['idempotency-key'], ...body }, caller, correlationId);
    const [refusal] = await this.#acceptance.admit(caller, [row]);
    if (refusal) throw refusal;
    const [receipt] = await this.#commit.submit([row]);
    if (receipt === undefined || receipt instanceof Error) throw receipt;
    return reply(producedOf(receipt), { headers: receipt.replayed ? { 'Idempotent-Replay': 'true' } : {} });
  }

  async produceBatch({
    body,
    caller,
    correlationId,
  }: RequestOf<typeof eventBus, 'produceBatch'>): Promise<{ results: (Produced | Refused)[] }> {
    const { events } = body;
    if (events.length === 0 || events.length > MAX_BATCH)
      throw this.#ctx.problem('batch_size', { detail: `${events.length} events; a batch has 1 to ${MAX_BATCH}.` });
    const now = this.#ctx.clock.now().toISOString();
    const results: (Produced | Refused | undefined)[] = events.map(() => undefined);
    const rows: InboxRow[] = [];
    const places: number[] = [];
    for (const [place, event] of events.entries()) {
      const row = this.#try(() => this.#acceptance.read(event, caller, correlationId, now));
      if (row instanceof Error) results[place] = refusedOf(row);
      else {
        rows.push(row);
        places.push(place);
      }
    }
    const refusals = await this.#acceptance.admit(caller, rows);
    for (const [index, place] of places.entries()) if (refusals[index]) results[place] = refusedOf(refusals[index]);
    const outcomes = await this.#commit.submit(rows.filter((_, index) => !refusals[index]));
    let next = 0;
    for (const [index, place] of places.entries()) {
      if (refusals[index]) continue;
      const outcome = outcomes[next++];
      results[place] = outcome === undefined || outcome instanceof Error ? refusedOf(outcome) : producedOf(outcome);
    }
    return { results: results as (Produced | Refused)[] };
  }

  #try<T>(work: () => T): T | Error {
    try {
      return work();
    } catch (error) {
      if (isProblem(error)) return error;
      throw error;
    }
  }
}

const producedOf = (receipt: Receipt): Produced => ({ message_id: receipt.message_id, stream: shownStream(receipt) });

function refusedOf(error: unknown): Refused {
  if (!isProblem(error)) return { error: 'internal', status: 500 };
  return { error: error.code, status: error.status, ...(error.detail === undefined ? {} : { detail: error.detail }) };
}
