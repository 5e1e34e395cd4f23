import { createHash, randomBytes } from 'node:crypto';
import type { NameServers } from '@platform/sdk';

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
  readonly #servers: NameServers;

  constructor(servers: NameServers) {
    this.#servers = servers;
  }

  async look(challenge: Challenge, method: Method): Promise<Looked> {
    const look = this.#servers.look();
    const [name, wanted] =
      method === 'txt'
        ? [txtName(challenge.fqdn), challenge.txt_record]
        : [`${challenge.cname_token}.${challenge.fqdn}`, challenge.cname_target];
    const found = await look[method](name);
    if (found.includes(wanted)) return { proven: true, reason: null };
    const [unanswered] = look.unanswered;
    if (unanswered) return { proven: false, reason: `The name servers did not answer about ${name} (${unanswered.code}).` };
    return {
      proven: false,
      reason:
        found.length === 0
          ? `${name} has no ${method.toUpperCase()} record.`
          : `${name} does not ${method === 'txt' ? 'hold' : 'lead to'} the expected value.`,
    };
  }
}
