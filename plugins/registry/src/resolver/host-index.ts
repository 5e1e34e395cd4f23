import type { Cache } from '@platform/sdk';
import type { Resolved } from '../../contract/schema/resolver.ts';
import type { Ctx } from '../context.ts';
import { DOMAINS_VERSION } from '../domain-changes.ts';
import type { HostLookup } from './host-lookup.ts';

const FRESH_MS = 30_000;
/** Apart, so that a flood of names nobody has cannot push out those in use. */
const MAX_FOUND = 50_000;
const MAX_ABSENT = 10_000;

/**
 * Answers of the lookup, kept while the version of all domains stands still. A mutation sets another version before it answers, and every
 * question reads it, so that the next one is right on every process (H-31). A version that could not be set is made up for within 30 s.
 */
export class HostIndex {
  readonly #ctx: Pick<Ctx, 'kv'>;
  readonly #lookup: Pick<HostLookup, 'find'>;
  readonly #found: Cache<Resolved | undefined>;
  readonly #absent: Cache<Resolved | undefined>;

  constructor(ctx: Pick<Ctx, 'kv' | 'cache'>, lookup: Pick<HostLookup, 'find'>) {
    this.#ctx = ctx;
    this.#lookup = lookup;
    this.#found = ctx.cache({ max: MAX_FOUND, ttl: found => (found ? FRESH_MS : 0) });
    this.#absent = ctx.cache({ max: MAX_ABSENT, ttl: found => (found ? 0 : FRESH_MS) });
  }

  async find(hostname: string): Promise<Resolved | undefined> {
    let version: string;
    try {
      version = (await this.#ctx.kv.current([DOMAINS_VERSION]))[0] ?? '';
    } catch {
      // Nobody can say what changed: the database can.
      return this.#lookup.find(hostname);
    }
    const look = () => this.#lookup.find(hostname);
    return this.#found.get(hostname, () => this.#absent.get(hostname, look, version), version);
  }
}
