import { type Cache, isProblem } from '@platform/sdk';
import type { Ctx } from '../../context.ts';
import type { Realm } from '../../realms.ts';

interface Rule {
  readonly allowed: boolean;
  /** The group that a new account joins. */
  readonly group: string | undefined;
}
const CLOSED: Rule = { allowed: false, group: undefined };
const KNOWN_MS = 5_000;
const KNOWN = 1_000;
const ANSWER_MS = 1_000;

/**
 * Where people may open accounts themselves: where the application they come from says so (`allow_signup`, G-SYS-08). Without an
 * application, nowhere.
 */
export class SignUpPolicy {
  readonly #ctx: Ctx;
  readonly #rules: Cache<Rule>;
  #awayUntil = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#rules = ctx.cache({ max: KNOWN, ttl: KNOWN_MS });
  }

  /** Throws what the registry answered when it could not be asked. */
  async of(realm: Realm, clientId: string | undefined): Promise<Rule> {
    if (!clientId || clientId.length > 200) return CLOSED;
    return this.#rules.get(`${realm.env_id} ${clientId}`, () => this.#ask(realm, clientId));
  }

  /** For pages, which wait for it once in a while at most, and never fail by it: the link is left out. */
  async shown(realm: Realm, clientId: string | undefined): Promise<boolean> {
    const now = this.#ctx.clock.now().getTime();
    if (now < this.#awayUntil) return false;
    try {
      return (await this.of(realm, clientId)).allowed;
    } catch (error) {
      this.#awayUntil = now + KNOWN_MS;
      this.#ctx.log.debug({ err: error }, 'whether people may sign up is not to be had');
      return false;
    }
  }

  async #ask(realm: Realm, clientId: string): Promise<Rule> {
    try {
      const app = await this.#ctx.services.registry.appInstanceAuthMode({
        query: { client_id: clientId },
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      // An account is opened where the application looks for it, and nowhere else.
      if (!app.allow_signup || app.auth_env !== realm.env_id) return CLOSED;
      return { allowed: true, group: app.auth_mode === 'self_service' ? (app.auth_group ?? undefined) : undefined };
    } catch (error) {
      if (isProblem(error) && error.status === 404) return CLOSED;
      throw error;
    }
  }
}
