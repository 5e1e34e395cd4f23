import { createHash } from 'node:crypto';
import type { Ctx } from '../context.ts';

const TIMEOUT_MS = 15_000;
export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Images in object storage, reached as this service's own workload (APP-037). */
export class MediaObjects {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async put(key: string, bytes: Uint8Array, { type, envId }: { type: string; envId: string }): Promise<void> {
    const headers = { 'content-type': type, 'content-length': String(bytes.length), 'x-content-sha256': sha256Of(bytes), 'x-platform-target-env-id': envId };
    const answer = await this.#ask('PUT', key, headers, bytes);
    await answer.arrayBuffer();
    if (!answer.ok) throw this.#unreachable(answer.status);
  }

  /** The bytes as a stream; `undefined` where there are none. */
  async get(key: string): Promise<Response | undefined> {
    const answer = await this.#ask('GET', key, {});
    if (answer.ok) return answer;
    await answer.arrayBuffer();
    if (answer.status === 404) return undefined;
    throw this.#unreachable(answer.status);
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
    return this.#ctx.problem('media_unreachable', { detail: 'Object storage did not answer as it should. Try again.', cause: cause instanceof Error ? cause : new Error(String(cause)) });
  }
}
