import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Ctx } from './context.ts';
import { addressClaims, type People } from './people.ts';
import type { Realm } from './realms.ts';
import type { TokenVerifier } from './token-verifier.ts';

/**
 * The library refuses JWTs at introspection and revocation, after it has authenticated the client. Introspection is answered from the token
 * itself. Revoking one has no effect before its fifteen minutes are over, and says so with 200, as RFC 7009 has it for what is unknown:
 * what a client can end is the refresh token, what an operator can end is the session.
 */
export async function answerForJwt(context: KoaContextWithOIDC, next: () => Promise<void>, tokens: TokenVerifier): Promise<void> {
  await next();
  const { oidc } = context;
  if ((context.body as { error?: string } | undefined)?.error !== 'unsupported_token_type' || !oidc?.client) return;
  const token = oidc.params?.['token'];
  context.status = 200;
  if (oidc.route === 'revocation') {
    context.body = '';
    return;
  }
  const claims = typeof token === 'string' ? await tokens.read(token) : undefined;
  context.body = claims ? { active: true, ...claims } : { active: false };
}

/** Claims about the person a token was issued to at this very issuer (OpenID Connect Core 5.3). */
export async function userinfo(ctx: Ctx, { people, tokens }: { people: People; tokens: TokenVerifier }, realm: Realm, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'GET' && req.method !== 'POST') return void res.writeHead(405, { allow: 'GET, POST' }).end();
  const token = /^Bearer ([A-Za-z0-9._~+/=-]{1,12288})$/i.exec(req.headers.authorization ?? '')?.[1];
  const claims = token ? await tokens.read(token) : undefined;
  const person = claims?.token_type === 'access' && claims.auth_env === realm.env_id ? await people.byId(claims.sub) : undefined;
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
