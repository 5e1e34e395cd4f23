import { BoundedMap } from '@platform/sdk';
import type { Resolved } from '../../contract/schema/resolver.ts';
import type { Ctx } from '../context.ts';
import { DOMAINS_VERSION } from '../domain-changes.ts';
import type { HostLookup } from './host-lookup.ts';

interface Entry {
  readonly version: string | null;
  readonly until: number;
  readonly found: Resolved | undefined;
}

const FRESH_MS = 30_000;
/** Apart, so that a flood of names nobody has cannot push out those in use. */
const MAX_FOUND = 50_000;
const MAX_ABSENT = 10_000;

/**
 * Answers of the lookup, kept while the version of all domains stands still. A mutation sets another version before it answers, and every
 * question reads it, so that the next one is right on every process (H-31). A version that could not be set is made up for within 30 s.
 */
export class HostIndex {
  readonly #ctx: Pick<Ctx, 'kv' | 'clock'>;
  readonly #lookup: Pick<HostLookup, 'find'>;
  readonly #found = new BoundedMap<string, Entry>(MAX_FOUND);
  readonly #absent = new BoundedMap<string, Entry>(MAX_ABSENT);
  readonly #looking = new Map<string, Promise<Entry>>();

  constructor(ctx: Pick<Ctx, 'kv' | 'clock'>, lookup: Pick<HostLookup, 'find'>) {
    this.#ctx = ctx;
    this.#lookup = lookup;
  }

  async find(hostname: string): Promise<Resolved | undefined> {
    let version: string | null;
    try {
      version = (await this.#ctx.kv.current([DOMAINS_VERSION]))[0] ?? null;
    } catch {
      // Nobody can say what changed: the database can.
      return this.#lookup.find(hostname);
    }
    const known = this.#known(this.#found, hostname, version) ?? this.#known(this.#absent, hostname, version);
    return (known ?? (await this.#look(hostname, version))).found;
  }

  #known(entries: Map<string, Entry>, hostname: string, version: string | null): Entry | undefined {
    const entry = entries.get(hostname);
    if (!entry) return undefined;
    entries.delete(hostname);
    if (entry.version !== version || entry.until <= this.#ctx.clock.now().getTime()) return undefined;
    // Last used stands last: the first is the one to go.
    entries.set(hostname, entry);
    return entry;
  }

  /** One lookup for all who ask for the same name under the same version. */
  #look(hostname: string, version: string | null): Promise<Entry> {
    const key = `${version} ${hostname}`;
    let looking = this.#looking.get(key);
    if (!looking) {
      const until = this.#ctx.clock.now().getTime() + FRESH_MS;
      looking = this.#lookup.find(hostname).then(found => this.#keep(hostname, { version, until, found }));
      this.#looking.set(key, looking);
      void looking.catch(() => undefined).finally(() => this.#looking.delete(key));
    }
    return looking;
  }

  #keep(hostname: string, entry: Entry): Entry {
    (entry.found ? this.#found : this.#absent).set(hostname, entry);
    return entry;
  }
}
