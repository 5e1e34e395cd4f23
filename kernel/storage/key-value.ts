import type { RedisOptions } from 'ioredis';
import { Cluster, Redis } from 'ioredis';
import { isCluster } from './pipelined.ts';
import { StorageError } from './storage-error.ts';

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
    const { client } = this;
    return this.#connected(
      isCluster(client) ? duplicateOf(client as unknown as Cluster) : client.duplicate({ commandTimeout: undefined, lazyConnect: true }),
    );
  }

  /** A connection of its own that repeats nothing: commands under way when it breaks fail at once. */
  async once(): Promise<Redis> {
    const { client } = this;
    if (!isCluster(client))
      return this.#connected(client.duplicate({ maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, lazyConnect: true }));
    const copy = await this.#connected(onceOf(client as unknown as Cluster));
    // Servers are connected to when they are first asked, and nothing of the copy waits for that.
    await Promise.all((copy as unknown as Cluster).nodes('master').map(node => node.ping()));
    return copy;
  }

  async #connected(made: Redis): Promise<Redis> {
    const copy = quiet(made);
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

/**
 * Connects to `url` (`redis://` or `rediss://`), failing when it does not answer at first; later losses are mended in the background.
 * When the server says that it is part of a cluster, the client speaks to all of it.
 */
export async function connectKeyValue(url: string): Promise<KeyValue> {
  let connected = false;
  const settings = {
    lazyConnect: true,
    maxRetriesPerRequest: 1,
    commandTimeout: 4_000,
    connectTimeout: 4_000,
    enableOfflineQueue: false,
    keepAlive: 10_000,
    retryStrategy: (tries: number) => (connected ? waitMs(tries) : null),
  } satisfies RedisOptions;
  const client = quiet(new Redis(url, settings));
  try {
    await client.connect();
    connected = true;
    if (!/cluster_enabled:1/.test(await client.info('cluster'))) return new KeyValue(client);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  const { host = '127.0.0.1', port = 6379, username, password, tls, db } = client.options;
  client.disconnect();
  if (db) throw new StorageError('key_value_cluster', 'a cluster has one database: leave the number out of PLATFORM_KV_URL');
  return connectCluster(
    { host, port },
    { ...settings, ...(username ? { username } : {}), ...(password ? { password } : {}), ...(tls ? { tls } : {}) },
  );
}

async function connectCluster(first: { host: string; port: number }, settings: RedisOptions): Promise<KeyValue> {
  const { lazyConnect: _lazy, enableOfflineQueue: _queue, retryStrategy: _retry, ...redisOptions } = settings;
  const cluster = new Cluster([first], {
    lazyConnect: true,
    enableOfflineQueue: false,
    // The client's type asks for the one member that decides its answers' shape, and ours leaves it at its default.
    redisOptions: redisOptions as never,
    clusterRetryStrategy: waitMs,
    retryDelayOnFailover: 200,
    slotsRefreshTimeout: 4_000,
  });
  const client = quiet(asClient(cluster));
  try {
    await cluster.connect();
    return new KeyValue(client);
  } catch (error) {
    cluster.disconnect();
    throw error;
  }
}

const waitMs = (tries: number): number => Math.min(50 * 2 ** Math.min(tries, 10), 2_000);

function duplicateOf(cluster: Cluster): Redis {
  const { commandTimeout: _timeout, ...redisOptions } = cluster.options.redisOptions ?? {};
  return asClient(cluster.duplicate([], { lazyConnect: true, redisOptions: redisOptions as never }));
}

function onceOf(cluster: Cluster): Redis {
  const redisOptions = { ...cluster.options.redisOptions, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  return asClient(
    cluster.duplicate([], { lazyConnect: true, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, redisOptions: redisOptions as never }),
  );
}
/** A cluster answers to the same calls as one server; what differs is asked of `isCluster`. */
const asClient = (cluster: Cluster): Redis => cluster as unknown as Redis;

/** Every failed command tells its caller; without a listener the connection's own errors would be printed as well. */
function quiet(client: Redis): Redis {
  return client.on('error', () => {});
}
