import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from './context.ts';
import { addressClaims, type People } from './people.ts';
import type { Realm } from './realms.ts';
import type { Sessions } from './sessions.ts';
import type { TokenVerifier } from './token-verifier.ts';

/**
 * The library refuses JWTs at introspection and revocation, after it has authenticated the client. Introspection is answered from the token
 * itself, to workloads and to the application it was issued to. A revoked token is marked until it would have expired; revocation says 200
 * to everything, as RFC 7009 has it for what is unknown or somebody else's.
 */
export async function answerForJwt(context: KoaContextWithOIDC, { tokens, sessions, envId }: { tokens: TokenVerifier; sessions: Sessions; envId: string }): Promise<void> {
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

/** Claims about the person a token was issued to at this very issuer (OpenID Connect Core 5.3). */
export async function userinfo(ctx: Ctx, { people, tokens }: { people: People; tokens: TokenVerifier }, realm: Realm, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'GET' && req.method !== 'POST') return void res.writeHead(405, { allow: 'GET, POST' }).end();
  const token = /^Bearer ([A-Za-z0-9._~+/=-]{1,12288})$/i.exec(req.headers.authorization ?? '')?.[1];
  const claims = token ? await tokens.read(token) : undefined;
  // A token that is bound to a key is no bearer token (RFC 9449 7).
  const person = claims?.token_type === 'access' && !claims.cnf?.jkt && claims.auth_env === realm.env_id ? await people.byId(claims.sub) : undefined;
  if (person?.status !== 'active') {
    ctx.log.debug({}, 'userinfo refused');
    return answer(
      res,
      401,
      { error: 'invalid_token', error_description: 'the access token is missing, expired, revoked or of another issuer' },
      { 'www-authenticate': `Bearer realm="platform"${token ? ', error="invalid_token"' : ''}` },
    );
  }
  answer(res, 200, { sub: person.user_id, ...addressClaims(person), name: person.display_name ?? person.email });
}

function answer(res: ServerResponse, status: number, value: object, headers: Record<string, string> = {}): void {
  const body = JSON.stringify(value);
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body), 'cache-control': 'no-store', ...headers }).end(body);
}
