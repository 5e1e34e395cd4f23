import { createHash } from 'node:crypto';
import { type RawExchange, reply, type Reply, type StoredObjects } from '@platform/sdk';
import type { ContentType, Media } from '../../contract/schema/listing.ts';
import type { Ctx, Of, StoreTx } from '../context.ts';
import { imageSize } from './image-size.ts';
import { viewerOf } from './listing-row.ts';
import type { Listings } from './listings.ts';

/** G-K-22. */
const MOST_BYTES = 5_242_880;
const MOST_SIDE = 8_192;
const MOST_PIXELS = 40_000_000;
const EXTENSIONS: Readonly<Record<ContentType, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' };
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

interface Row extends Media {
  readonly content_type: ContentType;
  readonly sha256: string;
}

/** Images of listings: what they are by their own bytes, not by what somebody says of them (APP-036, APP-037). */
export class ListingMedia {
  readonly #ctx: Ctx;
  readonly #listings: Listings;
  readonly #objects: StoredObjects;

  constructor(ctx: Ctx, parts: { listings: Listings; objects: StoredObjects }) {
    this.#ctx = ctx;
    this.#listings = parts.listings;
    this.#objects = parts.objects;
  }

  async add({ params, body, caller, env, ifMatch }: Of<'addMedia'>): Promise<Reply<Media>> {
    const { bytes, size } = this.#image(body.data_base64, body.content_type);
    const { listing_id, env_id } = await this.#listings.own(viewerOf(caller, env), params.listing_id);
    const storage_key = `app/${listing_id}/${body.role}.${EXTENSIONS[body.content_type]}`;
    const entry: Media = { role: body.role, resolution: body.resolution ?? `${size.width}x${size.height}`, storage_key };
    // The bytes first, outside of any transaction: a row never names bytes that are not there, and a slow store holds no connection.
    await this.#objects.put(storage_key, bytes, { type: body.content_type, envId: env_id });
    await this.#listings.change(listing_id, { caller, env, ifMatch }, async tx => {
      await this.#makeWay(tx, listing_id, body.role, storage_key);
      const row = {
        listing_id,
        ...entry,
        content_type: body.content_type,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        created_at: this.#ctx.clock.now(),
      };
      await tx.sql`insert into listing_media ${tx.sql.row(row)}`;
      return 'updated';
    });
    return reply(entry, { status: 201, headers: { location: `/v1/app/store/listings/${listing_id}/images/${body.role}` } });
  }

  async remove({ params, caller, env, ifMatch }: Of<'removeMedia'>): Promise<void> {
    await this.#listings.change(params.listing_id, { caller, env, ifMatch }, async (tx, before) => {
      if (!(await this.#makeWay(tx, before.listing_id, params.role))) throw this.#absent();
      return 'updated';
    });
  }

  /** The bytes, for who sees the listing. A browser takes them for nothing but an image (nosniff), and runs nothing in them. */
  async read({ request, params, caller, targetEnvId }: RawExchange): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw this.#ctx.problem('method_refused', { headers: { allow: 'GET, HEAD' } });
    if (!caller) throw this.#absent();
    const { listing_id } = await this.#listings.seen(viewerOf(caller, targetEnvId), params['listing_id'] ?? '');
    const [row] = await this.#ctx.db.sql<
      Row[]
    >`select * from listing_media where listing_id = ${listing_id} and role = ${params['role'] ?? ''}`;
    if (!row) throw this.#absent();
    const headers = {
      'content-type': row.content_type,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'content-disposition': `inline; filename="${row.role}.${EXTENSIONS[row.content_type]}"`,
      'cache-control': 'private, no-cache',
      etag: `"${row.sha256.slice(0, 32)}"`,
    };
    if (request.headers.get('if-none-match') === headers.etag) return new Response(null, { status: 304, headers });
    if (request.method === 'HEAD') return new Response(null, { headers });
    const stored = await this.#objects.get(row.storage_key);
    if (!stored) throw this.#absent();
    return new Response(stored.body, { headers });
  }

  discard({ storage_key }: { storage_key: string }): Promise<void> {
    return this.#objects.delete(storage_key);
  }

  #image(base64: string, claimed: ContentType) {
    const refuse = (detail: string) =>
      this.#ctx.problem('media_invalid', { detail, extra: { errors: [{ pointer: '/data_base64', code: 'invalid', message: detail }] } });
    if (!BASE64.test(base64)) throw refuse('The bytes are not in base64.');
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.length > MOST_BYTES) throw this.#ctx.problem('media_too_large', { detail: `An image has at most ${MOST_BYTES} bytes.` });
    const size = imageSize(bytes);
    if (!size) throw refuse('The bytes are no PNG, JPEG or WebP image.');
    if (size.type !== claimed) throw refuse(`The bytes are ${size.type}, not ${claimed}.`);
    const { width, height } = size;
    if (width < 1 || height < 1) throw refuse('The image has no pixels.');
    if (width > MOST_SIDE || height > MOST_SIDE || width * height > MOST_PIXELS)
      throw refuse(`${width}x${height} is too large: a side has at most ${MOST_SIDE} pixels, the image ${MOST_PIXELS}.`);
    return { bytes, size };
  }

  /** Whether there was one. Its bytes go unless the next ones take their place. */
  async #makeWay(tx: StoreTx, listingId: string, role: string, nextKey?: string): Promise<boolean> {
    const [gone] = await tx.sql<Row[]>`delete from listing_media where listing_id = ${listingId} and role = ${role} returning *`;
    if (gone && gone.storage_key !== nextKey) await tx.enqueue('discard', { storage_key: gone.storage_key }, { key: gone.storage_key });
    // A key that is about to be deleted is in use again.
    if (nextKey !== undefined) await tx.cancel('discard', nextKey);
    return gone !== undefined;
  }

  #absent() {
    return this.#ctx.problem('media_not_found', { detail: 'The listing has no such image.' });
  }
}
