import type { Redis } from 'ioredis';
import { isCluster, pipelined } from './pipelined.ts';

type Answers = ReadonlyMap<string, string | null | Error>;
interface Batch {
  readonly keys: Set<string>;
  readonly done: PromiseWithResolvers<Answers>;
}

/**
 * Reads of keys that must be as fresh as the question: a read goes out after it was asked for, never before. Reads asked for while one is
 * on its way wait for the next, together and each key once, so that a busy process pays for round trips and not for requests.
 */
export class FreshReads {
  readonly #client: Redis;
  #waiting: Batch | undefined;
  #reading = false;

  constructor(client: Redis) {
    this.#client = client;
  }

  /** Values in the order of the keys, `null` where there is no text. Throws when the store is away. */
  async get(keys: readonly string[]): Promise<(string | null)[]> {
    const { keys: asked, done } = (this.#waiting ??= this.#next());
    for (const key of keys) asked.add(key);
    const answers = await done.promise;
    return keys.map(key => {
      const value = answers.get(key);
      if (value instanceof Error) throw value;
      return value ?? null;
    });
  }

  #next(): Batch {
    // What the rest of this turn asks for goes along.
    if (!this.#reading) setImmediate(() => void this.#read());
    return { keys: new Set(), done: Promise.withResolvers() };
  }

  async #read(): Promise<void> {
    const batch = this.#waiting;
    if (!batch) return;
    this.#waiting = undefined;
    this.#reading = true;
    const keys = [...batch.keys];
    try {
      const answers = isCluster(this.#client)
        ? await pipelined(
            this.#client,
            keys.map(key => ['GET', key]),
          )
        : await this.#client.mget(keys);
      batch.done.resolve(new Map(keys.map((key, index) => [key, answers[index] as string | null | Error])));
    } catch (error) {
      batch.done.reject(error);
    } finally {
      this.#reading = false;
      if (this.#waiting) setImmediate(() => void this.#read());
    }
  }
}
