import { SYSTEM } from '@platform/sdk';
import { TimedCache } from '../../base/cache.ts';

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
  readonly #known: TimedCache<string | undefined>;

  constructor(sources: IssuerSources) {
    this.#sources = sources;
    // An outage of the identity service must not invalidate what was known before it.
    const stale = { ms: Number.POSITIVE_INFINITY };
    this.#known = new TimedCache({ max: MOST, ttl: envId => (envId === undefined ? UNKNOWN_MS : KNOWN_MS), stale }, sources.now);
  }

  /** The environment whose issuer this is. Throws when it is not known yet and the identity service is away. */
  readonly environmentOf = async (issuer: string): Promise<string | undefined> => {
    const { system, originOf, environmentOn } = this.#sources;
    if (issuer === system) return SYSTEM.envId;
    const host = URL.parse(issuer)?.hostname;
    if (host === undefined || originOf(host) !== issuer) return undefined;
    return this.#known.get(issuer, () => environmentOn(host));
  };
}
