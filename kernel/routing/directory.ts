import { BoundedMap, type InstanceRegistry, type InstanceRow, type Logger, FLEET_KEYS } from '@platform/sdk';

/** One running instance of a service, as kept in the shared registry (G-CAP-01). */
export type Instance = { -readonly [K in keyof InstanceRow]: InstanceRow[K] };

/** The part of the key-value store the directory needs. */
export interface DirectoryStore {
  hashValues(key: string): Promise<readonly string[]>;
  hashGet(key: string, field: string): Promise<string | null>;
  hashSet(key: string, field: string, value: string): Promise<void>;
  hashDelete(key: string, field: string): Promise<void>;
  publish(channel: string, message: string): Promise<void>;
  subscribe(channel: string, listener: (message: string) => void): Promise<AsyncDisposable>;
}

const FRESH_MS = 30_000;
const CACHE_MS = 2_000;
const SUSPECT_MS = 30_000;
const HEARTBEAT_MS = 10_000;
const { changed: CHANGED, instances: keyOf } = FLEET_KEYS;

/**
 * Where services run: Active instances with health fresher than 30 s, shared through the key-value store.
 * While the store is away the last known addresses serve on.
 */
export class Directory implements AsyncDisposable {
  readonly #store: DirectoryStore;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #known = new Map<string, { at: number; instances: readonly Instance[] }>();
  readonly #own = new Map<string, Instance>();
  readonly #suspects = new BoundedMap<string, number>(1_000);
  #heartbeat: NodeJS.Timeout | undefined;
  #subscription: AsyncDisposable | undefined;
  /** Whose turn it is, for each service by itself: a shared count would skip instances of two that are asked in step. */
  readonly #turns = new Map<string, number>();

  constructor(store: DirectoryStore, log: Logger, now: () => number = Date.now) {
    this.#store = store;
    this.#log = log;
    this.#now = now;
  }

  async start(): Promise<void> {
    this.#subscription = await this.#store.subscribe(CHANGED, message => {
      const service = serviceOf(message);
      if (service) this.#doubt(service);
    });
    this.#heartbeat = setInterval(() => void this.beat(), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  async register(instance: Instance): Promise<void> {
    this.#own.set(instance.service_type, instance);
    await this.#write(instance, 'registered');
  }

  async setStatus(service: string, status: Instance['status']): Promise<void> {
    const instance = this.#own.get(service);
    if (instance) await this.#write(instance, 'status', status);
  }

  async remove(service: string): Promise<void> {
    const instance = this.#own.get(service);
    if (!instance) return;
    this.#own.delete(service);
    this.#doubt(service);
    await this.#store.hashDelete(keyOf(service), `${instance.ip}:${instance.port}`);
    await this.#announce(instance, 'removed');
  }

  /** Says again that this process's instances live. */
  async beat(): Promise<void> {
    for (const instance of this.#own.values())
      await this.#say(instance).catch(error => this.#log.debug({ err: error }, 'instance heartbeat failed'));
  }

  async instances(service: string): Promise<readonly Instance[]> {
    const known = this.#known.get(service);
    const now = this.#now();
    if (known && now - known.at < CACHE_MS) return known.instances;
    try {
      const rows = (await this.#store.hashValues(keyOf(service))).map(row => JSON.parse(row) as Instance);
      const instances = rows.filter(
        row => row.status === 'Active' && row.last_health_at !== null && now - Date.parse(row.last_health_at) < FRESH_MS,
      );
      this.#known.set(service, { at: now, instances });
      return instances;
    } catch (error) {
      if (known) return known.instances;
      throw error;
    }
  }

  /** The next address in turn, passing over suspects unless all are (doc3, ingress). */
  async pick(service: string): Promise<{ ip: string; port: number } | undefined> {
    const instances = await this.instances(service);
    if (instances.length === 0) return undefined;
    const now = this.#now();
    const good = instances.filter(({ ip, port }) => (this.#suspects.get(`${ip}:${port}`) ?? 0) <= now);
    const candidates = good.length > 0 ? good : instances;
    const turn = this.#turns.get(service) ?? 0;
    this.#turns.set(service, (turn + 1) % Number.MAX_SAFE_INTEGER);
    return candidates[turn % candidates.length];
  }

  /** One failed request is enough (hardening H-26). */
  suspect({ ip, port }: { ip: string; port: number }): void {
    this.#suspects.set(`${ip}:${port}`, this.#now() + SUSPECT_MS);
    for (const service of this.#known.keys()) this.#doubt(service);
  }

  /** Until when an address is passed over, in ms; `undefined` where it is not. */
  suspectUntil({ ip, port }: { ip: string; port: number }): number | undefined {
    const until = this.#suspects.get(`${ip}:${port}`) ?? 0;
    return until > this.#now() ? until : undefined;
  }

  trust({ ip, port }: { ip: string; port: number }): void {
    this.#suspects.delete(`${ip}:${port}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat);
    for (const service of [...this.#own.keys()]) await this.remove(service).catch(() => undefined);
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  async #write(instance: Instance, change: string, status?: Instance['status']): Promise<void> {
    this.#doubt(instance.service_type);
    await this.#say(instance, status);
    await this.#announce(instance, change);
  }

  /** Is asked for again at the next request. What was known stays: it is all there is when the store is away by then. */
  #doubt(service: string): void {
    const known = this.#known.get(service);
    if (known) this.#known.set(service, { ...known, at: Number.NEGATIVE_INFINITY });
  }

  /** A process says that it lives; what the supervisor has seen of it meanwhile, it leaves as it is. */
  async #say(instance: Instance, status?: Instance['status']): Promise<void> {
    const [key, field] = [keyOf(instance.service_type), `${instance.ip}:${instance.port}`];
    const text = await this.#store.hashGet(key, field);
    const kept = text === null ? undefined : (JSON.parse(text) as Instance);
    if (kept?.pid === instance.pid)
      Object.assign(instance, {
        status: kept.status,
        metrics: kept.metrics,
        restarts: kept.restarts,
        api_calls: kept.api_calls,
        failures: kept.failures,
      });
    if (status) instance.status = status;
    instance.last_health_at = new Date(this.#now()).toISOString();
    await this.#store.hashSet(key, field, JSON.stringify(instance));
  }

  #announce({ service_type, ip, port, status }: Instance, change: string): Promise<void> {
    return this.#store.publish(
      CHANGED,
      JSON.stringify({ service_type, instance: `${ip}:${port}`, change, status, at: new Date(this.#now()).toISOString() }),
    );
  }
}

/** The registry as the supervisor writes it: rows of processes that are not its own. */
export function instanceRegistry(store: DirectoryStore, now: () => number = Date.now): InstanceRegistry {
  const tell = ({ service_type, ip, port }: Pick<Instance, 'service_type' | 'ip' | 'port'>, change: string, status: Instance['status']) =>
    store.publish(CHANGED, JSON.stringify({ service_type, instance: `${ip}:${port}`, change, status, at: new Date(now()).toISOString() }));
  return {
    rows: async services => (await Promise.all(services.map(service => store.hashValues(keyOf(service))))).flat().flatMap(rowOf),
    write: async (row, telling) => {
      const [key, field] = [keyOf(row.service_type), `${row.ip}:${row.port}`];
      const [kept] = row.pid === undefined || row.status === undefined ? rowOf(await store.hashGet(key, field)) : [];
      const written = { ...kept, ...row };
      // Half a row would be an instance nobody can judge.
      if (written.pid === undefined || written.status === undefined) return;
      await store.hashSet(key, field, JSON.stringify(written));
      if (telling) await tell(row, 'status', written.status);
    },
    remove: async row => {
      await store.hashDelete(keyOf(row.service_type), `${row.ip}:${row.port}`);
      await tell(row, 'removed', 'Killed');
    },
  };
}

/** A row that cannot be read is none. */
function rowOf(text: string | null): Instance[] {
  try {
    return text === null ? [] : [JSON.parse(text) as Instance];
  } catch {
    return [];
  }
}

function serviceOf(message: string): string | undefined {
  try {
    return (JSON.parse(message) as { service_type?: string }).service_type;
  } catch {
    return undefined;
  }
}
