import type { NameServers } from '@platform/sdk';
import { challengeName } from './app-row.ts';

const MAX_SHOWN = 10;

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
  readonly #servers: NameServers;

  constructor(servers: NameServers) {
    this.#servers = servers;
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
    const look = this.#servers.look();
    const none: string[] = [];
    const [texts, names, addresses, expected] = await Promise.all([
      challenge.type === 'TXT' ? look.txt(challenge.name) : look.cname(challenge.name),
      target === undefined ? none : look.cname(fqdn),
      target === undefined ? none : look.addresses(fqdn),
      target === undefined ? none : look.addresses(target),
    ]);
    const cname = names[0] ?? null;
    const shown = addresses.slice(0, MAX_SHOWN);
    const found = { txt: texts.map(text => text.slice(0, 255)).slice(0, MAX_SHOWN), cname, addresses: shown };
    const challenged = texts.includes(value);
    const led =
      target === undefined ||
      cname === target ||
      (cname === null && shown.length > 0 && shown.every(address => expected.includes(address)));
    if (challenged && led) return { outcome: 'proven', reason: null, found };
    if (look.unanswered.length > 0) {
      const some = look.unanswered.slice(0, 3).map(({ question, code }) => `${question}: ${code}`);
      return { outcome: 'unknown', reason: `The name servers did not answer (${some.join(', ')}).`, found };
    }
    return {
      outcome: 'refuted',
      reason: challenged ? `${fqdn} does not lead to ${target}.` : `${challenge.name} does not hold the expected value.`,
      found,
    };
  }
}
