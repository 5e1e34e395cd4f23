import type { Waiting } from './arrivals.ts';
import type { InboxGroup } from './inbox-group.ts';
import type { JournalEntry } from './journal.ts';

/** A group that was appended, and the rows whose copies it answers until that is written. */
export interface Mark {
  readonly group: InboxGroup;
  readonly rows: readonly Waiting[];
}

const MOST_ENTRIES = 50_000;
const MOST_MARKS = 5_000;

/** What was done and is not written yet; bounded, for times without a database. */
export class Notes {
  #marks: Mark[] = [];
  #journal: JournalEntry[] = [];

  get empty(): boolean {
    return this.#marks.length + this.#journal.length === 0;
  }

  mark(group: InboxGroup, rows: readonly Waiting[] = []): void {
    this.#marks.push({ group, rows });
  }

  enter(...entries: readonly JournalEntry[]): void {
    this.#journal.push(...entries);
    if (this.#journal.length > MOST_ENTRIES) this.#journal.splice(0, this.#journal.length - MOST_ENTRIES);
  }

  take(): { marks: Mark[]; journal: JournalEntry[] } {
    return { marks: this.#marks.splice(0), journal: this.#journal.splice(0) };
  }

  /** What could not be written comes first the next time. Answers the marks there was no room for: the relay appends those groups a second time, which consumers must bear anyway. */
  putBack({ marks, journal }: { readonly marks: readonly Mark[]; readonly journal: readonly JournalEntry[] }): Mark[] {
    this.#journal = [...journal, ...this.#journal].slice(-MOST_ENTRIES);
    this.#marks = [...marks, ...this.#marks];
    return this.#marks.splice(0, Math.max(0, this.#marks.length - MOST_MARKS));
  }
}
