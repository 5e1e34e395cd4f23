import type { Sql } from '../storage/schema/sql.ts';
import { announced, insertEvents, type OutboxEvent } from './outbox.ts';

/** Events of one transaction: gathered while its work runs, written in one statement after it, and at once from then on. */
export class EventBatch {
  readonly #sql: Sql;
  #gathered: OutboxEvent[] | undefined = [];

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async add(events: readonly OutboxEvent[]): Promise<void> {
    if (this.#gathered) this.#gathered.push(...events);
    else await insertEvents(this.#sql, events);
  }

  async write(): Promise<void> {
    await insertEvents(this.#sql, this.#take());
  }

  /** Whether something was gathered that nothing writes yet. */
  get pending(): boolean {
    return this.#gathered !== undefined && this.#gathered.length > 0;
  }

  /** What was gathered, as a definition of the one statement that writes it. */
  definition(where: unknown): unknown {
    return announced(this.#sql, this.#take(), where);
  }

  #take(): readonly OutboxEvent[] {
    const events = this.#gathered ?? [];
    this.#gathered = undefined;
    return events;
  }
}
