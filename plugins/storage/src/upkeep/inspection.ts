import { createHash } from 'node:crypto';
import type { Request } from '@platform/sdk';
import type { Integrity, StoredObject, Usage } from '../../contract/schema.ts';
import type { Blobs } from '../blobs/blobs.ts';
import type { StorageContext } from '../context.ts';

/** A step of the check ends after so many objects or so many bytes, so that its answer comes in time. */
const STEP_OBJECTS = 500;
const STEP_BYTES = 268_435_456;
const STEP_MS = 5_000;

/** What is stored, for people: how much, what, and whether it is still what it was. */
export class Inspection {
  readonly #ctx: StorageContext;
  readonly #blobs: Blobs;
  readonly #transfers: () => number;

  constructor(ctx: StorageContext, blobs: Blobs, transfers: () => number) {
    this.#ctx = ctx;
    this.#blobs = blobs;
    this.#transfers = transfers;
  }

  async usage(): Promise<Usage> {
    const { sql } = this.#ctx.db;
    const services = await this.services();
    const [waiting] = await sql<{ bytes: number }[]>`select coalesce(sum(size), 0)::bigint as bytes from dropped`;
    const [swept] = await sql<{ swept_at: string; removed: number }[]>`select swept_at, removed from sweeps`;
    const total = (of: 'objects' | 'bytes') => services.reduce((sum, each) => sum + each[of], 0);
    return {
      backend: this.#blobs.kind,
      objects: total('objects'),
      bytes: total('bytes'),
      waiting_bytes: waiting?.bytes ?? 0,
      uploads: this.#transfers(),
      swept_at: swept?.swept_at ?? null,
      sweep_removed: swept?.removed ?? 0,
      services: [...services],
    };
  }

  services() {
    return this.#ctx.db.sql<Usage['services']>`
      select owner, count(*)::bigint as objects, sum(size)::bigint as bytes, max(updated_at) as newest from objects group by owner
        order by bytes desc`;
  }

  list({ prefix = '', env_id, ...query }: { prefix?: string; env_id?: string; limit?: number; cursor?: string }) {
    const { db, page } = this.#ctx;
    const env = env_id ?? null;
    return page(
      query,
      { list: `objects ${prefix} ${env_id ?? ''}`, order: { key: 'text' }, ascending: true },
      ({ where, order, limit }) => db.sql<StoredObject[]>`
        select key, owner, env_id, size, sha256, content_type, created_at, updated_at from objects
        where starts_with(key, ${prefix}) and (${env}::uuid is null or env_id = ${env}::uuid) and ${where} order by ${order}
          limit ${limit}`,
    );
  }

  /** Reads the next objects whole and compares them with their row. */
  async verify({ query, caller }: Request<unknown, { after?: string }>): Promise<Integrity> {
    if (caller?.kind === 'machine' && caller.vertical !== 'platform')
      throw this.#ctx.problem('key_denied', { detail: 'This is for the platform’s own workloads.' });
    const until = Date.now() + STEP_MS;
    const rows = await this.#ctx.db.sql<{ key: string; blob_id: string; size: number; sha256: string }[]>`
      select key, blob_id, size, sha256 from objects where key > ${query.after ?? ''} order by key limit ${STEP_OBJECTS}`;
    const faults: Integrity['faults'] = [];
    let [checked, bytes] = [0, 0];
    let last: string | undefined;
    for (const row of rows) {
      const fault = await this.#faultOf(row);
      if (fault && (await this.#isStill(row))) faults.push({ key: row.key, fault });
      [checked, bytes, last] = [checked + 1, bytes + row.size, row.key];
      if (bytes > STEP_BYTES || Date.now() > until) break;
    }
    return { checked, bytes, faults, next: checked === STEP_OBJECTS || checked < rows.length ? (last ?? null) : null };
  }

  async #faultOf({
    blob_id,
    size,
    sha256,
  }: {
    blob_id: string;
    size: number;
    sha256: string;
  }): Promise<Integrity['faults'][number]['fault'] | undefined> {
    try {
      const source = await this.#blobs.open(blob_id, undefined);
      if (!source) return 'missing';
      const hash = createHash('sha256');
      let seen = 0;
      for await (const piece of source as AsyncIterable<Buffer>) {
        hash.update(piece);
        seen += piece.length;
      }
      return seen === size && hash.digest('hex') === sha256 ? undefined : 'changed';
    } catch (err) {
      this.#ctx.log.warn({ blob_id, err }, 'an object cannot be read');
      return 'unreadable';
    }
  }

  /** What was replaced or deleted meanwhile is no fault. */
  async #isStill({ key, blob_id }: { key: string; blob_id: string }): Promise<boolean> {
    return (await this.#ctx.db.sql<object[]>`select 1 from objects where key = ${key} and blob_id = ${blob_id}`).length > 0;
  }
}
