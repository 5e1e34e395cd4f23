import { Batcher } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { AuditChain, AuditDraft } from './proof/audit-chain.ts';

const MEBIBYTE = 1_048_576;

/** Rows of the trail as they arrive: one lock, one statement, one flush to the disk for all that came together. */
export class AuditIngest {
  readonly #ctx: Ctx;
  readonly #chain: AuditChain;
  readonly #batcher: Batcher<AuditDraft, string>;

  constructor(ctx: Ctx, chain: AuditChain) {
    this.#ctx = ctx;
    this.#chain = chain;
    this.#batcher = new Batcher({
      most: 256,
      waiting: 10_000,
      weight: {
        of: ({ actor, resource, details }) => 300 + actor.length + (resource?.length ?? 0) + (details?.length ?? 0),
        most: 4 * MEBIBYTE,
        waiting: 64 * MEBIBYTE,
      },
      deadlineMs: 60_000,
      full: () =>
        ctx.problem('audit_overloaded', {
          detail: 'More events wait than can be held; send this one again in a second.',
          headers: { 'retry-after': '1' },
        }),
      work: drafts => this.#commit(drafts),
    });
  }

  /** Resolves with the row's id when it is on the disk. */
  store(draft: AuditDraft): Promise<string> {
    return this.#batcher.add(draft);
  }

  async #commit(drafts: readonly AuditDraft[]): Promise<(string | Error)[]> {
    try {
      return await this.#ctx.db.tx(async tx => {
        const placed = await this.#chain.place(tx, [...drafts]);
        tx.atEnd(async () => placed.writes);
        return placed.ids;
      });
    } catch (error) {
      // A row that the database refuses must fail alone; a database that is away fails for all at once.
      if (drafts.length === 1 || !/^(22|23)/.test((error as { code?: string }).code ?? '')) return drafts.map(() => error as Error);
      const outcomes: (string | Error)[] = [];
      for (const draft of drafts) outcomes.push(...(await this.#commit([draft])));
      return outcomes;
    }
  }
}
