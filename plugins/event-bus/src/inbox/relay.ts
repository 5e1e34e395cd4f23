import type { Appender } from '../stream/appender.ts';
import type { EventBusContext } from '../context.ts';
import type { GroupCommit } from '../produce/group-commit.ts';
import type { Inbox } from './inbox.ts';
import type { InboxGroup } from './inbox-group.ts';
import type { Begun, StoreLife } from '../upkeep/store-life.ts';

const ROWS_PER_PASS = 1_000;
const PASSES_PER_DRAIN = 1_000;
const RETRY_MS = 1_000;

/**
 * Appends accepted rows that are on no stream: their process died, the store was away, or the store came back without them. One process
 * at a time, in the order in which they were accepted: of two that append what each of them holds, the later rows could come first.
 */
export class InboxRelay {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #appender: Appender;
  readonly #commit: GroupCommit;
  readonly #life: StoreLife;
  readonly #closing = new AbortController();
  #draining: Promise<void> | undefined;
  #again = false;

  constructor(
    ctx: EventBusContext,
    { inbox, appender, commit, life }: { inbox: Inbox; appender: Appender; commit: GroupCommit; life: StoreLife },
  ) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#appender = appender;
    this.#commit = commit;
    this.#life = life;
  }

  /** Begins to hear of rows that other processes give up. */
  async listen(): Promise<AsyncDisposable> {
    const listening = await this.#ctx.db.listen(
      'bus_inbox',
      () => void this.drain().catch(error => this.#ctx.log.warn({ err: error }, 'the inbox cannot be relayed')),
    );
    return {
      [Symbol.asyncDispose]: async () => {
        this.#closing.abort();
        await listening[Symbol.asyncDispose]();
        await this.#draining?.catch(() => undefined);
      },
    };
  }

  /** The safety poll: looks whether the store has lost its memory, then appends what is due. */
  async poll(signal: AbortSignal): Promise<void> {
    await this.#mind(signal);
    await this.drain(signal);
    await this.#commit.flush();
  }

  /** Until nothing is due, or another process is at it. */
  async drain(signal: AbortSignal = this.#closing.signal): Promise<void> {
    if (this.#draining) {
      this.#again = true;
      return this.#draining;
    }
    this.#draining = this.#inPasses(signal);
    try {
      await this.#draining;
    } finally {
      this.#draining = undefined;
    }
  }

  async #inPasses(signal: AbortSignal): Promise<void> {
    if (!(await this.#life.isWhole())) return this.#mind(signal);
    if (await this.#inbox.isDue()) await this.#alone(keep => this.#append(signal, keep));
    await this.#commit.flush();
  }

  /** Everything that is due, in bounded passes. False when something could not be appended. */
  async #append(signal: AbortSignal, keep: () => Promise<unknown>, { mending = false } = {}): Promise<boolean> {
    for (let pass = 0; pass < PASSES_PER_DRAIN && !signal.aborted && !this.#closing.signal.aborted; pass++) {
      this.#again = false;
      const groups = await this.#inbox.lease(ROWS_PER_PASS);
      const members = groups.flatMap(group => group.open.map(position => ({ group, position })));
      const answers = await this.#appender.append(
        members.map(({ group, position }) => group.relayed(position)),
        { mending },
      );
      const placed = new Map<InboxGroup, number[]>(groups.map(group => [group, []]));
      for (const [index, { group, position }] of members.entries()) {
        const answer = answers[index];
        if (typeof answer !== 'string') continue;
        group.messageIds[position] = answer;
        placed.get(group)?.push(position);
      }
      const failed = groups.filter(group => group.open.length > 0);
      for (const [group, positions] of placed) if (!failed.includes(group)) this.#commit.appended(group, positions);
      if (failed.length > 0) {
        this.#ctx.log.warn({ groups: failed.length, err: answers.find(answer => answer instanceof Error) }, 'rows are not appended yet');
        await this.#inbox.release(failed, { afterMs: RETRY_MS });
        return false;
      }
      if (groups.length === 0 && !this.#again) return true;
      await keep();
    }
    return !signal.aborted && !this.#closing.signal.aborted;
  }

  /** Makes a new life of the store whole: what it may have lost is appended again, before anything else is. */
  async #mind(signal: AbortSignal): Promise<void> {
    // Our clock is the database's, read before the marker is written: a row marked earlier was appended earlier.
    const look = async () => this.#life.begun(await this.#inbox.now());
    if ((await look()).length === 0) return;
    await this.#alone(async keep => {
      const begun = await look();
      if (begun.length === 0) return;
      // Also what an earlier try gave up for a moment: nothing new may come before it.
      await this.#inbox.fenceUnmarked();
      // Behind the fence: a mark that was written before it counts for the store that is gone.
      const until = await this.#inbox.now();
      if (!(await this.#life.isMending(begun)) && !(await this.#reopen(begun, until, { keep, signal }))) return;
      if (await this.#append(signal, keep, { mending: true })) await this.#life.settle(begun, until);
    });
  }

  /** Makes everything due again that these lives may have lost. False when it was cut short. */
  async #reopen(
    begun: readonly Begun[],
    until: string,
    { keep, signal }: { keep: () => Promise<unknown>; signal: AbortSignal },
  ): Promise<boolean> {
    // The earliest of them: what lies on the other servers is appended twice, which consumers bear.
    const from = begun.map(life => life.from).sort()[0] || undefined;
    let groups = 0;
    for (let reopened = -1; reopened !== 0; groups += Math.max(0, reopened)) {
      reopened = await this.#inbox.reopen(from, until);
      await keep();
      if (signal.aborted) return false;
    }
    // Nothing to say on a first start: the life is new, but nothing was lost.
    if (groups > 0)
      this.#ctx.log.warn(
        { servers: begun.length, from: from ?? 'the beginning', groups },
        'the store has begun a new life; what it may have lost is appended again',
      );
    await this.#life.mend(begun);
    return true;
  }

  /** While no other process does. `keep` keeps the claim alive through long work. */
  async #alone(work: (keep: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
    await this.#ctx.db.tx(async ({ sql }) => {
      const [claim] = await sql<[{ mine: boolean }]>`select pg_try_advisory_xact_lock(hashtextextended('bus inbox relay', 0)) as mine`;
      if (claim.mine) await work(() => sql`select 1`);
    });
  }
}
