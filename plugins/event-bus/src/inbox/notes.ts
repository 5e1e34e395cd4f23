import type { Waiting } from '../produce/arrivals.ts';
import type { InboxGroup, InboxRow } from './inbox-group.ts';
import type { JournalEntry } from './journal.ts';

/** A group that was appended, and the rows whose copies it answers until that is written. */
export interface Mark {
  readonly group: InboxGroup;
  readonly rows: readonly Waiting[];
}

/** Messages that entries are about. */
const MOST_MESSAGES = 50_000;
const MOST_MARKS = 5_000;

/** What was done and is not written yet; bounded, for times without a database. */
export class Notes {
  #marks: Mark[] = [];
  #journal: JournalEntry[] = [];
  #messages = 0;

  get empty(): boolean {
    return this.#marks.length + this.#journal.length === 0;
  }

  mark(group: InboxGroup, rows: readonly Waiting[] = []): void {
    this.#marks.push({ group, rows });
  }

  enter(entry: JournalEntry): void {
    this.#journal.push(entry);
    this.#trim(entry.message_ids.length);
  }

  /** Of a row, that it was published: with what was said last, where that was the same. */
  published({ env, family, envelope }: InboxRow, messageId: string, outcome: string): void {
    const last = this.#journal.at(-1);
    if (
      last?.action === 'produce' &&
      last.outcome === outcome &&
      last.at === envelope.produced_at &&
      last.correlation_id === envelope.correlation_id &&
      last.sub === envelope.publisher_subject &&
      last.event_type === envelope.event_type &&
      last.env_id === env &&
      last.stream_family === family
    ) {
      last.message_ids.push(messageId);
      return this.#trim(1);
    }
    this.enter({
      at: envelope.produced_at,
      action: 'produce',
      sub: envelope.publisher_subject,
      env_id: env,
      stream_family: family,
      event_type: envelope.event_type,
      message_ids: [messageId],
      outcome,
      correlation_id: envelope.correlation_id,
    });
  }

  take(): { marks: Mark[]; journal: JournalEntry[] } {
    this.#messages = 0;
    return { marks: this.#marks.splice(0), journal: this.#journal.splice(0) };
  }

  /**
   * What could not be written comes first the next time. Answers the marks there was no room for: the relay appends those groups a second
   * time, which consumers must bear anyway.
   */
  putBack({ marks, journal }: { readonly marks: readonly Mark[]; readonly journal: readonly JournalEntry[] }): Mark[] {
    this.#journal = [...journal, ...this.#journal];
    this.#trim(journal.reduce((sum, { message_ids }) => sum + message_ids.length, 0));
    this.#marks = [...marks, ...this.#marks];
    return this.#marks.splice(0, Math.max(0, this.#marks.length - MOST_MARKS));
  }

  /** So many messages more: the oldest entries go. */
  #trim(more: number): void {
    this.#messages += more;
    while (this.#messages > MOST_MESSAGES && this.#journal.length > 1)
      this.#messages -= (this.#journal.shift() as JournalEntry).message_ids.length;
  }
}
