import { Redis } from 'ioredis';

/** The shared key-value store: one client for commands, and duplicates for calls that block. Life: connected → closed. */
export class KeyValue {
  /** Fails fast: one retry per request, 4 s per command, nothing is queued while the store is away. */
  readonly client: Redis;
  readonly #duplicates = new Set<Redis>();

  constructor(client: Redis) {
    this.client = client;
  }

  /** A connection of its own for blocking reads and subscriptions: it has no command timeout, and closes with this store at the latest. */
  async duplicate(): Promise<Redis> {
    const copy = quiet(this.client.duplicate({ commandTimeout: undefined, lazyConnect: true }));
    this.#duplicates.add(copy);
    copy.once('end', () => this.#duplicates.delete(copy));
    try {
      await copy.connect();
      return copy;
    } catch (error) {
      copy.disconnect();
      throw error;
    }
  }

  /** Whether the store answers now. */
  async healthy(timeoutMs = 1_000): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, timeoutMs, false);
    try {
      return await Promise.race([
        this.client.ping().then(
          answer => answer === 'PONG',
          () => false,
        ),
        late,
      ]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends every connection; unanswered commands fail. */
  async close(): Promise<void> {
    for (const copy of this.#duplicates) copy.disconnect();
    if (this.client.status === 'ready') await this.client.quit().catch(() => {});
    this.client.disconnect();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Connects to `url` (`redis://` or `rediss://`), failing when it does not answer at first; later losses are mended in the background. */
export async function connectKeyValue(url: string): Promise<KeyValue> {
  let connected = false;
  const client = quiet(
    new Redis(url, {
      lazyConnect: true,
      maxRetriesPerRequest: 1,
      commandTimeout: 4_000,
      connectTimeout: 4_000,
      enableOfflineQueue: false,
      keepAlive: 10_000,
      retryStrategy: (tries: number) => (connected ? Math.min(50 * 2 ** Math.min(tries, 10), 2_000) : null),
    }),
  );
  try {
    await client.connect();
    connected = true;
    return new KeyValue(client);
  } catch (error) {
    client.disconnect();
    throw error;
  }
}

/** Every failed command tells its caller; without a listener the connection's own errors would be printed as well. */
function quiet(client: Redis): Redis {
  return client.on('error', () => {});
}
