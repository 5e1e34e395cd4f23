import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Ctx } from '../context.ts';
import type { AuditChain, AuditDraft } from './proof/audit-chain.ts';

interface Waiting {
  readonly draft: AuditDraft;
  readonly bytes: number;
  readonly stored: (auditId: string) => void;
  readonly failed: (error: Error) => void;
}

const ROWS_PER_COMMIT = 256;
const BYTES_PER_COMMIT = 4 * 1_048_576;
const MOST_WAITING = 10_000;
const MOST_WAITING_BYTES = 64 * 1_048_576;

/** What arrives while a commit is under way rides the next: one lock, one statement, one flush to the disk. Nobody waits when nothing is under way. */
export class AuditIngest {
  readonly #ctx: Ctx;
  readonly #chain: AuditChain;
  /** The pump serves many requests: it must not run as the one that started it. */
  readonly #outside = AsyncLocalStorage.snapshot();
  #queue: Waiting[] = [];
  #taken = 0;
  #bytes = 0;
  #running = false;

  constructor(ctx: Ctx, chain: AuditChain) {
    this.#ctx = ctx;
    this.#chain = chain;
  }

  /** Resolves with the row's id when it is on the disk. */
  async store(draft: AuditDraft): Promise<string> {
    const bytes = 300 + draft.actor.length + (draft.resource?.length ?? 0) + (draft.details?.length ?? 0);
    if (this.#queue.length - this.#taken >= MOST_WAITING || this.#bytes + bytes > MOST_WAITING_BYTES)
      throw this.#ctx.problem('audit_overloaded', { detail: 'More events wait than can be held; send this one again in a second.', headers: { 'retry-after': '1' } });
    return new Promise((stored, failed) => {
      this.#queue.push({ draft, bytes, stored, failed });
      this.#bytes += bytes;
      if (this.#running) return;
      this.#running = true;
      void this.#outside(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    for (;;) {
      // What came in the same turn of the loop goes together.
      await turn();
      const group = this.#take();
      if (group.length === 0) break;
      await this.#commit(group);
    }
    this.#running = false;
  }

  #take(): Waiting[] {
    let [end, bytes] = [this.#taken, 0];
    for (; end < this.#queue.length && end - this.#taken < ROWS_PER_COMMIT && bytes < BYTES_PER_COMMIT; end++) bytes += (this.#queue[end] as Waiting).bytes;
    const group = this.#queue.slice(this.#taken, end);
    this.#taken = end;
    this.#bytes -= bytes;
    if (end === this.#queue.length) [this.#queue, this.#taken] = [[], 0];
    return group;
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    try {
      const drafts = group.map(({ draft }) => draft);
      const ids = await this.#ctx.db.tx(async tx => {
        const placed = await this.#chain.place(tx, drafts);
        tx.atEnd(async () => placed.writes);
        return placed.ids;
      });
      for (const [index, { stored }] of group.entries()) stored(ids[index] as string);
    } catch (error) {
      const [only] = group;
      if (group.length === 1) only?.failed(error as Error);
      // A row that the database refuses must fail alone; a database that is away fails for all at once.
      else if (/^(22|23)/.test((error as { code?: string }).code ?? '')) for (const waiting of group) await this.#commit([waiting]);
      else for (const { failed } of group) failed(error as Error);
    }
  }
}
