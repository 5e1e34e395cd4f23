import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Blobs, Received, Span, StoredBlob } from './blobs.ts';

const NAME = /^[0-9a-f-]{36}$/;

/** Bytes in files of the service's own folder. A name appears by a rename after the bytes are on disk, so a crash leaves no half object. */
export class FileBlobs implements Blobs {
  readonly kind = 'files';
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async keep(blobId: string, { path }: Received): Promise<void> {
    const folder = join(this.#root, roomOf(blobId));
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) await settle(this.#root);
    await settle(path);
    await rename(path, join(folder, blobId));
    // The name is part of the folder: without this it may be gone after a crash, though the bytes are there.
    await settle(folder);
  }

  async open(blobId: string, span: Span | undefined): Promise<Readable | undefined> {
    try {
      const handle = await open(join(this.#root, roomOf(blobId), blobId));
      return handle.createReadStream({ ...span, highWaterMark: 262_144 });
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  async delete(blobId: string): Promise<void> {
    await rm(join(this.#root, roomOf(blobId), blobId), { force: true });
  }

  async *list(signal: AbortSignal): AsyncIterable<StoredBlob> {
    for await (const room of await opendir(this.#root)) {
      if (!room.isDirectory()) continue;
      for await (const { name } of await opendir(join(this.#root, room.name))) {
        if (signal.aborted) return;
        if (!NAME.test(name)) continue;
        const found = await stat(join(this.#root, room.name, name)).catch(() => undefined);
        if (found) yield { blobId: name, size: found.size, modifiedAt: found.mtimeMs };
      }
    }
  }
}

/** The last two digits are the random ones: ids of one moment are spread over 256 folders. */
const roomOf = (blobId: string): string => blobId.slice(-2);

async function settle(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/** Whether a file was not there. */
export const isAbsent = (error: unknown): boolean => (error as { code?: string }).code === 'ENOENT';
