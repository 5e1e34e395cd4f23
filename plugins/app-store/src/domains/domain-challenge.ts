import { createHash, randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';

const QUERY_MS = 2_000;
const TRIES = 2;
/** However many servers there are to try. */
const PROOF_MS = 8_000;
/** The name is not there, or has no such record: an answer, and not a failure to get one. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);

export type Method = 'txt' | 'cname';
/** What the owner of a domain is given to publish, one way or the other. */
export interface Challenge {
  readonly fqdn: string;
  readonly txt_record: string;
  readonly cname_token: string;
  readonly cname_target: string;
}
/** `reason` says what is missing; none where the challenge was met. */
export interface Looked {
  readonly proven: boolean;
  readonly reason: string | null;
}

export const txtName = (fqdn: string): string => `_platform-challenge.${fqdn}`;

/** Values that nobody can make up (G-APP-05): SHA-256 over the instance, the domain and a secret that is forgotten at once. */
export function newChallenge(instanceId: string, fqdn: string, platformDomain: string): Challenge {
  const secret = randomBytes(32).toString('base64url');
  const digest = (purpose: string) => createHash('sha256').update(`${instanceId}:${fqdn}:${secret}${purpose}`).digest('hex');
  return {
    fqdn,
    txt_record: `platform-verify=${digest('')}`,
    cname_token: `platform-${digest(':token').slice(0, 24)}`,
    cname_target: `${digest(':target').slice(0, 32)}.domains.${platformDomain}`,
  };
}

/** Asks DNS whether the owner of a domain has published a challenge. */
export class DomainChallenges {
  readonly #servers: readonly string[];

  /** The system's name servers when `servers` is empty. */
  constructor(servers: string) {
    this.#servers = servers.split(',').flatMap(server => server.trim() || []);
  }

  async look(challenge: Challenge, method: Method): Promise<Looked> {
    // A resolver of its own: what an earlier question was told must not answer this one.
    const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    AbortSignal.timeout(PROOF_MS).addEventListener('abort', () => resolver.cancel(), { once: true });
    const [name, wanted] =
      method === 'txt'
        ? [txtName(challenge.fqdn), challenge.txt_record]
        : [`${challenge.cname_token}.${challenge.fqdn}`, challenge.cname_target];
    try {
      const found =
        method === 'txt'
          ? (await resolver.resolveTxt(name)).map(parts => parts.join(''))
          : (await resolver.resolveCname(name)).map(alias => alias.toLowerCase().replace(/\.$/, ''));
      return found.includes(wanted)
        ? { proven: true, reason: null }
        : { proven: false, reason: `${name} does not ${method === 'txt' ? 'hold' : 'lead to'} the expected value.` };
    } catch (error) {
      const { code = 'EFAILED' } = error as { code?: string };
      return {
        proven: false,
        reason: ABSENT.has(code)
          ? `${name} has no ${method.toUpperCase()} record.`
          : `The name servers did not answer about ${name} (${code}).`,
      };
    }
  }
}
