import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import type { Realm } from './realms.ts';
import type { SigningKeys } from './signing-keys.ts';
import type { TokenVerifier } from './token-verifier.ts';

const LIFETIME_S = 600;
const ENV_RESOURCE = /^urn:platform:env:([0-9a-f-]{36})$/;
export const EXCHANGE_PARAMETERS = ['subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'requested_token_type', 'audience', 'resource', 'scope'] as const;

/**
 * RFC 8693: a workload takes a person's place in one environment and one service. The subject is the workload's own certificate-bound
 * token, the actor the person's; the result names the person in `act` and carries at most what the person holds there (G-AUTH-02).
 */
export class TokenExchange {
  readonly #ctx: Ctx;
  readonly #parts: { access: EffectiveAccess; keys: SigningKeys; tokens: TokenVerifier };

  constructor(ctx: Ctx, parts: { access: EffectiveAccess; keys: SigningKeys; tokens: TokenVerifier }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async handle(context: KoaContextWithOIDC, issuer: string, realm: Realm, thumbprint: string | undefined): Promise<void> {
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
    if (subject?.token_type !== 'm2m' || subject.client_id !== client?.clientId) throw new errors.InvalidGrant('subject_token is not the workload\'s own token');
    if (!thumbprint || subject.cnf?.['x5t#S256'] !== thumbprint) throw new errors.InvalidGrant('subject_token is bound to another certificate');
    const actor = await this.#parts.tokens.read(actorToken);
    if (actor?.token_type !== 'access') throw new errors.InvalidGrant('actor_token is not a person\'s access token');

    const held = await this.#parts.access.scopesOf(actor.sub, envId);
    if (held.size === 0) throw new errors.InvalidTarget('the person has no access to this environment');
    const asked = read('scope')?.split(' ').map(scope => scope.replace(/^platform:/, ''));
    const scope = this.#actionsOf(service, held).filter(action => !asked || asked.includes(action));
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
      auth_env: actor.auth_env ?? realm.env_id,
      act: { sub: actor.sub, client_id: actor.client_id },
      ...(actor.sid ? { sid: actor.sid } : {}),
      ...(subject.vertical ? { vertical: subject.vertical } : {}),
    };
    context.body = { access_token: this.#parts.keys.accessToken(claims), issued_token_type: 'urn:ietf:params:oauth:token-type:access_token', token_type: 'Bearer', expires_in: claims.exp - now, scope: claims.scope };
  }

  /** Actions of one service among those held. Of a service that runs elsewhere only its prefix is known, and that is what its scopes start with. */
  #actionsOf(service: string, held: ReadonlySet<string>): string[] {
    const known = this.#ctx.catalog.actions().filter(action => action.service === service).map(({ scope }) => scope.replace(/^platform:/, ''));
    if (known.length > 0) return known.filter(action => held.has(action));
    return [...held].filter(scope => scope.split(':')[1] === service && scope.split(':').length > 2);
  }
}

