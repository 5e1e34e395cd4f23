import type { Sql } from '../storage/sql.ts';
import { insertEvents, type OutboxEvent } from './outbox.ts';

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
    const events = this.#gathered ?? [];
    this.#gathered = undefined;
    await insertEvents(this.#sql, events);
  }
}
