import { isIP, isIPv4 } from 'node:net';
import type { KeyObject } from 'node:crypto';
import type { JWK } from 'jose';
import { isProblem, ProblemError, type RawExchange } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import type { Account, Accounts } from './accounts.ts';
import type { Nonces } from './nonces.ts';
import { ALGORITHMS, BadJws, type ReadJws, readJws, readKey, readPayload, verifyJws } from './signed-request.ts';

/** A request as the handlers of the protocol see it. */
export interface AcmeRequest {
  readonly params: Readonly<Record<string, string>>;
  /** `https://host[:port]` as the client said it. */
  readonly origin: string;
  readonly query: URLSearchParams;
  readonly ip: string;
  readonly peer: RawExchange['peer'];
}
/** One that is signed. `payload` is empty where the client only asks (POST-as-GET). */
export interface SignedRequest extends AcmeRequest {
  readonly url: string;
  readonly account: Account | undefined;
  /** The key the request carries, where it names no account. */
  readonly key: { readonly jwk: JWK; readonly thumbprint: string; readonly key: KeyObject } | undefined;
  readonly payload: Readonly<Record<string, unknown>> | undefined;
}
export interface OfAccount extends SignedRequest {
  readonly account: Account;
}
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | string;
}

const HOST = /^[a-z0-9.-]{1,253}(?::\d{1,5})?$/i;

type Handler<R> = (request: R) => Promise<Answer>;

/** The doors of the protocol (RFC 8555, 6): who signed is found here once, nonces and links are on every answer, refusals too. */
export class AcmeDoor {
  readonly #ctx: Ctx;
  readonly #nonces: Nonces;
  readonly #accounts: Accounts;

  constructor(ctx: Ctx, nonces: Nonces, accounts: Accounts) {
    this.#ctx = ctx;
    this.#nonces = nonces;
    this.#accounts = accounts;
  }

  /** A resource: asked for by a signed request of any account, or plainly (C20). */
  resource(handlers: {
    readonly get?: Handler<AcmeRequest>;
    readonly post?: Handler<OfAccount>;
  }): (exchange: RawExchange) => Promise<Response> {
    return this.#entered(exchange => {
      const { method } = exchange.request;
      if (method === 'POST' && handlers.post)
        return this.#signed(exchange, request => (handlers.post as Handler<OfAccount>)(this.#requireAccount(request)));
      if ((method === 'GET' || method === 'HEAD') && handlers.get) return handlers.get(this.#plain(exchange));
      throw this.#wrongMethod([...(handlers.get ? ['GET', 'HEAD'] : []), ...(handlers.post ? ['POST'] : [])]);
    });
  }

  /** A request that carries its key, or either. */
  signed(handler: Handler<SignedRequest>): (exchange: RawExchange) => Promise<Response> {
    return this.#entered(exchange => {
      if (exchange.request.method !== 'POST') throw this.#wrongMethod(['POST']);
      return this.#signed(exchange, handler);
    });
  }

  async nonce(exchange: RawExchange): Promise<Response> {
    const { method } = exchange.request;
    return this.#entered(async () => {
      if (method !== 'GET' && method !== 'HEAD') throw this.#wrongMethod(['GET', 'HEAD']);
      return { status: method === 'HEAD' ? 200 : 204, headers: { 'replay-nonce': this.#nonces.make() } };
    })(exchange);
  }

  #entered(work: (exchange: RawExchange) => Promise<Answer>): (exchange: RawExchange) => Promise<Response> {
    return async exchange => {
      const always = this.#headers(exchange);
      try {
        const { status = 200, headers = {}, body } = await work(exchange);
        const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
        const merged = new Headers({ ...always, ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}) });
        for (const [name, value] of Object.entries(headers)) name === 'link' ? merged.append(name, value) : merged.set(name, value);
        if (text !== null) merged.set('content-length', String(Buffer.byteLength(text)));
        return new Response(text, { status, headers: merged });
      } catch (error) {
        throw this.#refusal(error, always);
      }
    };
  }

  /** On every answer: the directory, and after a POST the next nonce. */
  #headers(exchange: RawExchange): Record<string, string> {
    const nonce = exchange.request.method === 'POST' ? { 'replay-nonce': this.#nonces.make() } : {};
    return { link: `<${originOf(exchange)}/acme/directory>;rel="index"`, 'cache-control': 'no-store', ...nonce };
  }

  #refusal(error: unknown, headers: Record<string, string>): unknown {
    if (error instanceof BadJws)
      return this.#ctx.problem(error.fault, {
        detail: error.message,
        headers,
        ...(error.fault === 'bad_signature_algorithm' ? { extra: { algorithms: ALGORITHMS } } : {}),
      });
    if (!isProblem(error)) return this.#ctx.problem('server_internal', { cause: error, headers });
    const { service, code, status, retry, title, type, detail, cause, extra, level } = error;
    const link = error.headers['link'];
    const both = { ...headers, ...error.headers, link: link ? `${headers['link']}, ${link}` : (headers['link'] as string) };
    return new ProblemError(
      service,
      code,
      { status, title, retry, type, log: level },
      { ...(detail === undefined ? {} : { detail }), ...(cause === undefined ? {} : { cause }), extra, headers: both },
    );
  }

  async #signed(exchange: RawExchange, handler: Handler<SignedRequest>): Promise<Answer> {
    const plain = this.#plain(exchange);
    const jws = readJws(await this.#body(exchange.request));
    const { header } = jws;
    const path = new URL(exchange.request.url);
    const url = plain.origin + path.pathname + path.search;
    // Before the signature: what was meant for another place or time is not looked at.
    if (typeof header.nonce !== 'string' || !this.#nonces.use(header.nonce))
      throw this.#ctx.problem('bad_nonce', { detail: 'The nonce was used before, is too old or not ours. Take the one of this answer.' });
    if (header.url !== url) throw this.#ctx.problem('url_mismatch', { detail: `The protected header names another url than ${url}.` });
    const { account, key } = await this.#signer(jws, plain.origin);
    const payload = await verifyJws(jws, account ? this.#accounts.keyOf(account) : (key as NonNullable<typeof key>).key);
    return handler({ ...plain, url, account, key, payload: payload.length === 0 ? undefined : readPayload(payload) });
  }

  async #signer({ header }: ReadJws, origin: string): Promise<Pick<SignedRequest, 'account' | 'key'>> {
    if (header.jwk !== undefined) return { account: undefined, key: await readKey(header.jwk) };
    const { kid } = header;
    const prefix = `${origin}/acme/account/`;
    const account = typeof kid === 'string' && kid.startsWith(prefix) ? await this.#accounts.get(kid.slice(prefix.length)) : undefined;
    if (!account) throw this.#ctx.problem('account_does_not_exist', { detail: 'kid is the URL of no account here.' });
    if (account.status !== 'valid') throw this.#ctx.problem('account_inactive', { detail: `The account is ${account.status}.` });
    return { account, key: undefined };
  }

  #requireAccount(request: SignedRequest): OfAccount {
    if (!request.account) throw new BadJws('malformed_request', 'This request names its account in kid.');
    return request as OfAccount;
  }

  #plain(exchange: RawExchange): AcmeRequest {
    return {
      params: exchange.params,
      origin: originOf(exchange),
      query: new URL(exchange.request.url).searchParams,
      ip: exchange.ip,
      peer: exchange.peer,
    };
  }

  async #body(request: globalThis.Request): Promise<unknown> {
    if (!/^application\/jose\+json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? ''))
      throw this.#ctx.problem('not_jose', { detail: 'Send application/jose+json.' });
    const text = await request.text();
    try {
      return JSON.parse(text);
    } catch {
      throw new BadJws('malformed_request', 'The body is no JSON.');
    }
  }

  #wrongMethod(allowed: readonly string[]) {
    return this.#ctx.problem('wrong_method', { headers: { allow: allowed.join(', ') } });
  }
}

/**
 * As the client said it: the ingress tells in `X-Forwarded-Host`, everybody else in `Host`; both only for the host this request came to.
 */
function originOf({ request, hostname }: RawExchange): string {
  const named = [request.headers.get('x-forwarded-host'), request.headers.get('host')].find(
    host => host !== null && HOST.test(host) && host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '') === hostname,
  );
  return `https://${(named ?? hostname).toLowerCase().replace(/:443$/, '')}`;
}

/** Whether an address is of a private network: those may order local names (G-ACME-06). */
export function isPrivateSource(ip: string): boolean {
  if (isIPv4(ip)) {
    const [first = 0, second = 0] = ip.split('.').map(Number);
    return (
      first === 127 ||
      first === 10 ||
      (first === 192 && second === 168) ||
      (first === 172 && second >= 16 && second <= 31) ||
      (first === 169 && second === 254)
    );
  }
  return isIP(ip) === 6 && (ip === '::1' || /^f[cd][0-9a-f]{2}:/i.test(ip) || /^fe[89ab][0-9a-f]:/i.test(ip));
}
