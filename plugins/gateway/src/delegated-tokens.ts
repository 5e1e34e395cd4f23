import type { Ctx } from './context.ts';
import { claimsOf, type Issuer, isRefusal, type TokenAnswer } from './issuer.ts';
import type { SessionRecord } from './session-store.ts';
import type { Sessions } from './sessions.ts';

interface Held {
  readonly token: string;
  readonly until: number;
}
/** A token for one service in one environment, and the workload whose certificate it must be shown with. */
export interface DelegatedToken {
  readonly token: string;
  readonly as: string | undefined;
}

export const DELEGATOR = 'delegator';
const CLIENT = 'bff-delegator';
const MARGIN_MS = 30_000;
const LIMIT = 10_000;
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** Token exchange (RFC 8693) for calls into another environment: the delegator acts, the person is the actor (GWY-059, C40). There is no other way in. */
export class DelegatedTokens {
  readonly #ctx: Ctx;
  readonly #issuer: Issuer;
  readonly #sessions: Sessions;
  /** Per session, environment and service; forgotten with the session (GWY-060). */
  readonly #held = new Map<string, Held>();
  readonly #exchanging = new Map<string, Promise<Held>>();
  #own: Held | undefined;
  #ownLoading: Promise<Held> | undefined;
  healthy = true;

  constructor(ctx: Ctx, { issuer, sessions }: { issuer: Issuer; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#issuer = issuer;
    this.#sessions = sessions;
  }

  async tokenFor(session: SessionRecord, envId: string, service: string): Promise<DelegatedToken> {
    const key = `${session.session_id_hash} ${envId} ${service}`;
    const held = this.#held.get(key);
    const { token } = held && this.#fresh(held) ? held : await this.#exchangeOnce(key, session, { envId, service });
    const confirmed = claimsOf(token)?.['cnf'] as { 'x5t#S256'?: string } | undefined;
    return { token, as: confirmed?.['x5t#S256'] ? DELEGATOR : undefined };
  }

  /** A session ended, or access changed for everybody. */
  forget(sessionHash?: string): void {
    for (const key of [...this.#held.keys()]) if (sessionHash === undefined || key.startsWith(`${sessionHash} `)) this.#held.delete(key);
  }

  #exchangeOnce(key: string, session: SessionRecord, target: { envId: string; service: string }): Promise<Held> {
    let running = this.#exchanging.get(key);
    if (!running) {
      running = this.#exchange(session, target)
        .then(held => {
          this.#held.set(key, held);
          if (this.#held.size > LIMIT) this.#held.delete(this.#held.keys().next().value as string);
          return held;
        })
        .finally(() => this.#exchanging.delete(key));
      this.#exchanging.set(key, running);
    }
    return running;
  }

  async #exchange(session: SessionRecord, { envId, service }: { envId: string; service: string }): Promise<Held> {
    const actor = await this.#sessions.accessToken(session);
    for (const again of [false, true]) {
      const own = await this.#ownToken();
      const answer = await this.#issuer.token(
        session.issuer_host,
        {
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          client_id: CLIENT,
          subject_token: own.token,
          subject_token_type: ACCESS_TOKEN,
          actor_token: actor,
          actor_token_type: ACCESS_TOKEN,
          audience: service,
          resource: `urn:platform:env:${envId}`,
        },
        DELEGATOR,
      );
      if (!isRefusal(answer)) return this.#hold(answer);
      // The delegator's own token may be of keys that are gone; a fresh one settles it.
      if (!again && ['invalid_grant', 'invalid_request', 'invalid_client'].includes(answer.refused) && this.#own === own) {
        this.#own = undefined;
        continue;
      }
      if (answer.refused === 'invalid_client') throw this.#unavailable(answer.description ?? answer.refused);
      throw this.#ctx.problem('target_denied', { detail: 'You have no access to this environment.', cause: new Error(`exchange refused: ${answer.refused} ${answer.description ?? ''}`) });
    }
    throw this.#unavailable('exchange');
  }

  async #ownToken(): Promise<Held> {
    if (this.#own && this.#fresh(this.#own)) return this.#own;
    this.#ownLoading ??= this.#loadOwn().finally(() => {
      this.#ownLoading = undefined;
    });
    return this.#ownLoading;
  }

  async #loadOwn(): Promise<Held> {
    try {
      const answer = await this.#issuer.token(`auth.ops.sys.${this.#ctx.platform.domain}`, { grant_type: 'client_credentials', client_id: CLIENT }, DELEGATOR);
      if (isRefusal(answer)) throw this.#unavailable(`${answer.refused} ${answer.description ?? ''}`);
      this.#own = this.#hold(answer);
      this.healthy = true;
      return this.#own;
    } catch (error) {
      this.healthy = false;
      throw error;
    }
  }

  #hold({ access_token: token, expires_in: seconds }: TokenAnswer): Held {
    return { token, until: this.#ctx.clock.now().getTime() + seconds * 1_000 };
  }

  #fresh({ until }: Held): boolean {
    return until - this.#ctx.clock.now().getTime() > MARGIN_MS;
  }

  #unavailable(why: string) {
    return this.#ctx.problem('delegator_unavailable', { cause: new Error(`the delegator got no token: ${why}`), headers: { 'retry-after': '3' } });
  }
}
