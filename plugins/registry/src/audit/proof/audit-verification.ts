import type { RequestOf } from '@platform/sdk';
import type { Verification } from '../../../contract/schema/audit.ts';
import type { Contract, Ctx } from '../../context.ts';
import { isTrusted } from '../../tenants/access.ts';
import type { AuditKeys } from './audit-keys.ts';
import { envOf } from '../audit-listing.ts';
import { type AuditRow, chainHash, GENESIS, NO_ID } from '../audit-row.ts';
import type { Signed } from '../audit-statement.ts';
import type { AuditWitness } from './audit-witness.ts';
import { type ChainEnd, StoredChain } from './stored-chain.ts';

/** How far a verification came: everything up to here is as it was written. */
interface Proven {
  readonly position: number;
  readonly hash: string;
  readonly audit_id: string;
  /** The last anchor that was met. */
  readonly anchored: number;
  /** The anchor before that: today's moves along with the head, so the next one met may stand in its place. */
  readonly before: number;
  /** Time of the first row behind it; 0 when there is none. */
  readonly unsigned_since: number;
}
/** Hashes that stood at these positions: as this machine saw them signed, and as the asker kept them. */
type Marks = ReadonlyMap<number, readonly { readonly hash: string; readonly by: 'this machine' | 'the receipt' }[]>;
type Fault = NonNullable<Verification['fault']>;
type Step = Omit<Verification, 'next_cursor'>;
class Broken {
  readonly fault: Fault;
  constructor(fault: Fault) {
    this.fault = fault;
  }
}

const ROWS_PER_STEP = 50_000;
const CHAINS = 500;
/**
 * How long a row may wait for its signature before its absence is a fault: heads are signed every ten seconds, after a standstill before
 * anybody is served.
 */
const UNSIGNED_MS = 600_000;
/** How long what a retired key signed last may wait for the key in force to confirm it. */
const UNCONFIRMED_MS = 3_600_000;
const HASH = /^[0-9a-f]{64}$/;
/** What was proven, as the cursor of the next step says it. */
const PROVEN = {
  position: 'number',
  hash: 'text',
  audit_id: 'id',
  anchored: 'number',
  before: 'number',
  unsigned_since: 'number',
} as const;
const MOST = 1e15;

/**
 * Walks a chain from its beginning, or from its signed cut, to its head, and compares it with every signed anchor. In steps, each with the
 * cursor of the next: a request stays short and memory bounded however long the chain is. The cursor is the asker's own word for what
 * was proven before; who writes another deceives nobody else.
 */
export class AuditVerification {
  readonly #ctx: Ctx;
  readonly #chain: StoredChain;
  readonly #keys: AuditKeys;
  readonly #witness: AuditWitness;

  constructor(ctx: Ctx, parts: { keys: AuditKeys; witness: AuditWitness }) {
    this.#ctx = ctx;
    this.#chain = new StoredChain(ctx);
    this.#keys = parts.keys;
    this.#witness = parts.witness;
  }

  async step(request: RequestOf<Contract, 'verifyAudit'>): Promise<Verification> {
    const { query } = request;
    const envId = envOf(this.#ctx, request);
    if (envId === undefined) throw this.#ctx.problem('audit_env_required', { detail: 'Name the environment in env_id.' });
    const { cursor } = query;
    const spec = { list: `audit verification ${envId}`, order: PROVEN } as const;
    const { items, next_cursor } = await this.#ctx.page(cursor === undefined ? {} : { cursor }, spec, ({ after }) =>
      this.#walk(request, envId, this.#provenBy(after)),
    );
    return { ...(items[0] as Step), next_cursor };
  }

  async #walk(
    { query, signal }: RequestOf<Contract, 'verifyAudit'>,
    envId: string,
    begun: Proven,
  ): Promise<{ items: Step[]; next: Proven | undefined }> {
    let proven = begun;
    await this.#keys.refresh();
    // Before the rows: what they name must be among them.
    const [marks, cut] = [this.#marks(envId, proven.position, query.since), await this.#chain.cut(envId)];
    const witnessed = this.#witness.newest([envId]).get(envId);
    let [expected, rows, anchors] = [0, 0, 0];
    const answer = (status: Verification['status'], { fault, next }: { fault?: Fault; next?: Proven } = {}) => ({
      next,
      items: [{ ...walked(), status, ...(fault ? { fault } : {}) }],
    });
    const walked = () => ({
      env_id: envId,
      rows,
      anchors,
      position: proven.position,
      head: expected,
      hash: proven.hash,
      key_id: this.#keys.current.id,
      ...(witnessed ? { witnessed: { position: witnessed.position, since: this.#witness.since } } : {}),
      ...(cut ? { cut: { position: cut.position, cut_at: new Date(cut.at).toISOString() } } : {}),
    });
    try {
      proven = this.#behind(cut, proven, marks);
      while (!signal.aborted && rows < ROWS_PER_STEP) {
        // Read before the rows: what it names must be among them.
        const end = await this.#chain.end(envId);
        expected = end.head?.position ?? 0;
        const batch = await this.#chain.rows(envId, proven.audit_id);
        if (batch.length === 0) {
          this.#finish(proven, end, marks);
          return answer('intact');
        }
        const signed = await this.#chain.anchors(envId, proven.position, batch.at(-1)?.position ?? 0);
        for (const row of batch) {
          proven = this.#follow(proven, row, signed.get(row.position));
          requireMarked(marks, proven);
          if (proven.anchored === row.position) anchors += 1;
          rows += 1;
        }
      }
      return answer('unfinished', { next: proven });
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      const later = await this.#chain.cut(envId);
      // Retention went past us meanwhile: what is missing was cut, and the next step begins behind the cut.
      if (later && later.position > proven.position && error.fault.kind === 'rows_missing') return answer('unfinished', { next: proven });
      return answer('broken', { fault: error.fault });
    }
  }

  /**
   * Chains by environment, for a verification of all of them: those that were seen here count, whether the database still has them or not.
   */
  async chains({ query, caller }: RequestOf<Contract, 'listAuditChains'>) {
    if (!isTrusted(caller)) throw this.#ctx.problem('platform_admin_required');
    const spec = { list: 'audit chains', order: { env_id: 'id' }, ascending: true } as const;
    return this.#ctx.page({ limit: CHAINS, ...query }, spec, async ({ after, where, order, limit }) => {
      const rows = await this.#ctx.db.sql<{ env_id: string; position: number }[]>`
        select env_id, position from audit_heads where ${where} order by ${order} limit ${limit}`;
      const seen = new Map(
        [...this.#witness.environments(String(after?.[0] ?? NO_ID), limit), ...rows].map(chain => [chain.env_id, chain]),
      );
      return [...seen.values()].sort((left, right) => (left.env_id < right.env_id ? -1 : 1)).slice(0, limit);
    });
  }

  #provenBy(after: readonly (string | number)[] | undefined): Proven {
    if (after === undefined) return { position: 0, hash: GENESIS, audit_id: NO_ID, anchored: 0, before: 0, unsigned_since: 0 };
    const [position, hash, audit_id, anchored, before, unsigned_since] = after as [number, string, string, number, number, number];
    const numbers = [position, anchored, before, unsigned_since];
    if (!HASH.test(hash) || !numbers.every(number => Number.isSafeInteger(number) && number >= 0 && number < MOST))
      throw this.#ctx.problem('invalid_cursor');
    return { position, hash, audit_id, anchored, before, unsigned_since };
  }

  #marks(envId: string, behind: number, since: string | undefined): Marks {
    const [position, hash] = since?.split('.') ?? [];
    const kept =
      position !== undefined && hash !== undefined && Number(position) > behind
        ? [{ position: Number(position), hash, by: 'the receipt' as const }]
        : [];
    const seen = this.#witness.marks(envId, behind).map(mark => ({ ...mark, by: 'this machine' as const }));
    return Map.groupBy([...seen, ...kept], ({ position: at }) => at);
  }

  #behind(cut: Signed | undefined, proven: Proven, marks: Marks): Proven {
    if (!cut || cut.position <= proven.position) return proven;
    this.#requireSigned(cut, 'cut');
    requireMarked(marks, cut);
    return {
      position: cut.position,
      hash: cut.hash,
      audit_id: cut.audit_id,
      anchored: cut.position,
      before: cut.position,
      unsigned_since: 0,
    };
  }

  /** The next row of the chain, or what is wrong with it. */
  #follow(proven: Proven, row: AuditRow & { readonly hash: string }, anchor: Signed | undefined): Proven {
    const [expected, at] = [proven.position + 1, { position: row.position, audit_id: row.audit_id }];
    if (row.position > expected)
      throw new Broken({
        kind: 'rows_missing',
        position: expected,
        audit_id: row.audit_id,
        detail: `Rows ${expected} to ${row.position - 1} are missing before this one.`,
      });
    if (row.position < expected)
      throw new Broken({ kind: 'row_inserted', ...at, detail: `A second row ${row.position} stands behind row ${proven.position}.` });
    if (chainHash(proven.hash, row) !== row.hash)
      throw new Broken({ kind: 'row_changed', ...at, detail: `Row ${row.position} is not what was written.` });
    if (!anchor)
      return { ...proven, position: row.position, hash: row.hash, audit_id: row.audit_id, unsigned_since: proven.unsigned_since || row.ts };
    this.#requireSigned(anchor, 'anchor');
    if (anchor.previous !== proven.anchored && anchor.previous !== proven.before)
      throw new Broken({ kind: 'anchor_missing', ...at, detail: `An anchor between row ${proven.anchored} and this one is missing.` });
    if (anchor.hash !== row.hash || anchor.audit_id !== row.audit_id)
      throw new Broken({
        kind: 'chain_rewritten',
        position: proven.anchored + 1,
        audit_id: row.audit_id,
        detail: `Rows between ${proven.anchored + 1} and ${row.position} were written anew: the signed anchor at row ${row.position} says otherwise.`,
      });
    return {
      position: row.position,
      hash: row.hash,
      audit_id: row.audit_id,
      anchored: row.position,
      before: anchor.previous,
      unsigned_since: 0,
    };
  }

  /** No row is left: the head and the newest anchor must be here, not further on. */
  #finish(proven: Proven, { head, anchor, signedBy }: ChainEnd, marks: Marks): void {
    const missing = (to: number, by: string) =>
      new Broken({
        kind: 'rows_missing',
        position: proven.position + 1,
        detail: `Rows ${proven.position + 1} to ${to} are missing at the end: ${by} names them.`,
      });
    if (anchor > proven.position) throw missing(anchor, 'a signed anchor');
    if (head && head.position > proven.position) throw missing(head.position, 'the head');
    if ((head?.position ?? 0) < proven.position || (head && head.hash !== proven.hash))
      throw new Broken({
        kind: 'head_changed',
        position: proven.position,
        audit_id: proven.audit_id,
        detail: `The chain ends at row ${proven.position}, its head says otherwise.`,
      });
    if (proven.unsigned_since > 0 && this.#ctx.clock.now().getTime() - proven.unsigned_since > UNSIGNED_MS)
      throw new Broken({
        kind: 'anchor_missing',
        position: proven.anchored + 1,
        detail: `Rows ${proven.anchored + 1} to ${proven.position} are older than ten minutes and not signed.`,
      });
    const further = Math.max(0, ...marks.keys());
    if (further > proven.position) {
      const by = marks.get(further)?.[0]?.by;
      throw new Broken({
        kind: 'rolled_back',
        position: proven.position + 1,
        detail: `The chain ends at row ${proven.position}, and ${by} knows it up to row ${further}: an earlier state was put back.`,
      });
    }
    if (signedBy !== null && signedBy !== this.#keys.current.id && this.#ctx.clock.now().getTime() - this.#keys.since > UNCONFIRMED_MS)
      throw new Broken({
        kind: 'signature_unconfirmed',
        position: proven.anchored,
        detail: `What a retired key signed at row ${proven.anchored} was not confirmed by the key in force.`,
      });
  }

  #requireSigned(statement: Signed, kind: 'anchor' | 'cut'): void {
    const { position, audit_id } = statement;
    if (!this.#keys.verify({ ...statement, kind }))
      throw new Broken({
        kind: 'signature_invalid',
        position,
        audit_id,
        detail: `The ${kind} at row ${position} is not signed by a key of its time.`,
      });
    if (kind === 'cut' && statement.key_id !== this.#keys.current.id && this.#ctx.clock.now().getTime() - this.#keys.since > UNCONFIRMED_MS)
      throw new Broken({
        kind: 'signature_unconfirmed',
        position,
        audit_id,
        detail: `The cut at row ${position} was signed by a retired key and not confirmed by the key in force.`,
      });
  }
}

/** Whatever anybody took note of at this position must stand there still. */
function requireMarked(marks: Marks, { position, audit_id, hash }: Pick<Proven, 'position' | 'audit_id' | 'hash'>): void {
  const other = marks.get(position)?.find(mark => mark.hash !== hash);
  if (other)
    throw new Broken({
      kind: 'rolled_back',
      position,
      audit_id,
      detail: `Row ${position} is not the one that ${other.by} knows: an earlier state was put back, and the chain went on from there.`,
    });
}
