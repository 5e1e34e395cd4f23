import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Blobs } from './blobs/blobs.ts';
import { FileBlobs } from './blobs/file-blobs.ts';
import { bucketOf, S3Blobs } from './blobs/s3-blobs.ts';
import type { StorageContext } from './context.ts';
import { IncomingBytes } from './objects/incoming-bytes.ts';
import { Objects } from './objects/objects.ts';
import { Inspection } from './upkeep/inspection.ts';
import { Upkeep } from './upkeep/upkeep.ts';

/** The parts of the service, put together. */
export function servicesOf(ctx: StorageContext) {
  const blobs = blobsOf(ctx);
  const incoming = new IncomingBytes(ctx);
  const objects = new Objects(ctx, blobs, incoming);
  return { incoming, objects, upkeep: new Upkeep(ctx, blobs), inspection: new Inspection(ctx, blobs, () => objects.transfers) };
}

function blobsOf(ctx: StorageContext): Blobs {
  const { url, credentials } = ctx.config;
  if (!url) {
    const root = join(ctx.files.directory(), 'blobs');
    mkdirSync(root, { recursive: true, mode: 0o700 });
    return new FileBlobs(root);
  }
  const bucket = bucketOf(url, ctx.platform.production);
  if (!bucket)
    throw new Error(
      'PLATFORM_STORAGE_URL is no address of a bucket: write https://host/bucket?region=…, without a name or a password in it',
    );
  if (!credentials) throw new Error('PLATFORM_STORAGE_CREDENTIALS_REF is unset: a bucket needs an access key');
  const kept = ctx.cache<{ id: string; secret: string }>({ max: 1, ttl: 60_000 });
  const load = async () => {
    const text = Buffer.from((await ctx.secrets.read(credentials)) ?? [])
      .toString('utf8')
      .trim();
    const [, id, secret] = /^([^:\s]+):(\S+)$/.exec(text) ?? [];
    if (!id || !secret)
      throw new Error(
        'the secret that PLATFORM_STORAGE_CREDENTIALS_REF names is not there, or not an id and a secret with a colon between them',
      );
    return { id, secret };
  };
  return ctx.own(new S3Blobs(bucket, () => kept.get('key', load)));
}
