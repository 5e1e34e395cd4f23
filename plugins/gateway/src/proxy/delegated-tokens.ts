import type { Cache } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { DELEGATOR, type Delegator, type Held } from '../delegation/delegator.ts';
import { claimsOf, type Issuer, isRefusal } from '../issuer.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { Sessions } from '../session/sessions.ts';

/** A token for one service in one environment, and the workload whose certificate it must be shown with. */
export interface DelegatedToken {
  readonly token: string;
  readonly as: string | undefined;
  /** Makes the proof that goes with each use of a token that is bound to a key (RFC 9449 7.1). */
  readonly prove?: (method: string, url: string) => Promise<string>;
}

const LIMIT = 10_000;
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/**
 * Token exchange (RFC 8693) for calls into another environment: the delegator acts, the person is the actor (GWY-059, C40). There is no
 * other way in.
 */
export class DelegatedTokens {
  readonly #ctx: Ctx;
  readonly #issuer: Issuer;
  readonly #sessions: Sessions;
  readonly #delegator: Delegator;
  /** Per session, environment and service; forgotten with the session (GWY-060). */
  readonly #held: Cache<Held>;

  constructor(ctx: Ctx, { delegator, issuer, sessions }: { delegator: Delegator; issuer: Issuer; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#delegator = delegator;
    this.#issuer = issuer;
    this.#sessions = sessions;
    this.#held = ctx.cache({ max: LIMIT, ttl: held => delegator.freshFor(held) });
  }

  async tokenFor(session: SessionRecord, envId: string, service: string): Promise<DelegatedToken> {
    const key = `${session.session_id_hash} ${envId} ${service}`;
    const { token } = await this.#held.get(key, () => this.#exchange(session, { envId, service }));
    const confirmed = claimsOf(token)?.['cnf'] as { 'x5t#S256'?: string } | undefined;
    return { token, as: confirmed?.['x5t#S256'] ? DELEGATOR : undefined };
  }

  /** A session ended, or access changed for everybody. */
  forget(sessionHash?: string): void {
    this.#held.forget(sessionHash === undefined ? undefined : key => key.startsWith(`${sessionHash} `));
  }

  async #exchange(session: SessionRecord, { envId, service }: { envId: string; service: string }): Promise<Held> {
    const actor = await this.#sessions.accessToken(session);
    for (const again of [false, true]) {
      const own = await this.#delegator.token();
      const answer = await this.#issuer.token(
        this.#delegator.host,
        {
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          client_id: await this.#delegator.clientId(),
          subject_token: own.token,
          subject_token_type: ACCESS_TOKEN,
          actor_token: actor,
          actor_token_type: ACCESS_TOKEN,
          audience: service,
          resource: `urn:platform:env:${envId}`,
        },
        { as: DELEGATOR },
      );
      if (!isRefusal(answer)) return this.#delegator.hold(answer);
      // The delegator's own token may be of keys that are gone; a fresh one settles it.
      if (!again && ['invalid_grant', 'invalid_request', 'invalid_client'].includes(answer.refused) && this.#delegator.discard(own))
        continue;
      if (answer.refused === 'invalid_client') throw this.#delegator.unavailable(answer.description ?? answer.refused);
      throw this.#ctx.problem('target_denied', {
        detail: 'You have no access to this environment.',
        cause: new Error(`exchange refused: ${answer.refused} ${answer.description ?? ''}`),
      });
    }
    throw this.#delegator.unavailable('exchange');
  }
}
