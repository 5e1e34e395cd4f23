import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Appender } from './appender.ts';
import type { EventBusContext } from './context.ts';
import { brief } from './context.ts';
import type { Counters } from './counters.ts';
import { type Inbox, type InboxRow, type JournalEntry, type Leased, type Mark, rowKey } from './inbox.ts';
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

const ROWS_PER_COMMIT = 256;
const BYTES_PER_COMMIT = 4 * 1_048_576;
const MOST_WAITING = 20_000;
const MOST_NOTES = 50_000;

/**
 * What arrives while a commit is under way rides the next: one statement, one pipeline. While a group is appended the next is committed,
 * never more, so events leave in the order they came. Marks and journal of one group are written with the next one's rows.
 * Life of a row: waiting → committed → appended (answered) → marked.
 */
export class GroupCommit {
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
      const key = rowKey(row);
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
    }
    return Promise.allSettled(receipts);
  }

  /** Notes that rows leased elsewhere were appended. */
  appended(row: Leased, message_id: string): void {
    this.#note(row, row.attempt, message_id, 'relayed');
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
    await promise;
  }

  #start(): void {
    this.#running ??= this.#outside(() => this.#run());
  }

  async #run(): Promise<void> {
    let appending: Promise<void> = Promise.resolve();
    for (;;) {
      await turn();
      const group = this.#take();
      if (group.length === 0 && this.#marks.length + this.#journal.length === 0) {
        await appending;
        if (this.#queue.length > 0 || this.#marks.length + this.#journal.length > 0) continue;
        break;
      }
      const flushes = this.#flushes.splice(0);
      const { ours, written } = await this.#commit(group);
      for (const flushed of flushes) flushed();
      await appending;
      appending = this.#append(ours);
      if (written) continue;
      // The database is away: what is noted waits for the next arrival or the relay's poll.
      await appending;
      if (this.#queue.length === 0) break;
    }
    // In the same turn as the last look at the queue: nothing arrives in between.
    this.#running = undefined;
    for (const flushed of this.#flushes.splice(0)) flushed();
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

  async #commit(group: readonly Waiting[]): Promise<{ ours: { waiting: Waiting; row: InboxRow; attempt: number }[]; written: boolean }> {
    const [marks, journal] = [this.#marks.splice(0, MOST_NOTES), this.#journal.splice(0, MOST_NOTES)];
    const committed: { waiting: Waiting; lease: { id: string; attempt: number } | undefined }[] = [];
    const accept = (members: readonly Waiting[], leases: Map<string, { id: string; attempt: number }>): void => {
      for (const waiting of members) committed.push({ waiting, lease: leases.get(waiting.key) });
    };
    let written = true;
    try {
      accept(
        group,
        await this.#inbox.commit(
          group.map(({ row, inBatch }) => ({ ...row, inBatch })),
          marks,
          journal,
        ),
      );
      this.#written(marks, journal);
    } catch (error) {
      // One bad row fails the statement: each for itself, so that it fails alone.
      written = await this.#writeNotes(marks, journal);
      let gone = isConnection(error) ? error : undefined;
      for (const waiting of group) {
        if (gone === undefined) {
          try {
            accept([waiting], await this.#inbox.commit([{ ...waiting.row, inBatch: waiting.inBatch }], [], []));
            continue;
          } catch (cause) {
            if (isConnection(cause)) gone = cause;
            else {
              this.#fail(waiting, this.#refusal(cause));
              continue;
            }
          }
        }
        this.#fail(waiting, this.#refusal(gone));
      }
    }
    return { ours: await this.#sort(committed), written };
  }

  /** Rows that are ours go on; of the others the first copy's answer is looked up. */
  async #sort(committed: readonly { waiting: Waiting; lease: { id: string; attempt: number } | undefined }[]): Promise<{ waiting: Waiting; row: InboxRow; attempt: number }[]> {
    const ours: { waiting: Waiting; row: InboxRow; attempt: number }[] = [];
    const copies = committed.filter(({ lease }) => lease === undefined).map(({ waiting }) => waiting);
    const takenOver = committed.flatMap(({ waiting, lease }) => (lease && lease.id !== waiting.row.id ? [lease.id] : []));
    try {
      const [found, loaded] = await Promise.all([copies.length > 0 ? this.#inbox.find(copies.map(({ row }) => row)) : undefined, takenOver.length > 0 ? this.#inbox.load(takenOver) : undefined]);
      for (const { waiting, lease } of committed) {
        if (lease) ours.push({ waiting, row: loaded?.get(lease.id) ?? waiting.row, attempt: lease.attempt });
        else this.#answerCopy(waiting, found?.get(waiting.key));
      }
    } catch (error) {
      // Stored all the same: the relay appends what is left.
      for (const { waiting } of committed) this.#fail(waiting, this.#refusal(error));
    }
    return ours;
  }

  #copyOf(row: InboxRow, { env, family, message_id }: Omit<Receipt, 'replayed'>): Receipt {
    this.record(this.#entry(row, message_id, 'duplicate'));
    return { env, family, message_id, replayed: true };
  }

  #answerCopy(waiting: Waiting, first: { env: string; family: string; message_id: string | null } | undefined): void {
    if (!first?.message_id) return this.#fail(waiting, this.#ctx.problem('append_pending', { headers: { 'retry-after': '1' } }));
    this.#known.delete(waiting.key);
    waiting.resolve(this.#copyOf(waiting.row, { ...first, message_id: first.message_id }));
  }

  async #append(ours: readonly { waiting: Waiting; row: InboxRow; attempt: number }[]): Promise<void> {
    if (ours.length === 0) return;
    const answers = await this.#appender.append(ours.map(({ row }) => row));
    const failed: { id: string; attempt: number }[] = [];
    for (const [index, { waiting, row, attempt }] of ours.entries()) {
      const answer = answers[index];
      if (typeof answer === 'string') {
        this.#note(row, attempt, answer, 'accepted');
        this.#counters.produced += 1;
        waiting.resolve({ message_id: answer, env: row.env, family: row.family, replayed: false });
      } else {
        failed.push({ id: row.id, attempt });
        this.#fail(waiting, this.#ctx.problem('append_failed', { detail: `XADD failed: ${brief(answer)}`, cause: answer }));
      }
    }
    if (failed.length > 0) await this.#inbox.release(failed, { tell: true }).catch(error => this.#ctx.log.warn({ err: error }, 'rows wait for their lease to end'));
  }

  #note(row: InboxRow, attempt: number, message_id: string, outcome: string): void {
    this.#marks.push({ id: row.id, attempt, message_id, key: rowKey(row) });
    this.#journal.push(this.#entry(row, message_id, outcome));
  }

  #entry({ env, family, sub, envelope }: InboxRow, message_id: string, outcome: string): JournalEntry {
    return { at: envelope.produced_at, action: 'produce', sub, env_id: env, stream_family: family, event_type: envelope.event_type, message_id, outcome, correlation_id: envelope.correlation_id };
  }

  async #writeNotes(marks: Mark[], journal: JournalEntry[]): Promise<boolean> {
    if (marks.length + journal.length === 0) return true;
    try {
      await this.#inbox.commit([], marks, journal);
      this.#written(marks, journal);
      return true;
    } catch (error) {
      this.#ctx.log.warn({ err: error, marks: marks.length }, 'what was appended is not marked yet');
      this.#marks = [...marks, ...this.#marks];
      this.#journal = [...journal, ...this.#journal].slice(-MOST_NOTES);
      // What is forgotten here is appended a second time by the relay, which consumers must bear anyway.
      this.#forget(this.#marks.splice(0, Math.max(0, this.#marks.length - MOST_NOTES)));
      return false;
    }
  }

  /** One line per group: a line per event would be most of the log (day-one, Limits). */
  #written(marks: readonly Mark[], journal: readonly JournalEntry[]): void {
    this.#forget(marks);
    if (journal.length > 0) this.#ctx.log.info({ target: 'bus.audit', entries: journal }, 'audit');
  }

  #forget(marks: readonly Mark[]): void {
    for (const { key } of marks) this.#known.delete(key);
  }

  #fail(waiting: Waiting, error: Error): void {
    this.#known.delete(waiting.key);
    waiting.reject(error);
  }

  /** Before a connection: `pool`; lost on the way, so that nobody knows: `inbox commit`; refused: `inbox persist`. */
  #refusal(cause: unknown): Error {
    const code = (cause as { code?: string }).code ?? '';
    const at = UNREACHED.has(code) ? 'pool' : isConnection(cause) ? 'inbox commit' : 'inbox persist';
    return this.#ctx.problem('inbox_failed', { detail: `${at}: ${brief(cause)}`, cause });
  }
}

const UNREACHED = new Set(['ECONNREFUSED', 'CONNECT_TIMEOUT', 'POOL_BUSY', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT', '53300', '57P03', 'CONNECTION_ENDED']);

/** Whether the database was not reached or went away, which says nothing about the rows. */
function isConnection(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code !== undefined && (UNREACHED.has(code) || /^(CONNECTION_|ECONN|EPIPE|ETIMEDOUT|08|57P)/.test(code));
}
