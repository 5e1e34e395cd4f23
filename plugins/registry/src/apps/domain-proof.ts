import { Resolver } from 'node:dns/promises';
import { challengeName } from './app-row.ts';

const QUERY_MS = 2_000;
const TRIES = 2;
/** However many servers there are to try. */
const PROOF_MS = 10_000;
const MAX_SHOWN = 10;
/** The name is not there, or has no such record: an answer, and not a failure to get one. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);

export interface Found {
  readonly txt: readonly string[];
  readonly cname: string | null;
  readonly addresses: readonly string[];
}
/** `unknown` when the name servers did not answer: that says nothing about who owns the domain. */
export interface Proof {
  readonly outcome: 'proven' | 'refuted' | 'unknown';
  readonly reason: string | null;
  readonly found: Found;
}

/**
 * Asks DNS whether a domain is its claimant's and leads here: the challenge in TXT, and a CNAME (or the same addresses, where ALIAS stands
 * for it).
 */
export class DomainProof {
  readonly #servers: readonly string[];

  /** The system's name servers when `servers` is empty. */
  constructor(servers: string) {
    this.#servers = servers.split(',').flatMap(server => server.trim() || []);
  }

  async check({
    fqdn,
    value,
    target,
    challenge = { type: 'TXT', name: challengeName(fqdn) },
  }: {
    fqdn: string;
    value: string;
    /** Where it must lead; nowhere in particular when absent. */
    target?: string;
    challenge?: { readonly type: 'TXT' | 'CNAME'; readonly name: string };
  }): Promise<Proof> {
    // A resolver of its own: what an earlier question was told must not answer this one.
    const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    AbortSignal.timeout(PROOF_MS).addEventListener('abort', () => resolver.cancel(), { once: true });
    const failures: string[] = [];
    const ask = async <T>(what: string, question: () => Promise<T[]>): Promise<T[]> => {
      try {
        return await question();
      } catch (error) {
        const { code = 'EFAILED' } = error as { code?: string };
        if (!ABSENT.has(code)) failures.push(`${what}: ${code}`);
        return [];
      }
    };
    const addressesOf = async (host: string) =>
      (await Promise.all([ask(`A ${host}`, () => resolver.resolve4(host)), ask(`AAAA ${host}`, () => resolver.resolve6(host))]))
        .flat()
        .slice(0, MAX_SHOWN);
    const none: string[] = [];
    const [texts, names, addresses, expected] = await Promise.all([
      challenge.type === 'TXT'
        ? ask(`TXT ${challenge.name}`, () => resolver.resolveTxt(challenge.name))
        : ask(`CNAME ${challenge.name}`, async () =>
            (await resolver.resolveCname(challenge.name)).map(alias => [alias.toLowerCase().replace(/\.$/, '')]),
          ),
      target === undefined ? none : ask(`CNAME ${fqdn}`, () => resolver.resolveCname(fqdn)),
      target === undefined ? none : addressesOf(fqdn),
      target === undefined ? none : addressesOf(target),
    ]);
    const cname = names[0]?.toLowerCase().replace(/\.$/, '') ?? null;
    const found = { txt: texts.map(parts => parts.join('').slice(0, 255)).slice(0, MAX_SHOWN), cname, addresses };
    const challenged = texts.some(parts => parts.join('') === value);
    const led =
      target === undefined ||
      cname === target ||
      (cname === null && addresses.length > 0 && addresses.every(address => expected.includes(address)));
    if (challenged && led) return { outcome: 'proven', reason: null, found };
    if (failures.length > 0)
      return { outcome: 'unknown', reason: `The name servers did not answer (${failures.slice(0, 3).join(', ')}).`, found };
    return {
      outcome: 'refuted',
      reason: challenged ? `${fqdn} does not lead to ${target}.` : `${challenge.name} does not hold the expected value.`,
      found,
    };
  }
}
