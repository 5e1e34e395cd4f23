import { FLEET_KEYS } from '@platform/sdk';
import { createHmac } from 'node:crypto';
import { Redis } from 'ioredis';

const COMMANDS = [
  'get',
  'mget',
  'exists',
  'hvals',
  'hget',
  'hset',
  'hdel',
  'hincrby',
  'expire',
  'set',
  'getdel',
  'publish',
  'subscribe',
  'unsubscribe',
  'ping',
  'info',
  'select',
  'client',
  'hello',
  'auth',
  'quit',
];

/**
 * Key-value logins for code that is not ours: each reads versions and revocations, and writes its own instance row and tickets (H-03,
 * H-06). The store keeps logins in memory only, so that they are made again whenever it comes back.
 */
export class RestrictedLogins implements AsyncDisposable {
  readonly #url: string;
  readonly #rules = new Map<string, readonly string[]>();
  #client: Redis | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /**
   * Makes the login of a service and answers the URL that uses it. The password follows from the store's own: a vertical that outlives its
   * host still has the right one when the next host makes the login anew.
   */
  async add(service: string): Promise<string> {
    const password = createHmac('sha256', new URL(this.#url).password || this.#url)
      .update(`vertical-${service}`)
      .digest('base64url');
    const user = `vertical-${service}`;
    const keys = [
      '%R~authz:*',
      '%R~env-state:*',
      '%R~revoked:*',
      `%R~${FLEET_KEYS.instances('*')}`,
      `~${FLEET_KEYS.instances(service)}`,
      `~ticket:${service}:*`,
      '~revoked:used:*',
    ];
    this.#rules.set(user, [
      'reset',
      'on',
      `>${password}`,
      ...keys,
      `&${FLEET_KEYS.changed}`,
      '&revoked:changed',
      ...COMMANDS.map(command => `+${command}`),
    ]);
    const client = await this.#connected();
    await this.#apply(client, user);
    const restricted = new URL(this.#url);
    restricted.username = user;
    restricted.password = password;
    return restricted.toString();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client?.disconnect();
  }

  async #connected(): Promise<Redis> {
    if (this.#client) return this.#client;
    const client = new Redis(this.#url, {
      lazyConnect: true,
      maxRetriesPerRequest: 1,
      retryStrategy: tries => Math.min(50 * 2 ** Math.min(tries, 10), 1_000),
    });
    client.on('error', () => undefined);
    await client.connect().catch((error: unknown) => {
      client.disconnect();
      throw error;
    });
    // A store that went away may have come back empty.
    client.on('ready', () => {
      for (const user of this.#rules.keys()) void this.#apply(client, user).catch(() => undefined);
    });
    this.#client = client;
    return client;
  }

  async #apply(client: Redis, user: string): Promise<void> {
    await client.call('ACL', 'SETUSER', user, ...(this.#rules.get(user) ?? []));
  }
}
