import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Appender } from './appender.ts';
import type { EventBusContext } from './context.ts';
import { brief } from './context.ts';
import type { Counters } from './counters.ts';
import type { Inbox } from './inbox.ts';
import { type InboxGroup, type InboxRow, keyOf } from './inbox-group.ts';
import { stageOf } from './inbox-stage.ts';
import type { JournalEntry } from './journal.ts';
import type { StreamRef } from './names.ts';

export interface Receipt extends StreamRef {
  readonly message_id: string;
  readonly replayed: boolean;
}
interface Waiting {
  readonly row: InboxRow;
  readonly inBatch: boolean;
  readonly key: string;
  readonly resolve: (receipt: Receipt) => void;
  readonly reject: (error: Error) => void;
}
/** A group that is ours to append, and who waits for which of its positions. */
interface Held {
  readonly group: InboxGroup;
  readonly waiting: ReadonlyMap<number, Waiting>;
  readonly takenOver: boolean;
}
/** A group that was appended, and the keys that may be forgotten when that is written. */
interface Mark {
  readonly group: InboxGroup;
  readonly keys: readonly string[];
}

const ROWS_PER_COMMIT = 256;
const BYTES_PER_COMMIT = 4 * 1_048_576;
const GATHER_MS = 4;
const NOTES_WAIT_MS = 20;
const MOST_WAITING = 20_000;
const MOST_NOTES = 50_000;
const MOST_MARKS = 5_000;

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
  /** Rows of one request stay together, so that they stay in order. */
  readonly #queue: Waiting[][] = [];
  #waiting = 0;
  /** Keys from their arrival until their mark is written: a second copy gets the first one's answer. */
  readonly #known = new Map<string, Promise<Receipt>>();
  #marks: Mark[] = [];
  #journal: JournalEntry[] = [];
  #flushes: (() => void)[] = [];
  #running: Promise<void> | undefined;
  #arrived: (() => void) | undefined;

  constructor(ctx: EventBusContext, inbox: Inbox, appender: Appender, counters: Counters) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#appender = appender;
    this.#counters = counters;
  }

  /** Stores and appends; each row succeeds or fails for itself. */
  submit(rows: readonly InboxRow[]): Promise<PromiseSettledResult<Receipt>[]> {
    if (this.#waiting + rows.length > MOST_WAITING) throw this.#ctx.problem('overloaded', { headers: { 'retry-after': '1' } });
    const unit: Waiting[] = [];
    const receipts = rows.map(row => {
      const key = keyOf(row);
      const first = this.#known.get(key);
      if (first) return first.then(receipt => this.#copyOf(row, receipt));
      const { promise, resolve, reject } = Promise.withResolvers<Receipt>();
      this.#known.set(key, promise);
      unit.push({ row, inBatch: rows.length > 1, key, resolve, reject });
      return promise;
    });
    if (unit.length > 0) {
      this.#queue.push(unit);
      this.#waiting += unit.length;
      this.#start();
      this.#arrived?.();
    }
    return Promise.allSettled(receipts);
  }

  /** Notes that a group leased elsewhere was appended, `positions` of it just now. */
  appended(group: InboxGroup, positions: readonly number[]): void {
    for (const position of positions) this.#journal.push(this.#entry(group.rows[position] as InboxRow, group.messageIds[position] as string, 'relayed'));
    this.#marks.push({ group, keys: [] });
    this.#start();
  }

  record(...entries: readonly JournalEntry[]): void {
    this.#journal.push(...entries);
    if (this.#journal.length > MOST_NOTES) this.#journal.splice(0, this.#journal.length - MOST_NOTES);
    this.#start();
  }

  /** Resolves when everything noted so far is written, or cannot be; what arrives meanwhile does not hold it up. */
  async flush(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#flushes.push(resolve);
    this.#start();
    this.#arrived?.();
    await promise;
  }

  #start(): void {
    this.#running ??= this.#outside(() => this.#run());
  }

  async #run(): Promise<void> {
    let appending: Promise<void> = Promise.resolve();
    for (;;) {
      await this.#gather();
      const group = this.#take();
      if (group.length === 0) {
        await appending;
        if (this.#queue.length === 0 && this.#noted && this.#flushes.length === 0) await this.#arrival();
        if (this.#queue.length > 0) continue;
        if (!this.#noted) break;
      }
      const flushes = this.#flushes.splice(0);
      const { held, written } = await this.#commit(group);
      for (const flushed of flushes) flushed();
      await appending;
      appending = this.#append(held);
      if (written) continue;
      // The database is away: what is noted waits for the next arrival or the relay's poll.
      await appending;
      if (this.#queue.length === 0) break;
    }
    // In the same turn as the last look at the queue: nothing arrives in between.
    this.#running = undefined;
    for (const flushed of this.#flushes.splice(0)) flushed();
  }

  /** Whether there is something to write besides rows. */
  get #noted(): boolean {
    return this.#marks.length + this.#journal.length > 0;
  }

  /** Notes are written with the next rows, which cost a sync to disk anyway; when none come, by themselves. */
  async #arrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrived = resolve;
    const timer = setTimeout(resolve, NOTES_WAIT_MS);
    await promise;
    clearTimeout(timer);
    this.#arrived = undefined;
  }

  /** As long as every turn of the loop brings more: a few larger groups cost less than many small ones. A lone event waits one turn. */
  async #gather(): Promise<void> {
    const until = performance.now() + GATHER_MS;
    for (let seen = -1; seen < this.#waiting && this.#waiting < ROWS_PER_COMMIT && performance.now() < until; ) {
      seen = this.#waiting;
      await turn();
    }
  }

  #take(): Waiting[] {
    const group: Waiting[] = [];
    for (let bytes = 0; this.#queue.length > 0 && group.length < ROWS_PER_COMMIT && bytes < BYTES_PER_COMMIT; ) {
      const unit = this.#queue.shift() as Waiting[];
      group.push(...unit);
      for (const { row } of unit) bytes += row.envelope.payload.length;
    }
    this.#waiting -= group.length;
    return group;
  }

  async #commit(members: readonly Waiting[]): Promise<{ held: Held[]; written: boolean }> {
    const [marks, journal] = [this.#marks.splice(0), this.#journal.splice(0)];
    const held: Held[] = [];
    const keep = async (waiting: readonly Waiting[], group: InboxGroup | undefined): Promise<void> => void held.push(...(await this.#sort(waiting, group)));
    try {
      const group = await this.#inbox.commit(members.map(rowOf), members.map(keyOfWaiting), marks.map(groupOf), journal);
      this.#written(marks, journal);
      await keep(members, group);
      return { held, written: true };
    } catch (error) {
      // One bad row fails the statement: each for itself, so that it fails alone.
      const written = await this.#writeNotes(marks, journal);
      let fault: unknown = isGone(error) ? error : undefined;
      for (const waiting of members) {
        try {
          if (fault !== undefined) throw fault;
          await keep([waiting], await this.#inbox.commit([waiting.row], [waiting.key]));
        } catch (cause) {
          this.#fail(waiting, this.#refusal(cause));
          if (isGone(cause)) fault = cause;
        }
      }
      return { held, written };
    }
  }

  /** What is ours to append of these: copies of what nobody finished come first, as they came first; of the others the first copy's answer is looked up. */
  async #sort(members: readonly Waiting[], group: InboxGroup | undefined): Promise<Held[]> {
    const waiting = new Map((group?.positions ?? []).map(position => [position, members[position] as Waiting]));
    const own: Held[] = group ? [{ group, waiting, takenOver: false }] : [];
    if (waiting.size === members.length) return own;
    try {
      return [...(await this.#settleCopies(members.filter((_, position) => !waiting.has(position)))), ...own];
    } catch (error) {
      // Stored all the same: the relay appends what is left.
      for (const member of members) this.#fail(member, this.#refusal(error));
      return [];
    }
  }

  async #settleCopies(copies: readonly Waiting[]): Promise<Held[]> {
    const known = await this.#inbox.find(copies.map(keyOfWaiting));
    const open = copies.filter(({ key }) => known.get(key)?.message_id === null);
    const holderOf = ({ key }: Waiting): string => (known.get(key) as { group: string }).group;
    const groups = open.length === 0 ? [] : await this.#inbox.takeOver(open.map(holderOf), open.filter(({ inBatch }) => inBatch).map(holderOf));
    const taken = new Set(groups.map(({ id }) => id));
    const left = open.filter(copy => !taken.has(holderOf(copy)));
    // Their appender may have finished them meanwhile.
    const later = left.length === 0 ? known : new Map([...known, ...(await this.#inbox.find(left.map(keyOfWaiting)))]);
    const held = groups.map(group => ({ group, waiting: new Map<number, Waiting>(), takenOver: true }));
    for (const copy of copies) {
      const first = later.get(copy.key);
      const holder = first && held.find(({ group }) => group.id === first.group);
      const message_id = holder ? holder.group.messageIds[first.position] : first?.message_id;
      if (holder && message_id === '') holder.waiting.set(first.position, copy);
      else if (first && message_id) {
        this.#known.delete(copy.key);
        copy.resolve(this.#copyOf(copy.row, { ...first, message_id }));
      } else this.#fail(copy, this.#ctx.problem('append_pending', { headers: { 'retry-after': '1' } }));
    }
    return held;
  }

  #copyOf(row: InboxRow, { env, family, message_id }: Omit<Receipt, 'replayed'>): Receipt {
    this.record(this.#entry(row, message_id, 'duplicate'));
    return { env, family, message_id, replayed: true };
  }

  async #append(held: readonly Held[]): Promise<void> {
    const members = held.flatMap(({ group, waiting, takenOver }) =>
      group.open.map(position => ({ group, position, waiting: waiting.get(position), row: takenOver ? group.relayed(position) : (group.rows[position] as InboxRow) })),
    );
    if (members.length === 0) return;
    const answers = await this.#appender.append(members.map(({ row }) => row));
    for (const [index, { group, position, waiting, row }] of members.entries()) {
      const answer = answers[index];
      if (typeof answer !== 'string') {
        if (waiting) this.#fail(waiting, this.#ctx.problem('append_failed', { detail: `XADD failed: ${brief(answer)}`, cause: answer }));
        continue;
      }
      group.messageIds[position] = answer;
      this.#journal.push(this.#entry(row, answer, waiting ? 'accepted' : 'relayed'));
      if (!waiting) continue;
      this.#counters.produced += 1;
      waiting.resolve({ message_id: answer, env: row.env, family: row.family, replayed: false });
    }
    const broken = held.filter(({ group }) => group.open.length > 0);
    for (const { group, waiting } of held) if (group.open.length === 0) this.#marks.push({ group, keys: keysOf(waiting) });
    if (broken.length === 0) return;
    await this.#inbox.release(broken.map(groupOf), { tell: true }).catch(error => this.#ctx.log.warn({ err: error }, 'rows wait for their lease to end'));
    for (const { waiting } of broken) this.#forget(keysOf(waiting));
  }

  #entry({ env, family, sub, envelope }: InboxRow, message_id: string, outcome: string): JournalEntry {
    return { at: envelope.produced_at, action: 'produce', sub, env_id: env, stream_family: family, event_type: envelope.event_type, message_id, outcome, correlation_id: envelope.correlation_id };
  }

  async #writeNotes(marks: Mark[], journal: JournalEntry[]): Promise<boolean> {
    if (marks.length + journal.length === 0) return true;
    try {
      await this.#inbox.commit([], [], marks.map(groupOf), journal);
      this.#written(marks, journal);
      return true;
    } catch (error) {
      this.#ctx.log.warn({ err: error, marks: marks.length }, 'what was appended is not marked yet');
      this.#marks = [...marks, ...this.#marks];
      this.#journal = [...journal, ...this.#journal].slice(-MOST_NOTES);
      // What is forgotten here is appended a second time by the relay, which consumers must bear anyway.
      for (const { keys } of this.#marks.splice(0, Math.max(0, this.#marks.length - MOST_MARKS))) this.#forget(keys);
      return false;
    }
  }

  /** One line per group: a line per event would be most of the log (day-one, Limits). */
  #written(marks: readonly Mark[], journal: readonly JournalEntry[]): void {
    for (const { keys } of marks) this.#forget(keys);
    if (journal.length > 0) this.#ctx.log.info({ target: 'bus.audit', entries: journal }, 'audit');
  }

  #forget(keys: readonly string[]): void {
    for (const key of keys) this.#known.delete(key);
  }

  /** Writes what is noted: otherwise the next process appends it again. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.flush();
  }

  #fail(waiting: Waiting, error: Error): void {
    this.#known.delete(waiting.key);
    waiting.reject(error);
  }

  #refusal(cause: unknown): Error {
    return this.#ctx.problem('inbox_failed', { detail: `${stageOf(cause)}: ${brief(cause)}`, cause });
  }
}

/** The database was not reached or went away, which says nothing about the rows. */
const isGone = (error: unknown): boolean => stageOf(error) !== 'inbox persist';
const rowOf = ({ row }: Waiting): InboxRow => row;
const keyOfWaiting = ({ key }: Waiting): string => key;
const groupOf = ({ group }: { readonly group: InboxGroup }): InboxGroup => group;
const keysOf = (waiting: Held['waiting']): string[] => [...waiting.values()].map(keyOfWaiting);
