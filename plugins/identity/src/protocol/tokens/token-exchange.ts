import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from '../../context.ts';
import type { EffectiveAccess } from '../../access/effective-access.ts';
import type { Realms } from '../../realms.ts';
import { canonicalScope, scopeList } from '../../access/scope-name.ts';
import type { SigningKeys } from '../../keys/signing-keys.ts';
import type { TokenVerifier } from './token-verifier.ts';

const LIFETIME_S = 600;
const ENV_RESOURCE = /^urn:platform:env:([0-9a-f-]{36})$/;
export const EXCHANGE_PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'audience',
  'resource',
  'scope',
] as const;

interface ExchangeParts {
  readonly access: EffectiveAccess;
  readonly keys: SigningKeys;
  readonly realms: Realms;
  readonly tokens: TokenVerifier;
}

/**
 * RFC 8693: a workload takes a person's place in one environment and one service. The subject is the workload's own certificate-bound
 * token, the actor the person's; the result names the person in `act` and carries at most what the person holds there (G-AUTH-02).
 */
export class TokenExchange {
  readonly #ctx: Ctx;
  readonly #parts: ExchangeParts;

  constructor(ctx: Ctx, parts: ExchangeParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async handle(context: KoaContextWithOIDC, issuer: string, thumbprint: string | undefined): Promise<void> {
    const { client, params } = context.oidc;
    const read = (name: string) => (typeof params?.[name] === 'string' ? (params[name] as string) : undefined);
    const invalid = (description: string) => new errors.InvalidRequest(description);
    const subjectToken = read('subject_token');
    const actorToken = read('actor_token');
    const service = read('audience');
    const envId = ENV_RESOURCE.exec(read('resource') ?? '')?.[1];
    if (!subjectToken || !actorToken) throw invalid('subject_token and actor_token are required');
    if (!service || !envId) throw invalid('audience names the service, resource is urn:platform:env:{env_id}');

    const subject = await this.#parts.tokens.read(subjectToken);
    if (subject?.token_type !== 'm2m' || subject.client_id !== client?.clientId)
      throw new errors.InvalidGrant("subject_token is not the workload's own token");
    if (!thumbprint || subject.cnf?.['x5t#S256'] !== thumbprint)
      throw new errors.InvalidGrant('subject_token is bound to another certificate');
    const actor = await this.#parts.tokens.read(actorToken);
    // A token that is held to its scope at one service must not become a wider one at another.
    if (actor?.token_type !== 'access' || actor.limited) throw new errors.InvalidGrant("actor_token is not a person's access token");

    const held = (await this.#parts.realms.exists(envId)) ? await this.#parts.access.scopesOf(actor.sub, envId) : new Set<string>();
    if (held.size === 0) throw refusedTarget('the person has no access to this environment');
    const actions = await this.#actionsOf(service);
    if (actions.length === 0) throw refusedTarget('no such service');
    const asked = scopeList(read('scope'));
    const scope = actions.filter(action => held.has(action) && (asked.length === 0 || asked.includes(action)));
    const now = Math.floor(this.#ctx.clock.now().getTime() / 1_000);
    const claims = {
      iss: issuer,
      sub: subject.sub,
      aud: [service],
      exp: Math.min(now + LIFETIME_S, actor.exp),
      iat: now,
      nbf: now,
      jti: this.#ctx.platform.newId(),
      client_id: subject.client_id,
      scope: scope.join(' '),
      token_type: 'delegated',
      env_id: envId,
      act: { sub: actor.sub, client_id: actor.client_id },
      ...(actor.sid ? { sid: actor.sid } : {}),
    };
    context.body = {
      access_token: this.#parts.keys.token(claims, this.#isPlatform(service) ? this.#ctx.config.internalTokenAlg : 'EdDSA'),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: claims.exp - now,
      scope: claims.scope,
    };
  }

  /** What leaves for somebody else's service is signed so that any library reads it. */
  #isPlatform(service: string): boolean {
    return this.#ctx.catalog.manifests().some(({ id, vertical }) => id === service && vertical === 'platform');
  }

  /** Everything one service lets people do: from its contract, or from what its vertical registered. */
  async #actionsOf(service: string): Promise<string[]> {
    const known = this.#ctx.catalog
      .actions()
      .filter(action => action.service === service && !action.machineOnly)
      .map(({ scope }) => canonicalScope(scope));
    const registered = await this.#ctx.db.sql<
      { scope: string }[]
    >`select scope from vertical_grants where split_part(scope, ':', 2) = ${service}`;
    return [...new Set([...known, ...registered.map(({ scope }) => scope)])];
  }
}

/** `invalid_target` with the status of a refusal: the gateway answers 403 for it, and 502 only when nobody answered (G-AUTH-02). */
function refusedTarget(description: string): Error {
  return Object.assign(new errors.InvalidTarget(description), { status: 403, statusCode: 403 });
}
