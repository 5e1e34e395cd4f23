import type { Blobs } from '../blobs/blobs.ts';
import type { StorageContext } from '../context.ts';

/** Bytes are younger than this while their write may still be under way, however slow. */
const GRACE_MS = 3_600_000;
/** Who read a row a moment ago still opens its bytes. */
const READERS_S = 60;
const BATCH = 500;

/** Takes bytes away that no object leads to: those whose row is gone, and those that never had one. */
export class Upkeep {
  readonly #ctx: StorageContext;
  readonly #blobs: Blobs;

  constructor(ctx: StorageContext, blobs: Blobs) {
    this.#ctx = ctx;
    this.#blobs = blobs;
  }

  /** Bytes of objects that were deleted or replaced, or whose environment is gone. */
  async reclaim(signal: AbortSignal): Promise<void> {
    const { db } = this.#ctx;
    while (!signal.aborted) {
      const gone = await db.sql<{ blob_id: string }[]>`
        select blob_id from dropped where dropped_at < now() - make_interval(secs => ${READERS_S}) order by dropped_at limit ${BATCH}`;
      for (const { blob_id } of gone) {
        if (signal.aborted) return;
        await this.#blobs.delete(blob_id);
        await db.sql`delete from dropped where blob_id = ${blob_id}`;
      }
      if (gone.length < BATCH) return;
    }
  }

  /** Bytes that a crash left between their write and their row. */
  async sweep(signal: AbortSignal, now = Date.now()): Promise<void> {
    let [looked, removed, bytes] = [0, 0, 0];
    let batch: { blobId: string; size: number }[] = [];
    const settle = async () => {
      const ids = batch.map(({ blobId }) => blobId);
      const known = await this.#ctx.db.sql<{ blob_id: string }[]>`
        select blob_id from objects where blob_id = any(${ids}::uuid[]) union all select blob_id from dropped
          where blob_id = any(${ids}::uuid[])`;
      const kept = new Set(known.map(({ blob_id }) => blob_id));
      for (const { blobId, size } of batch.filter(each => !kept.has(each.blobId))) {
        await this.#blobs.delete(blobId);
        [removed, bytes] = [removed + 1, bytes + size];
      }
      batch = [];
    };
    for await (const { blobId, size, modifiedAt } of this.#blobs.list(signal)) {
      looked += 1;
      if (now - modifiedAt > GRACE_MS) batch.push({ blobId, size });
      if (batch.length === BATCH) await settle();
    }
    if (batch.length > 0) await settle();
    if (signal.aborted) return;
    await this.#ctx.db.sql`
      insert into sweeps (swept_at, looked_at, removed, bytes) values (${this.#ctx.clock.now()}, ${looked}, ${removed}, ${bytes})
      on conflict (only_one) do update set (swept_at, looked_at, removed, bytes) = (excluded.swept_at, excluded.looked_at,
        excluded.removed, excluded.bytes)`;
    if (removed > 0) this.#ctx.log.warn({ removed, bytes }, 'bytes that no object led to were deleted');
  }
}
