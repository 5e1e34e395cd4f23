import { createHash } from 'node:crypto';
import type { Backends } from './contract/capabilities.ts';

const TIMEOUT_MS = 15_000;

/** Objects of a service in object storage, reached as its own workload (G-STO-01): keys begin with its wire id. */
export class StoredObjects {
  readonly #backends: Backends;
  readonly #unreachable: (cause: Error) => Error;

  /**
   * `unreachable` makes the service's own problem of what went wrong. The service has the capability `backends` and uses the actions of
   * storage.
   */
  constructor(backends: Backends, unreachable: (cause: Error) => Error) {
    [this.#backends, this.#unreachable] = [backends, unreachable];
  }

  async put(key: string, bytes: Uint8Array, { type, envId }: { readonly type: string; readonly envId: string }): Promise<void> {
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    await this.#done(
      await this.#ask(
        'PUT',
        key,
        { 'content-type': type, 'content-length': String(bytes.length), 'x-content-sha256': sha256, 'x-platform-target-env-id': envId },
        bytes,
      ),
    );
  }

  /** The answer with the bytes as its body; `undefined` where there are none. */
  async get(key: string): Promise<Response | undefined> {
    const answer = await this.#ask('GET', key, {});
    if (answer.ok) return answer;
    await answer.arrayBuffer();
    if (answer.status === 404) return undefined;
    throw this.#refused(answer.status);
  }

  /** No matter whether it is there. */
  async delete(key: string): Promise<void> {
    await this.#done(await this.#ask('DELETE', key, {}));
  }

  async #done(answer: Response): Promise<void> {
    await answer.arrayBuffer();
    if (!answer.ok) throw this.#refused(answer.status);
  }

  #refused(status: number): Error {
    return this.#unreachable(new Error(`object storage answered ${status}`));
  }

  #ask(method: string, key: string, headers: Record<string, string>, body?: Uint8Array): Promise<Response> {
    return this.#backends
      .fetch('storage', `/v1/objects/${key}`, {
        method,
        headers,
        body: (body ?? null) as BodyInit | null,
        timeoutMs: TIMEOUT_MS,
        signal: AbortSignal.timeout(2 * TIMEOUT_MS),
      })
      .catch(cause => {
        throw this.#unreachable(cause instanceof Error ? cause : new Error(String(cause)));
      });
  }
}
