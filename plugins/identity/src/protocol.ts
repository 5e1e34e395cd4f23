import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NodeExchange } from '@platform/sdk';
import Provider, { type KoaContextWithOIDC } from 'oidc-provider';
import type { Attempts } from './attempts.ts';
import { TOKEN_EXCHANGE } from './client-directory.ts';
import type { Ctx } from './context.ts';
import { configurationOf, type ConfigurationParts } from './provider-configuration.ts';
import type { Realm, Realms } from './realms.ts';
import type { Sessions } from './sessions.ts';
import { answerForJwt, userinfo } from './token-answers.ts';
import { EXCHANGE_PARAMETERS, type TokenExchange } from './token-exchange.ts';
import type { TokenVerifier } from './token-verifier.ts';

const MAX_PROVIDERS = 500;
/** What a client certificate opens. Nothing else of the protocol looks at one. */
const MTLS_PATHS = new Set(['/mtls/oauth/par', '/mtls/oauth/token', '/mtls/oauth/revoke', '/mtls/oauth/introspect']);
/** Terminates TLS for the world: what it forwards was said by somebody else, never by itself. */
const INGRESS = 'proxy';

type Peer = NonNullable<NodeExchange['peer']>;
type Handler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;
interface Running {
  readonly provider: Provider;
  readonly handle: Handler;
}

export interface ProtocolParts extends Omit<ConfigurationParts, 'ctx'> {
  readonly attempts: Attempts;
  readonly exchange: TokenExchange;
  readonly realms: Realms;
  readonly sessions: Sessions;
  readonly tokens: TokenVerifier;
}

/** OAuth and OpenID Connect: one provider per realm and host, kept in an LRU (facts/identity 0.4). */
export class Protocol {
  readonly #ctx: Ctx;
  readonly #parts: ProtocolParts;
  readonly #running = new Map<string, Running>();
  readonly #peers = new WeakMap<IncomingMessage, Peer>();

  constructor(ctx: Ctx, parts: ProtocolParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  provider(realm: Realm): Provider {
    return this.#of(realm).provider;
  }

  /** Hands an exchange to the realm's provider. `/mtls` is the same surface, reached with a client certificate. */
  async handle({ req, res, hostname, peer }: NodeExchange): Promise<void> {
    const realm = await this.#parts.realms.onHost(hostname);
    const url = req.url ?? '/';
    const path = url.split('?')[0] as string;
    if (path === '/oauth/userinfo') return userinfo(this.#ctx, this.#parts, realm, req, res);
    if (url.startsWith('/mtls/')) {
      if (!MTLS_PATHS.has(path)) return refuse(res, 404, 'not_found', 'nothing of the protocol is here');
      // A gateway forwards requests of browsers under its own certificate and adds their token: such a request is not the gateway's own.
      if (req.headers.authorization !== undefined) return refuse(res, 400, 'invalid_request', 'the certificate is the only credential here');
      if (peer && peer.workload !== INGRESS) {
        this.#peers.set(req, peer);
        if (path === '/mtls/oauth/token') await this.#parts.attempts.token(peer.workload);
      }
      (req as IncomingMessage & { originalUrl?: string }).originalUrl = url;
      req.url = url.slice('/mtls'.length);
    }
    // The library writes URLs by the Host header; what a browser sees has the port in it.
    req.headers.host = new URL(this.#parts.realms.issuer(realm)).host;
    await this.#of(realm).handle(req, res);
  }

  #of(realm: Realm): Running {
    // By realm and host: a host that moves to another environment must not keep the old one's provider.
    const key = `${realm.env_id} ${realm.host}`;
    const running = this.#running.get(key) ?? this.#make(realm);
    this.#running.delete(key);
    this.#running.set(key, running);
    if (this.#running.size > MAX_PROVIDERS) this.#running.delete(this.#running.keys().next().value as string);
    return running;
  }

  #make(realm: Realm): Running {
    const { realms, exchange, sessions, tokens } = this.#parts;
    const issuer = realms.issuer(realm);
    const peerOf = (context: KoaContextWithOIDC) => this.#peers.get(context.req);
    const provider = new Provider(issuer, configurationOf({ ...this.#parts, ctx: this.#ctx }, realm, { issuer, peerOf }));
    provider.silent = true;
    provider.registerGrantType(
      TOKEN_EXCHANGE,
      context => exchange.handle(context as KoaContextWithOIDC, issuer, peerOf(context as KoaContextWithOIDC)?.thumbprint),
      [...EXCHANGE_PARAMETERS],
      ['audience', 'resource'],
    );
    provider.use((context, next) => answerForJwt(context as KoaContextWithOIDC, next, tokens));
    provider.on('server_error', (_context, error) => this.#ctx.log.error({ err: error }, 'protocol error'));
    provider.on('grant.error', (context, error) => {
      const { RefreshToken: token } = context.oidc.entities;
      // A refresh token that comes twice is in two hands. Neither keeps what it has.
      if (error.error_detail !== 'refresh token already used' || !token?.sessionUid) return;
      sessions
        .endReused(realm.env_id, token.sessionUid, token.accountId as string)
        .catch(cause => this.#ctx.log.error({ err: cause, session_id: token.sessionUid }, 'a replayed refresh token could not end its session'));
    });
    return { provider, handle: provider.callback() as Handler };
  }
}

function refuse(res: ServerResponse, status: number, error: string, description: string): void {
  const body = JSON.stringify({ error, error_description: description });
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body), 'cache-control': 'no-store' }).end(body);
}
