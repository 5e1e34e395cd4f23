import { createHash } from 'node:crypto';
import type { FuncContext } from '../context.ts';

const TIMEOUT_MS = 15_000;
export const hashOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Modules in object storage, reached as this service's own workload (FUN-033). */
export class ModuleObjects {
  readonly #ctx: FuncContext;

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
  }

  async put(key: string, bytes: Uint8Array, envId: string): Promise<void> {
    const headers = { 'content-type': 'application/wasm', 'content-length': String(bytes.length), 'x-content-sha256': hashOf(bytes).slice(7), 'x-platform-target-env-id': envId };
    const answer = await this.#ask('PUT', key, headers, bytes);
    await answer.arrayBuffer();
    if (!answer.ok) throw this.#unreachable(answer.status);
  }

  /** The bytes, which are those that were uploaded. */
  async get(key: string, hash: string): Promise<Uint8Array<ArrayBuffer>> {
    const answer = await this.#ask('GET', key, {});
    if (!answer.ok) {
      await answer.arrayBuffer();
      throw this.#unreachable(answer.status);
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (hashOf(bytes) !== hash) throw this.#unreachable('other bytes than were stored');
    return bytes;
  }

  async delete(key: string): Promise<void> {
    const answer = await this.#ask('DELETE', key, {});
    await answer.arrayBuffer();
    if (!answer.ok) throw this.#unreachable(answer.status);
  }

  #ask(method: string, key: string, headers: Record<string, string>, body?: Uint8Array): Promise<Response> {
    return this.#ctx.backends
      .fetch('storage', `/v1/objects/${key}`, { method, headers, body: (body ?? null) as BodyInit | null, timeoutMs: TIMEOUT_MS, signal: AbortSignal.timeout(2 * TIMEOUT_MS) })
      .catch(cause => {
        throw this.#unreachable(cause);
      });
  }

  #unreachable(cause: unknown): Error {
    return this.#ctx.problem('object_unreachable', { detail: 'Object storage did not answer as it should. Try again.', cause: cause instanceof Error ? cause : new Error(String(cause)) });
  }
}
