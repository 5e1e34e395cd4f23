import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Appender } from '../stream/appender.ts';
import { Arrivals, type Outcome, type Receipt, type Waiting } from './arrivals.ts';
import type { EventBusContext } from '../context.ts';
import { brief } from '../context.ts';
import type { Counters } from '../upkeep/counters.ts';
import { Inbox } from '../inbox/inbox.ts';
import type { InboxGroup, InboxRow } from '../inbox/inbox-group.ts';
import { stageOf } from '../inbox/inbox-stage.ts';
import { type JournalEntry, lineOf } from '../inbox/journal.ts';
import { placeOf } from './minted-key.ts';
import { Notes } from '../inbox/notes.ts';

/** A group that is ours to append, and who waits for which of its positions. */
interface Held {
  readonly group: InboxGroup;
  readonly waiting: (Waiting | undefined)[];
  readonly takenOver: boolean;
}

type Noted = ReturnType<Notes['take']>;

const NOTES_WAIT_MS = 20;

/**
 * What arrives while a commit is under way rides the next: one statement, one pipeline. While a group is appended the next is committed,
 * never more, so events leave in the order they came. Marks and journal of one group are written with the next one's rows.
 * Life of a row: waiting → committed → appended (answered) → marked.
 */
export class GroupCommit implements AsyncDisposable {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #appender: Appender;
  readonly #counters: Counters;
  /** The pump serves many requests: it must not run as the one that started it. */
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #arrivals = new Arrivals();
  readonly #notes = new Notes();
  #flushes: (() => void)[] = [];
  #running: Promise<void> | undefined;

  constructor(ctx: EventBusContext, inbox: Inbox, appender: Appender, counters: Counters) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#appender = appender;
    this.#counters = counters;
  }

  /** Stores and appends; each row succeeds or fails for itself. */
  submit(rows: readonly InboxRow[]): Promise<readonly Outcome[]> {
    if (!this.#arrivals.hasRoomFor(rows.length)) throw this.#ctx.problem('overloaded', { headers: { 'retry-after': '1' } });
    return rows.some(row => placeOf(row.envelope.idempotency_key)) ? this.#submitKnown(rows) : this.#submit(rows);
  }

  #submit(rows: readonly InboxRow[]): Promise<readonly Outcome[]> {
    const outcomes = this.#arrivals.add(rows, (row, first) => this.#copyOf(row, first));
    this.#start();
    return outcomes;
  }

  /** Somebody sends what was read from a stream, under the key that the bus minted for it. */
  async #submitKnown(rows: readonly InboxRow[]): Promise<readonly Outcome[]> {
    const known = await Inbox.minted(this.#ctx.db.sql, rows).catch((cause: unknown) => {
      throw this.#refusal(cause);
    });
    const fresh = rows.filter(row => !known.has(row));
    const settled = new Map((await this.#submit(fresh)).map((outcome, index) => [fresh[index] as InboxRow, outcome]));
    return rows.map(row => {
      const first = known.get(row);
      if (!first) return settled.get(row) as Outcome;
      const { message_id } = first;
      return message_id === null ? this.#pending() : this.#copyOf(row, { ...first, message_id });
    });
  }

  /** Notes that a group leased elsewhere was appended, `positions` of it just now. */
  appended(group: InboxGroup, positions: readonly number[]): void {
    for (const position of positions)
      this.#notes.published(group.rows[position] as InboxRow, group.messageIds[position] as string, 'relayed');
    this.#notes.mark(group);
    this.#start();
  }

  record(entry: JournalEntry): void {
    this.#notes.enter(entry);
    this.#start();
  }

  /** Resolves when everything noted so far is written, or cannot be; what arrives meanwhile does not hold it up. */
  async flush(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#flushes.push(resolve);
    this.#start();
    this.#arrivals.rouse();
    await promise;
  }

  /** Writes what is noted: otherwise the next process appends it again. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.flush();
  }

  #start(): void {
    this.#running ??= this.#outside(() => this.#run());
  }

  async #run(): Promise<void> {
    let appending: Promise<void> = Promise.resolve();
    for (;;) {
      // What is read from the sockets in this turn goes together.
      await turn();
      const group = this.#arrivals.take();
      if (group.length === 0) {
        await appending;
        // Notes are written with the next rows, which cost a sync to disk anyway; when none come, by themselves.
        if (this.#arrivals.empty && !this.#notes.empty && this.#flushes.length === 0) await this.#arrivals.next(NOTES_WAIT_MS);
        if (!this.#arrivals.empty) continue;
        if (this.#notes.empty) break;
      }
      const flushes = this.#flushes.splice(0);
      const { held, written } = await this.#commit(group);
      for (const flushed of flushes) flushed();
      await appending;
      appending = this.#append(held);
      if (written) continue;
      // The database is away: what is noted waits for the next arrival or the relay's poll.
      await appending;
      if (this.#arrivals.empty) break;
    }
    // In the same turn as the last look at the queue: nothing arrives in between.
    this.#running = undefined;
    for (const flushed of this.#flushes.splice(0)) flushed();
  }

  async #commit(members: readonly Waiting[]): Promise<{ held: Held[]; written: boolean }> {
    const notes = this.#notes.take();
    const held: Held[] = [];
    const keep = async (waiting: readonly Waiting[], group: InboxGroup | undefined): Promise<void> =>
      void held.push(...(await this.#sort(waiting, group)));
    try {
      const group = await this.#inbox.commit(members.map(rowOf), members.map(keyOf), notes.marks.map(groupOf), notes.journal);
      this.#written(notes);
      await keep(members, group);
      return { held, written: true };
    } catch (error) {
      // One bad row fails the statement: each for itself, so that it fails alone.
      const written = await this.#writeNotes(notes);
      let fault: unknown = isGone(error) ? error : undefined;
      for (const waiting of members) {
        try {
          if (fault !== undefined) throw fault;
          await keep([waiting], await this.#inbox.commit([waiting.row], [waiting.key]));
        } catch (cause) {
          this.#arrivals.fail(waiting, this.#refusal(cause));
          if (isGone(cause)) fault = cause;
        }
      }
      return { held, written };
    }
  }

  /**
   * What is ours to append of these: copies of what nobody finished come first, as they came first; of the others the first copy's answer
   * is looked up.
   */
  async #sort(members: readonly Waiting[], group: InboxGroup | undefined): Promise<Held[]> {
    if (group?.positions.length === members.length) return [{ group, waiting: [...members], takenOver: false }];
    const waiting: (Waiting | undefined)[] = members.map(() => undefined);
    for (const position of group?.positions ?? []) waiting[position] = members[position];
    const own: Held[] = group ? [{ group, waiting, takenOver: false }] : [];
    try {
      return [...(await this.#settleCopies(members.filter((_, position) => waiting[position] === undefined))), ...own];
    } catch (error) {
      // Stored all the same: the relay appends what is left.
      for (const member of members) this.#arrivals.fail(member, this.#refusal(error));
      return [];
    }
  }

  async #settleCopies(copies: readonly Waiting[]): Promise<Held[]> {
    const known = await this.#inbox.find(copies.map(keyOf));
    const open = copies.filter(({ key }) => known.get(key)?.message_id === null);
    const holderOf = ({ key }: Waiting): string => (known.get(key) as { group: string }).group;
    const groups =
      open.length === 0 ? [] : await this.#inbox.takeOver(open.map(holderOf), open.filter(({ inBatch }) => inBatch).map(holderOf));
    const taken = new Set(groups.map(({ id }) => id));
    const left = open.filter(copy => !taken.has(holderOf(copy)));
    // Their appender may have finished them meanwhile.
    const later = left.length === 0 ? known : new Map([...known, ...(await this.#inbox.find(left.map(keyOf)))]);
    const held = groups.map((group): Held => ({ group, waiting: group.rows.map(() => undefined), takenOver: true }));
    for (const copy of copies) {
      const first = later.get(copy.key);
      const holder = first && held.find(({ group }) => group.id === first.group);
      const message_id = holder ? holder.group.messageIds[first.position] : first?.message_id;
      // Two of one key: only one of them can wait for its entry.
      if (holder && message_id === '' && holder.waiting[first.position] === undefined) holder.waiting[first.position] = copy;
      else if (first && message_id) {
        this.#arrivals.forget([copy]);
        copy.settle(this.#copyOf(copy.row, { ...first, message_id }));
      } else this.#arrivals.fail(copy, this.#pending());
    }
    return held;
  }

  #copyOf(row: InboxRow, { env, family, message_id }: Omit<Receipt, 'replayed'>): Receipt {
    this.#notes.published(row, message_id, 'duplicate');
    this.#start();
    return { env, family, message_id, replayed: true };
  }

  async #append(held: readonly Held[]): Promise<void> {
    const rows = held.flatMap(({ group, takenOver }) =>
      group.open.map(position => (takenOver ? group.relayed(position) : (group.rows[position] as InboxRow))),
    );
    if (rows.length === 0) return;
    const answers = await this.#appender.append(rows);
    let index = 0;
    for (const { group, waiting } of held) {
      for (const position of group.open) {
        const [row, answer] = [rows[index] as InboxRow, answers[index]];
        index += 1;
        const who = waiting[position];
        if (typeof answer !== 'string') {
          if (who) this.#arrivals.fail(who, this.#ctx.problem('append_failed', { detail: `XADD failed: ${brief(answer)}`, cause: answer }));
          continue;
        }
        group.messageIds[position] = answer;
        this.#notes.published(row, answer, who ? 'accepted' : 'relayed');
        if (!who) continue;
        this.#counters.produced += 1;
        who.settle({ message_id: answer, env: row.env, family: row.family, replayed: false });
      }
    }
    const broken = held.filter(({ group }) => group.open.length > 0);
    for (const { group, waiting } of held) if (group.open.length === 0) this.#notes.mark(group, waiting.filter(isWaiting));
    if (broken.length === 0) return;
    await this.#inbox
      .release(broken.map(groupOf), { tell: true })
      .catch(error => this.#ctx.log.warn({ err: error }, 'rows wait for their lease to end'));
    for (const { waiting } of broken) this.#arrivals.forget(waiting.filter(isWaiting));
  }

  async #writeNotes(notes: Noted): Promise<boolean> {
    if (notes.marks.length + notes.journal.length === 0) return true;
    try {
      await this.#inbox.commit([], [], notes.marks.map(groupOf), notes.journal);
      this.#written(notes);
      return true;
    } catch (error) {
      this.#ctx.log.warn({ err: error, marks: notes.marks.length }, 'what was appended is not marked yet');
      for (const { rows } of this.#notes.putBack(notes)) this.#arrivals.forget(rows);
      return false;
    }
  }

  /** One line per group: a line per event would be most of the log (day-one, Limits). */
  #written({ marks, journal }: Noted): void {
    for (const { rows } of marks) this.#arrivals.forget(rows);
    if (journal.length > 0) this.#ctx.log.info({ target: 'bus.audit', entries: journal.map(lineOf) }, 'audit');
  }

  #pending(): Error {
    return this.#ctx.problem('append_pending', { headers: { 'retry-after': '1' } });
  }

  #refusal(cause: unknown): Error {
    return this.#ctx.problem('inbox_failed', { detail: `${stageOf(cause)}: ${brief(cause)}`, cause });
  }
}

/** The database was not reached or went away, which says nothing about the rows. */
const isGone = (error: unknown): boolean => stageOf(error) !== 'inbox persist';
const isWaiting = (who: Waiting | undefined): who is Waiting => who !== undefined;
const rowOf = ({ row }: Waiting): InboxRow => row;
const keyOf = ({ key }: Waiting): string => key;
const groupOf = ({ group }: { readonly group: InboxGroup }): InboxGroup => group;
