import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { UploadOf } from '@platform/sdk';
import type { storage } from '../../contract/index.ts';
import type { Received } from '../blobs/blobs.ts';
import { isAbsent } from '../blobs/file-blobs.ts';
import type { StorageContext } from '../context.ts';

/** Longer than any upload takes. */
const LEFT_MS = 1_200_000;
type Incoming = Pick<UploadOf<typeof storage, 'putObject'>, 'headers' | 'body'>;
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Takes bytes to a file of this machine and counts and hashes them on the way: nothing is stored that did not come whole, and memory holds
 * one piece.
 */
export class IncomingBytes {
  readonly #ctx: Pick<StorageContext, 'problem' | 'platform'>;
  readonly #folder: string;

  constructor(ctx: Pick<StorageContext, 'problem' | 'platform' | 'files'>) {
    this.#ctx = ctx;
    this.#folder = join(ctx.files.directory(), 'incoming');
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Throws a problem when less comes than was named, or other bytes than `x-content-sha256` names. */
  async receive({ headers, body }: Incoming): Promise<Received> {
    const named = headers['x-content-sha256']?.toLowerCase();
    if (named !== undefined && !/^[0-9a-f]{64}$/.test(named))
      throw this.#refuse('sha256_mismatch', 'x-content-sha256 is 64 digits of hexadecimal.');
    const length = headers['content-length'];
    const path = join(this.#folder, this.#ctx.platform.newId());
    try {
      const received = await this.#write(path, body);
      if (length !== undefined && Number(length) !== received.size)
        throw this.#refuse('length_mismatch', `Content-Length names ${length} bytes, ${received.size} came.`);
      if (named !== undefined && named !== received.sha256)
        throw this.#refuse('sha256_mismatch', `These bytes have the SHA-256 ${received.sha256}.`);
      return received;
    } catch (error) {
      await this.forget(path);
      if (FULL.has((error as { code?: string }).code ?? '')) throw this.#ctx.problem('storage_full', { cause: error });
      throw error;
    }
  }

  async forget(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** Removes what was cut off: by a crash, or a client that went. */
  async tidy(now: number): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const found = await stat(path).catch(error => {
        if (!isAbsent(error)) throw error;
      });
      if (found && now - found.mtimeMs > LEFT_MS) await this.forget(path);
    }
  }

  async #write(path: string, body: AsyncIterable<Uint8Array>): Promise<Received> {
    await using handle = await open(path, 'wx', 0o600);
    const hash = createHash('sha256');
    let size = 0;
    for await (const piece of body) {
      size += piece.length;
      hash.update(piece);
      // A plain write may take a part and say so.
      await handle.appendFile(piece);
    }
    return { path, size, sha256: hash.digest('hex') };
  }

  #refuse(code: 'sha256_mismatch' | 'length_mismatch', detail: string): Error {
    return this.#ctx.problem(code, { detail });
  }
}
