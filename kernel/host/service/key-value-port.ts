import type { KeyValue } from '@platform/sdk';
import type { AccessSources } from '../../identity/tokens/access-closure.ts';
import type { DirectoryStore } from '../../routing/directory.ts';
import { FreshReads } from '../../storage/fresh-reads.ts';
import type { Redis } from 'ioredis';
import type { KeyValue as Store } from '../../storage/key-value.ts';
import { pipelined, shardTags } from '../../storage/pipelined.ts';

/** The key-value store as plugins with the capability see it. */
export async function keyValuePort(store: Store): Promise<KeyValue & AsyncDisposable> {
  const subscriptions = new Subscriptions(store);
  return { ...portOf(store.client, store, subscriptions), [Symbol.asyncDispose]: () => subscriptions[Symbol.asyncDispose]() };
}

function portOf(client: Redis, store: Store, subscriptions: Subscriptions): KeyValue {
  const reads = new FreshReads(client);
  let epoch = 0;
  for (const event of ['ready', '+node', '-node']) client.on(event, () => (epoch += 1));
  return {
    epoch: () => epoch,
    call: (command, ...args) => client.call(command, ...args.map(String)),
    pipeline: commands =>
      pipelined(
        client,
        commands.map(command => command.map(String)),
      ),
    shardTags: () => shardTags(client),
    current: keys => reads.get(keys),
    subscribe: (channel, listener) => subscriptions.add(channel, listener),
    duplicate: async () => owned(await store.duplicate(), store, subscriptions),
    once: async () => owned(await store.once(), store, subscriptions),
  };
}

function owned(copy: Redis, store: Store, subscriptions: Subscriptions): KeyValue & AsyncDisposable {
  return { ...portOf(copy, store, subscriptions), [Symbol.asyncDispose]: async () => copy.disconnect() };
}

/** One connection for all of a process's channels; it subscribes again by itself after a loss. */
class Subscriptions implements AsyncDisposable {
  readonly #store: Store;
  readonly #listeners = new Map<string, Set<(message: string) => void>>();
  #client: Promise<Redis> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  async add(channel: string, listener: (message: string) => void): Promise<AsyncDisposable> {
    this.#client ??= this.#store.duplicate().then(client => {
      client.on('message', (from: string, message: string) => {
        for (const heard of this.#listeners.get(from) ?? []) heard(message);
      });
      return client;
    });
    const client = await this.#client;
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    if (listeners.size === 1) await client.subscribe(channel);
    return {
      [Symbol.asyncDispose]: async () => {
        listeners.delete(listener);
        if (listeners.size === 0) await client.unsubscribe(channel).catch(() => undefined);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.#client?.catch(() => undefined))?.disconnect();
  }
}

export const directoryStore = (kv: KeyValue): DirectoryStore => ({
  hashValues: async key => (await kv.call('HVALS', key)) as string[],
  hashGet: async (key, field) => (await kv.call('HGET', key, field)) as string | null,
  hashSet: async (key, field, value) => void (await kv.call('HSET', key, field, value)),
  hashDelete: async (key, field) => void (await kv.call('HDEL', key, field)),
  publish: async (channel, message) => void (await kv.call('PUBLISH', channel, message)),
  subscribe: (channel, listener) => kv.subscribe(channel, listener),
});

/** Versions and revocation marks, each in one round trip that the requests of the same moment share (day-one 6). */
export const liveReader =
  (kv: KeyValue): AccessSources['live'] =>
  async (versionKeys, revocationKeys) => {
    const answers = await kv.current([...versionKeys, ...revocationKeys]);
    return {
      versions: answers.slice(0, versionKeys.length).map(version => version ?? '0'),
      revoked: answers.slice(versionKeys.length).some(mark => mark !== null),
    };
  };
