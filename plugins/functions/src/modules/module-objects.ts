import { createHash } from 'node:crypto';
import { StoredObjects } from '@platform/sdk';
import type { FuncContext } from '../context.ts';

export const hashOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Modules in object storage (FUN-033): what comes out is what was uploaded, or nothing does. */
export class ModuleObjects {
  readonly #objects: StoredObjects;
  readonly #unreachable: (cause: Error) => Error;

  constructor(ctx: FuncContext) {
    this.#unreachable = cause =>
      ctx.problem('object_unreachable', { detail: 'Object storage did not answer as it should. Try again.', cause });
    this.#objects = new StoredObjects(ctx.backends, this.#unreachable);
  }

  put(key: string, bytes: Uint8Array, envId: string): Promise<void> {
    return this.#objects.put(key, bytes, { type: 'application/wasm', envId });
  }

  /** The bytes, which are those that were uploaded. */
  async get(key: string, hash: string): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.#objects.get(key);
    if (!answer) throw this.#unreachable(new Error('the object is not there'));
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (hashOf(bytes) !== hash) throw this.#unreachable(new Error('other bytes than were stored'));
    return bytes;
  }

  delete(key: string): Promise<void> {
    return this.#objects.delete(key);
  }
}
