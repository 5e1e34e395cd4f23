import type { IncomingMessage, ServerResponse } from 'node:http';
import { BoundedMap, isProblem, type NodeExchange } from '@platform/sdk';
import Provider, { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { PollPace } from '../approvals/poll-pace.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import { interactionOf, readReturn } from './authorization-return.ts';
import { cookieIn } from '../sign-in/request-cookies.ts';
import { payloadOf, TOKEN_EXCHANGE } from '../clients/client-directory.ts';
import { MetadataRefused } from '../clients/client-metadata.ts';
import { matches } from '../clients/client-registration.ts';
import type { ClientMetadata } from '../clients/registered-clients.ts';
import type { RegistrationEndpoint } from '../clients/registration-endpoint.ts';
import type { Ctx } from '../context.ts';
import { canonicalQuery, FormRefused, formChecked } from './protocol-form.ts';
import { ProtocolTurn } from './protocol-turn.ts';
import { configurationOf, type ConfigurationParts, showError } from './configuration/provider-configuration.ts';
import { SESSION_COOKIE } from './configuration/cookies.ts';
import type { Realm, Realms } from '../realms.ts';
import { END_SESSION, RelyingPartyLogout } from './relying-party-logout.ts';
import { answerForJwt, userinfo } from './tokens/token-answers.ts';
import { EXCHANGE_PARAMETERS, type TokenExchange } from './tokens/token-exchange.ts';
import { answerJson } from './json-answer.ts';

const MAX_PROVIDERS = 500;
/** What a client certificate opens. Nothing else of the protocol looks at one. */
const MTLS_PATHS = new Set(
  ['par', 'token', 'revoke', 'introspect', 'bc-authorize', 'device_authorization'].map(name => `/mtls/oauth/${name}`),
);
/** The protocol core answers 404 to a method that its path does not know. */
const METHODS: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...['par', 'token', 'revoke', 'introspect', 'bc-authorize', 'device_authorization'].map(name => [`/oauth/${name}`, ['POST']] as const),
  ['/oauth/end-session', ['POST']],
  ['/oauth/authorize', ['GET', 'HEAD', 'POST']],
  ['/oauth/authorize/continue', ['POST']],
  ['/oauth/userinfo', ['GET', 'POST']],
  ...['jwks.json', 'openid-configuration', 'oauth-authorization-server'].map(name => [`/.well-known/${name}`, ['GET', 'HEAD']] as const),
]);
const TOKEN_PATHS = new Set(['/oauth/token', '/mtls/oauth/token']);
const REGISTER = /^(\/mtls)?\/oauth\/register(\/[^/]{1,100})?$/;
/** How long readers may keep the key set; the next keys are in it long before they sign (G-K-06). */
const KEYS_MAX_AGE_S = 300;
/** Terminates TLS for the world: what it forwards was said by somebody else, never by itself. */
const INGRESS = 'proxy';

/** What the tokens of a client are counted by. */
const tokensOf = ({ env_id }: Realm, clientId: string): string => `${env_id}:${clientId}`;

type Peer = NonNullable<NodeExchange['peer']>;
type Handler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;
interface Running {
  readonly provider: Provider;
  readonly handle: Handler;
}

export interface ProtocolParts extends Omit<ConfigurationParts, 'ctx'> {
  readonly attempts: Attempts;
  readonly exchange: TokenExchange;
  readonly pace: PollPace;
  readonly realms: Realms;
}

/** OAuth and OpenID Connect: one provider per realm and host, kept in an LRU (facts/identity 0.4). */
export class Protocol {
  readonly #ctx: Ctx;
  readonly #parts: ProtocolParts;
  readonly #running = new BoundedMap<string, Running>(MAX_PROVIDERS);
  readonly #peers = new WeakMap<IncomingMessage, Peer>();
  readonly #logout: RelyingPartyLogout;

  constructor(ctx: Ctx, parts: ProtocolParts) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#logout = new RelyingPartyLogout(ctx, parts);
    // A provider signs with the keys it was made with; what is under way ends with them, and the next request makes it anew.
    parts.keys.onChange(() => this.#running.clear());
  }

  provider(realm: Realm): Provider {
    return this.#of(realm).provider;
  }

  /** What the protocol core thinks of a client's metadata, before it is stored. */
  async validate(envId: string, metadata: ClientMetadata): Promise<void> {
    const { Client } = this.#of(await this.#parts.realms.ofEnv(envId)).provider as unknown as {
      Client: { validate(metadata: object): Promise<void> };
    };
    try {
      await Client.validate(payloadOf({ client_id: 'unborn', metadata, secret_hash: 'unborn' }));
    } catch (error) {
      const { error: code, error_description: description } = error as { error?: string; error_description?: string };
      if (code !== 'invalid_client_metadata' && code !== 'invalid_redirect_uri') throw error;
      throw new MetadataRefused(code, description ?? 'the metadata contradicts itself');
    }
  }

  /** Hands an exchange to the realm's provider. `/mtls` is the same surface, reached with a client certificate. */
  async handle(exchange: NodeExchange, registration?: RegistrationEndpoint): Promise<void> {
    const { res, hostname, peer } = exchange;
    const realm = await this.#parts.realms.onHost(hostname);
    const url = exchange.req.url ?? '/';
    const path = url.split('?')[0] as string;
    const register = REGISTER.exec(path);
    if (register && registration)
      return registration.handle(
        realm,
        register[2] ?? '',
        exchange,
        register[1] && peer?.workload !== INGRESS ? peer?.workload : undefined,
      );
    const methods = METHODS.get(path.replace(/^\/mtls\//, '/'));
    if (methods && !methods.includes(exchange.req.method ?? ''))
      return refuse(res, 405, 'invalid_request', `here: ${methods.join(', ')}`, { allow: methods.join(', ') });
    if (path === END_SESSION && exchange.req.headers.authorization === undefined)
      return this.#logout.handle(realm, exchange, peer?.workload === INGRESS ? undefined : peer?.workload);
    if (path === '/.well-known/jwks.json') return this.#keySet(exchange.req, res);
    if (path === '/oauth/userinfo')
      return userinfo(this.#ctx, { ...this.#parts, issuer: this.#parts.realms.issuer(realm) }, realm, exchange);
    if (url.startsWith('/mtls/') && !MTLS_PATHS.has(path)) return refuse(res, 404, 'not_found', 'nothing of the protocol is here');
    let req: IncomingMessage;
    try {
      req = formChecked(exchange);
    } catch (error) {
      if (error instanceof FormRefused) return refuse(res, error.status, 'invalid_request', error.message);
      throw error;
    }
    if (url.startsWith('/mtls/')) {
      // A gateway forwards requests of browsers under its own certificate and adds their token: such a request is not the gateway's own.
      if (req.headers.authorization !== undefined)
        return refuse(res, 400, 'invalid_request', 'the certificate is the only credential here');
      if (peer && peer.workload !== INGRESS) this.#peers.set(req, peer);
      (req as IncomingMessage & { originalUrl?: string }).originalUrl = url;
      req.url = url.slice('/mtls'.length);
    }
    req.url = canonicalQuery(req.url ?? '/');
    // The library writes URLs by the Host header; what a browser sees has the port in it.
    req.headers.host = new URL(this.#parts.realms.issuer(realm)).host;
    const { handle } = this.#of(realm);
    const turn = new ProtocolTurn(
      this.#ctx.db.sql,
      realm.env_id,
      TOKEN_PATHS.has(path) ? clientId => this.#admit(realm, clientId, { req, res }) : undefined,
    );
    const interaction = interactionOf(path);
    const session = interaction && cookieIn(req.headers.cookie, SESSION_COOKIE);
    if (session) await readReturn(this.#ctx.db.sql, turn, realm.env_id, { session, interaction });
    await turn.run(() => handle(req, res));
  }

  /** Not more tokens a minute than a client may have; the library tells it as it tells other refusals. */
  async #admit(realm: Realm, clientId: string, { req, res }: Pick<NodeExchange, 'req' | 'res'>): Promise<void> {
    const { attempts } = this.#parts;
    const client = tokensOf(realm, clientId);
    try {
      await (this.#peers.has(req) ? attempts.token(client) : attempts.mayAsk(client));
    } catch (error) {
      if (!isProblem(error)) throw error;
      for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
      throw Object.assign(new errors.TemporarilyUnavailable(error.detail), { statusCode: error.status });
    }
  }

  /** Current keys, those that follow and those that were: a token is never refused for a rotation in between. */
  #keySet(req: IncomingMessage, res: ServerResponse): void {
    const body = JSON.stringify({ keys: this.#parts.keys.publicJwks });
    const headers = {
      'content-type': 'application/jwk-set+json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': `public, max-age=${KEYS_MAX_AGE_S}`,
      'access-control-allow-origin': '*',
    };
    res.writeHead(200, headers).end(req.method === 'HEAD' ? undefined : body);
  }

  /**
   * Nothing of what was answered is so: the client is told as by the library when it refuses or fails, and the browser keeps the cookies it
   * had.
   */
  #unwritten(context: KoaContextWithOIDC, error: unknown): void {
    const refused = error instanceof errors.OIDCProviderError ? error : undefined;
    if (!refused) this.#ctx.log.error({ err: error }, 'protocol error');
    const said = refused
      ? { error: refused.error, error_description: refused.error_description }
      : { error: 'server_error', error_description: 'oops! something went wrong' };
    context.res.removeHeader('set-cookie');
    if (context.status === 303 || context.status === 302) return showError(context, said.error);
    context.status = refused?.statusCode ?? 500;
    context.body = said;
  }

  #of(realm: Realm): Running {
    // By realm and host: a host that moves to another environment must not keep the old one's provider.
    const key = `${realm.env_id} ${realm.host}`;
    const running = this.#running.get(key) ?? this.#make(realm);
    this.#running.set(key, running);
    return running;
  }

  #make(realm: Realm): Running {
    const { attempts, realms, exchange, pace, sessions, tokens } = this.#parts;
    const issuer = realms.issuer(realm);
    const peerOf = (context: KoaContextWithOIDC) => this.#peers.get(context.req);
    const provider = new Provider(issuer, configurationOf({ ...this.#parts, ctx: this.#ctx }, realm, { issuer, peerOf }));
    provider.silent = true;
    // What is stored is the hash (RFC 7591 secrets are long and random, so one round of SHA-256 is enough).
    Object.assign(provider.Client.prototype, {
      compareClientSecret(this: { clientSecret?: string }, given: string) {
        return matches(this.clientSecret ?? null, given);
      },
    });
    provider.registerGrantType(
      TOKEN_EXCHANGE,
      context => exchange.handle(context as KoaContextWithOIDC, issuer, peerOf(context as KoaContextWithOIDC)?.thumbprint),
      [...EXCHANGE_PARAMETERS],
      ['audience', 'resource'],
    );
    provider.use(async (context, next) => {
      await next();
      // Before the answer: a client that has a code or a token in hand finds it there.
      await ProtocolTurn.current(realm.env_id)
        ?.write()
        .catch(error => this.#unwritten(context as KoaContextWithOIDC, error));
      const { oidc, status } = context as KoaContextWithOIDC;
      if (oidc?.route === 'token' && status === 200 && oidc.client && !this.#peers.has(context.req))
        await attempts.issued(tokensOf(realm, oidc.client.clientId));
      await answerForJwt(context as KoaContextWithOIDC, { tokens, sessions, envId: realm.env_id });
      await pace.answer(context as KoaContextWithOIDC);
      // The library always claims it; nobody has such a code here.
      const told = context.body as { backchannel_user_code_parameter_supported?: boolean } | undefined;
      if (told?.backchannel_user_code_parameter_supported) told.backchannel_user_code_parameter_supported = false;
    });
    provider.on('server_error', (_context, error) => this.#ctx.log.error({ err: error }, 'protocol error'));
    provider.on('grant.error', (context, error) => {
      const { RefreshToken: token } = context.oidc.entities;
      // A refresh token that comes twice is in two hands. Neither keeps what it has.
      if (error.error_detail !== 'refresh token already used' || !token?.sessionUid) return;
      sessions
        .endReused(realm.env_id, token.sessionUid, token.accountId as string)
        .catch(cause =>
          this.#ctx.log.error({ err: cause, session_id: token.sessionUid }, 'a replayed refresh token could not end its session'),
        );
    });
    return { provider, handle: provider.callback() as Handler };
  }
}

function refuse(
  res: ServerResponse,
  status: number,
  error: string,
  description: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  answerJson(res, status, { error, error_description: description }, headers);
}
