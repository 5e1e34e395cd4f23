import type { Redis } from 'ioredis';

/**
 * Reads of keys that must be as fresh as the question: a read goes out after it was asked for, never before. Reads asked for while one is
 * on its way wait for the next, together and each key once, so that a busy process pays for round trips and not for requests.
 */
export class FreshReads {
  readonly #client: Redis;
  /** Keys asked for, each once, with who waits for it. */
  #waiting: Map<string, PromiseWithResolvers<string | null>> | undefined;
  #reading = false;

  constructor(client: Redis) {
    this.#client = client;
  }

  get(key: string): Promise<string | null> {
    if (!this.#waiting) {
      this.#waiting = new Map();
      // What the rest of this turn asks for goes along.
      if (!this.#reading) setImmediate(() => void this.#read());
    }
    let answer = this.#waiting.get(key);
    if (!answer) this.#waiting.set(key, (answer = Promise.withResolvers()));
    return answer.promise;
  }

  async #read(): Promise<void> {
    const batch = this.#waiting;
    if (!batch) return;
    this.#waiting = undefined;
    this.#reading = true;
    const keys = [...batch.keys()];
    try {
      const answers = (await this.#client.pipeline(keys.map(key => ['get', key])).exec()) ?? [];
      for (const [index, key] of keys.entries()) {
        const [error, value] = answers[index] ?? [new Error('the key-value store did not answer')];
        if (error) batch.get(key)?.reject(error);
        else batch.get(key)?.resolve(value as string | null);
      }
    } catch (error) {
      for (const answer of batch.values()) answer.reject(error);
    } finally {
      this.#reading = false;
      if (this.#waiting) setImmediate(() => void this.#read());
    }
  }
}
