import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Received } from '../blobs/blobs.ts';
import { isAbsent } from '../blobs/file-blobs.ts';
import type { StorageContext } from '../context.ts';

export const MAX_BYTES = 104_857_600;
const QUIET_MS = 30_000;
const WHOLE_MS = 600_000;
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

  /** Throws a problem when too much comes, too little, too slowly, or other bytes than `x-content-sha256` names. */
  async receive(request: Request): Promise<Received> {
    const named = request.headers.get('x-content-sha256')?.toLowerCase() ?? null;
    if (named !== null && !/^[0-9a-f]{64}$/.test(named))
      throw this.#refuse('sha256_mismatch', 'x-content-sha256 is 64 digits of hexadecimal.');
    const length = request.headers.get('content-length');
    if (Number(length ?? 0) > MAX_BYTES) throw this.#tooLarge();
    const path = join(this.#folder, this.#ctx.platform.newId());
    try {
      const received = await this.#write(path, request);
      if (length !== null && Number(length) !== received.size)
        throw this.#refuse('length_mismatch', `Content-Length names ${length} bytes, ${received.size} came.`);
      if (named !== null && named !== received.sha256)
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
      if (found && now - found.mtimeMs > 2 * WHOLE_MS) await this.forget(path);
    }
  }

  async #write(path: string, { body, signal }: Request): Promise<Received> {
    await using handle = await open(path, 'wx', 0o600);
    const hash = createHash('sha256');
    let size = 0;
    if (body) {
      const reader = (body as ReadableStream<Uint8Array>).getReader();
      const whole = AbortSignal.any([signal, AbortSignal.timeout(WHOLE_MS)]);
      try {
        for (;;) {
          const { done, value } = await this.#next(reader, whole);
          if (done) break;
          size += value.length;
          if (size > MAX_BYTES) throw this.#tooLarge();
          hash.update(value);
          // A plain write may take a part and say so.
          await handle.appendFile(value);
        }
      } catch (error) {
        await reader.cancel(error).catch(() => undefined);
        throw error;
      }
    }
    return { path, size, sha256: hash.digest('hex') };
  }

  async #next(reader: ReadableStreamDefaultReader<Uint8Array>, whole: AbortSignal): Promise<ReadableStreamReadResult<Uint8Array>> {
    const { promise, reject } = Promise.withResolvers<never>();
    const slow = () =>
      reject(
        this.#ctx.problem('upload_timeout', {
          detail: `A piece at least every ${QUIET_MS / 1_000} s, all of it in ${WHOLE_MS / 60_000} minutes.`,
          headers: { connection: 'close' },
        }),
      );
    const timer = setTimeout(slow, QUIET_MS);
    whole.addEventListener('abort', slow, { once: true });
    try {
      return await Promise.race([reader.read(), promise]);
    } finally {
      clearTimeout(timer);
      whole.removeEventListener('abort', slow);
    }
  }

  #tooLarge(): Error {
    return this.#ctx.problem('object_too_large', { detail: `An object has at most ${MAX_BYTES} bytes.`, headers: { connection: 'close' } });
  }

  #refuse(code: 'sha256_mismatch' | 'length_mismatch', detail: string): Error {
    return this.#ctx.problem(code, { detail });
  }
}
