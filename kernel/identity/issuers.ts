import { SYSTEM } from '@platform/sdk';
import { LRUCache } from 'lru-cache';

const KNOWN_MS = 5 * 60_000;
const UNKNOWN_MS = 10_000;
const MOST = 10_000;

export interface IssuerSources {
  readonly now: () => number;
  /** The sign-in origin of the platform's own environment, which is known before anybody is asked. */
  readonly system: string;
  readonly originOf: (host: string) => string;
  /** The environment that signs in on a host, from the identity service; `undefined` where none does. */
  readonly environmentOn: (host: string) => Promise<string | undefined>;
}

/** Whose sign-in host an issuer is: exactly the origin of a known environment, and nothing that only looks like one (RFC 9068 4). */
export class Issuers {
  readonly #sources: IssuerSources;
  readonly #known: LRUCache<string, { readonly envId: string | undefined; readonly until: number }>;

  constructor(sources: IssuerSources) {
    this.#sources = sources;
    this.#known = new LRUCache({ max: MOST });
  }

  /** The environment whose issuer this is. Throws when it is not known yet and the identity service is away. */
  readonly environmentOf = async (issuer: string): Promise<string | undefined> => {
    const { now, system, originOf, environmentOn } = this.#sources;
    if (issuer === system) return SYSTEM.envId;
    const host = URL.parse(issuer)?.hostname;
    if (host === undefined || originOf(host) !== issuer) return undefined;
    const known = this.#known.get(issuer);
    if (known && now() < known.until) return known.envId;
    try {
      const envId = await environmentOn(host);
      this.#known.set(issuer, { envId, until: now() + (envId === undefined ? UNKNOWN_MS : KNOWN_MS) });
      return envId;
    } catch (error) {
      // An outage of the identity service must not invalidate what was known before it.
      if (known?.envId !== undefined) return known.envId;
      throw error;
    }
  };
}
