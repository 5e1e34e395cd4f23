import { isProblem, type NodeExchange, type TokenClaims } from '@platform/sdk';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from '../../context.ts';
import { addressClaims, type People } from '../../people/people.ts';
import type { Realm } from '../../realms.ts';
import type { Sessions } from '../../sign-in/sessions.ts';
import type { TokenVerifier } from './token-verifier.ts';
import { answerJson } from '../json-answer.ts';

/**
 * The library refuses JWTs at introspection and revocation, after it has authenticated the client. Introspection is answered from the token
 * itself, to workloads and to the application it was issued to. A revoked token is marked until it would have expired; revocation says 200
 * to everything, as RFC 7009 has it for what is unknown or somebody else's.
 */
export async function answerForJwt(
  context: KoaContextWithOIDC,
  { tokens, sessions, envId }: { tokens: TokenVerifier; sessions: Sessions; envId: string },
): Promise<void> {
  const { oidc } = context;
  if ((context.body as { error?: string } | undefined)?.error !== 'unsupported_token_type' || !oidc?.client) return;
  const token = oidc.params?.['token'];
  const claims = typeof token === 'string' ? await tokens.read(token) : undefined;
  const own = claims?.client_id === oidc.client.clientId;
  context.status = 200;
  if (oidc.route === 'revocation') {
    if (claims && own) await sessions.revokeToken(envId, claims);
    context.body = '';
    return;
  }
  // Applications are no place to find out about other people's tokens (RFC 7662 4).
  const workload = oidc.client.clientAuthMethod === 'tls_client_auth';
  context.body = claims && (own || workload) ? { active: true, ...claims } : { active: false };
}

const UNKNOWN = 'the access token is missing, expired, revoked or of another issuer';

/** Claims about the person a token was issued to at this very issuer (OpenID Connect Core 5.3). */
export async function userinfo(
  ctx: Ctx,
  { people, tokens, issuer }: { people: People; tokens: TokenVerifier; issuer: string },
  realm: Realm,
  exchange: NodeExchange,
): Promise<void> {
  const { req, res } = exchange;
  const [, scheme, token] = /^(bearer|dpop) +([A-Za-z0-9._~+/=-]{1,12288})$/i.exec(req.headers.authorization ?? '') ?? [];
  const claims = token === undefined ? undefined : await tokens.read(token);
  const challenge =
    claims && token && scheme ? await unproven(ctx, { claims, token, scheme: scheme.toLowerCase(), issuer }, exchange) : undefined;
  const good = claims?.token_type === 'access' && challenge === undefined && claims.auth_env === realm.env_id;
  const person = good ? await people.byId(claims.sub) : undefined;
  if (person?.status === 'active')
    return answerJson(res, 200, { sub: person.user_id, ...addressClaims(person), name: person.display_name ?? person.email });
  ctx.log.debug({}, 'userinfo refused');
  const asked = challenge ?? `Bearer realm="platform"${token === undefined ? '' : ', error="invalid_token"'}`;
  answerJson(
    res,
    401,
    { error: 'invalid_token', error_description: challenge === undefined ? UNKNOWN : 'the token is bound, and was not shown as such' },
    { 'www-authenticate': asked },
  );
}

interface Presented {
  readonly claims: TokenClaims;
  readonly token: string;
  readonly scheme: string;
  readonly issuer: string;
}

/**
 * The challenge for a token that is bound and was shown without what it is bound to, or shown as bound when it is not (RFC 9449 7.1, 7.2;
 * RFC 8705 3).
 */
async function unproven(ctx: Ctx, { claims, token, scheme, issuer }: Presented, { req, peer }: NodeExchange): Promise<string | undefined> {
  const { jkt, 'x5t#S256': thumbprint } = claims.cnf ?? {};
  if (thumbprint !== undefined && thumbprint !== peer?.thumbprint) return 'Bearer realm="platform", error="invalid_token"';
  if (jkt === undefined || scheme !== 'dpop')
    return (jkt === undefined) === (scheme === 'bearer') ? undefined : 'DPoP realm="platform", error="invalid_token"';
  const proof = req.headers['dpop'];
  try {
    await ctx.tokens.possession({
      proof: Array.isArray(proof) ? proof.join(', ') : proof,
      method: req.method ?? 'GET',
      urls: [`${issuer}/oauth/userinfo`],
      token,
      jkt,
    });
    return undefined;
  } catch (error) {
    if (isProblem(error) && error.status === 401) return error.headers['www-authenticate'];
    throw error;
  }
}
