import { isUnavailable } from '@platform/sdk';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { outboxChannel } from '../../storage/schema/service-schema.ts';
import { ANY } from '../outbox.ts';
import { type OutboxRow, outcomeOf, unanswered } from './delivery.ts';
import { dueRows, type Head, heads, type OutboxState, stateOf, stepDown, sweep } from '../outbox-store.ts';
import { outcomeWriter } from './outcome-writer.ts';
import type { RelayOptions } from './relay-options.ts';
import { RelayCalls } from './relay-calls.ts';

const BATCH = 100;
const ENVIRONMENTS_PER_STEP = 64;
const STEPS_PER_LOOK = 16;
const CALLS_PER_SERVICE = 4;
const SWEEP_MS = 3_600_000;
const FIRST = '00000000-0000-0000-0000-000000000000';

/** The outbox of one service and its way out. Life: attached → (looking ⇄ resting)* → detached. */
export class RelaySource {
  readonly service: string;
  readonly #pool: PostgresPool;
  /**
   * One session for everything the relay says to the database: it holds the lead, and what was read before a loss of the lead is not read
   * again on another.
   */
  readonly #session: PostgresPool;
  readonly #pollMs: number;
  readonly #options: Required<RelayOptions>;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #calls: RelayCalls;
  #closed = false;
  readonly #outcomes: ReturnType<typeof outcomeWriter>;
  #leading = false;
  /** Where the next look goes on, so that every environment has its turn. */
  #from = FIRST;
  #listening: AsyncDisposable | undefined;
  #looking: Promise<void> | undefined;
  /** All environments are to be looked at. */
  #everything = false;
  /** Those that called since the last look. */
  readonly #called = new Set<string>();
  /** Those that were to be looked at while they had a call under way, whose end does it. */
  readonly #again = new Set<string>();
  #crowded = false;
  #cancelTimer: () => void = () => {};
  #cancelSweep: () => void = () => {};
  #complained = false;

  constructor(service: string, pool: PostgresPool, pollMs: number, options: Required<RelayOptions>) {
    this.service = service;
    this.#pool = pool;
    this.#pollMs = pollMs;
    this.#options = options;
    this.#calls = new RelayCalls(service, options);
    // What a crash forgets to have been delivered is delivered again under the same idempotency key.
    this.#session = pool.sibling({ max: 1, repeatable: true });
    this.#outcomes = outcomeWriter(this.#session, options.clock);
  }

  async open(): Promise<void> {
    this.#sweepLater();
    this.#look();
    // Without notifications the poll still finds everything; the driver goes on trying.
    this.#listening = await this.#pool
      .listen(
        outboxChannel(this.service),
        envId => this.#wake(envId),
        () => this.#wake(ANY),
      )
      .catch((error: unknown) => {
        this.#complain(error);
        return undefined;
      });
  }

  /** There is something to carry: for the one that leads. */
  #wake(envId: string): void {
    if (this.#leading || this.#looking !== undefined) this.#look(envId === ANY ? undefined : envId);
  }

  async state(): Promise<OutboxState> {
    return stateOf(this.#pool, this.#options.clock.now());
  }

  async sweep(): Promise<number> {
    return sweep(this.#pool, this.#options.clock.now());
  }

  async drain(deadlineMs: number): Promise<void> {
    let late = false;
    const cancel = this.#options.clock.after(deadlineMs, () => {
      late = true;
      this.#close();
    });
    try {
      while (!late) {
        this.#look();
        while (this.#looking !== undefined) await this.#looking;
        if (this.#busy.size === 0) return;
        await Promise.all(this.#busy.values());
      }
    } finally {
      cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
    this.#cancelTimer();
    this.#cancelSweep();
    await this.#looking;
    await Promise.all(this.#busy.values());
    await this.#listening?.[Symbol.asyncDispose]();
    if (this.#leading) await stepDown(this.#session).catch(() => {});
    await this.#session.close();
  }

  #close(): void {
    this.#closed = true;
    this.#calls.giveUp(new Error('the relay is closing'));
  }

  /** Looks at one environment, or at all of them. */
  #look(envId?: string): void {
    if (envId === undefined) this.#everything = true;
    else this.#called.add(envId);
    this.#begin();
  }

  #begin(): void {
    if (this.#closed || this.#looking !== undefined) return;
    this.#looking = this.#looks().then(() => {
      this.#looking = undefined;
      // Asked for while the last look was ending.
      if (this.#everything || this.#called.size > 0) this.#begin();
    });
  }

  async #looks(): Promise<void> {
    while (!this.#closed && (this.#everything || this.#called.size > 0)) {
      const called = this.#callers();
      if (
        !this.#everything &&
        this.#leading &&
        !this.#crowded &&
        this.#from === FIRST &&
        this.#busy.size + called.length <= CALLS_PER_SERVICE
      )
        await this.#answer(called);
      else await this.#round();
    }
  }

  async #round(): Promise<void> {
    const { clock } = this.#options;
    this.#everything = false;
    this.#cancelTimer();
    const next = await this.#carry();
    if (!this.#closed) this.#cancelTimer = clock.after(Math.max(0, next - clock.now().getTime()), () => this.#look());
  }

  /** Who called and has no call under way. */
  #callers(): string[] {
    const called = [...this.#called];
    this.#called.clear();
    return called.filter(envId => {
      if (!this.#busy.has(envId)) return true;
      this.#again.add(envId);
      return false;
    });
  }

  /**
   * Calls for those that called while there is room for all of them: the others have nothing to send, or have their call, or wait for their
   * time.
   */
  async #answer(called: readonly string[]): Promise<void> {
    if (called.length === 0) return;
    try {
      this.#leading = await this.#send(called);
      this.#complained = false;
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Starts a call for every environment that may move while there is room, and answers when to look again. */
  async #carry(): Promise<number> {
    const { clock } = this.#options;
    let next = clock.now().getTime() + this.#pollMs;
    try {
      this.#crowded = false;
      const from = this.#from;
      let [at, around] = [from, from === FIRST];
      for (let steps = 0; !this.#crowded; steps++) {
        // The rest has its turn with the next look.
        if (steps === STEPS_PER_LOOK) {
          this.#from = at;
          break;
        }
        const step = await heads(this.#session, this.service, at, ENVIRONMENTS_PER_STEP);
        this.#leading = step !== undefined;
        if (step === undefined) return next;
        // Once around at most.
        const due = around && from !== FIRST ? step.filter(({ env_id }) => env_id <= from) : step;
        next = Math.min(next, await this.#choose(due));
        const ended = step.length < ENVIRONMENTS_PER_STEP;
        if (around && (ended || due.length < step.length)) break;
        at = ended ? FIRST : (step.at(-1) as Head).env_id;
        around ||= ended;
      }
      this.#complained = false;
    } catch (error) {
      this.#complain(error);
    }
    return next;
  }

  /** Calls for those of these environments that are due and idle; when the first of the others is due. */
  async #choose(step: readonly Head[]): Promise<number> {
    const now = this.#options.clock.now();
    let next = Number.POSITIVE_INFINITY;
    const chosen: string[] = [];
    for (const { env_id, next_retry_at } of step) {
      const dueAt = next_retry_at === null ? 0 : Date.parse(next_retry_at);
      if (dueAt > now.getTime()) next = Math.min(next, dueAt);
      else if (this.#busy.has(env_id)) this.#again.add(env_id);
      else if (this.#busy.size + chosen.length < CALLS_PER_SERVICE) chosen.push(env_id);
      else {
        this.#crowded = true;
        break;
      }
    }
    if (chosen.length === 0) return next;
    this.#from = this.#crowded ? (chosen.at(-1) as string) : FIRST;
    await this.#send(chosen);
    return next;
  }

  /** Begins a call for each of these environments that has something due; whether this process leads. */
  async #send(envIds: readonly string[]): Promise<boolean> {
    const due = await dueRows(this.#session, this.service, { envIds, now: this.#options.clock.now(), limit: BATCH });
    if (due === undefined || this.#closed) return due !== undefined;
    for (const [envId, rows] of Map.groupBy(due, ({ env_id }) => env_id)) {
      const call = this.#relay(envId, rows).then(
        carried => {
          this.#busy.delete(envId);
          const again = this.#again.delete(envId);
          if (!carried || this.#crowded) this.#look();
          // Otherwise all that was there is gone, and nobody has called since: there is nothing to look for.
          else if (again || rows.length === BATCH) this.#look(envId);
        },
        (error: unknown) => {
          this.#busy.delete(envId);
          this.#again.delete(envId);
          this.#complain(error);
        },
      );
      this.#busy.set(envId, call);
    }
    return true;
  }

  /** One batch of one environment; whether all of it was carried. */
  async #relay(envId: string, rows: readonly OutboxRow[]): Promise<boolean> {
    const results = await this.#calls.make(rows);
    const now = this.#options.clock.now();
    const outcomes = rows.map((row, index) => outcomeOf(row, results[index] ?? unanswered('the answer is shorter than the batch'), now));
    await this.#outcomes.add(outcomes);
    for (const [index, outcome] of outcomes.entries()) {
      const { id, event_type } = rows[index] as OutboxRow;
      if (outcome.parked)
        this.#options.log.error(
          { alert: 'outbox_parked', service: this.service, env_id: envId, id, event_type, last_error: outcome.last_error },
          'event parked',
        );
    }
    return outcomes.every(({ relayed }) => relayed);
  }

  #sweepLater(): void {
    this.#cancelSweep = this.#options.clock.after(SWEEP_MS, () => {
      void this.sweep()
        .catch((error: unknown) => this.#complain(error))
        .then(() => {
          if (!this.#closed) this.#sweepLater();
        });
    });
  }

  /** Once per outage, not once per poll. */
  #complain(error: unknown): void {
    if (this.#complained || this.#closed) return;
    this.#complained = true;
    const level = isUnavailable(error) ? 'warn' : 'error';
    this.#options.log[level]({ service: this.service, err: error }, 'outbox cannot be relayed');
  }
}
