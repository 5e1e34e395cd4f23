import type { Ctx } from '../context.ts';
import type { DelegatedToken, DelegatedTokens } from './delegated-tokens.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { Sessions } from '../session/sessions.ts';

const TIMEOUT_MS = 60_000;
/** Everything else a browser sends stays here, the cookie first of all (GWY-064). */
const REQUEST_HEADERS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'content-length',
  'if-match',
  'if-none-match',
  'range',
  'idempotency-key',
  'last-event-id',
] as const;

export interface UpstreamCall {
  readonly service: string;
  readonly path: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly bearer: DelegatedToken;
  readonly correlationId: string;
  /** Whose call it is: of one session no other waits. */
  readonly session: SessionRecord;
  /** Environment the call is for, where it is not the bearer's own. */
  readonly target?: string | undefined;
  /** Host of the identity service that is meant, where there is one per environment. */
  readonly hostname?: string | undefined;
  readonly body?: BodyInit | null;
  readonly signal?: AbortSignal | undefined;
}

/** Calls to backends in the name of a session. The answer goes to a browser: it is data there, never a page of the gateway's host. */
export class Upstream {
  readonly #ctx: Ctx;
  readonly #delegated: DelegatedTokens;
  readonly #sessions: Sessions;

  constructor(ctx: Ctx, { delegated, sessions }: { delegated: DelegatedTokens; sessions: Sessions }) {
    this.#ctx = ctx;
    this.#delegated = delegated;
    this.#sessions = sessions;
  }

  /**
   * One of the delegator for a named environment, whichever it is, and for a service of a vertical: the session's own token is good at
   * every service of the platform and must not reach somebody else's code. There is no third (GWY-058, GWY-059, GWY-082).
   */
  async bearerFor(session: SessionRecord, target: string | undefined, service: string): Promise<DelegatedToken> {
    if (target !== undefined || !this.#isPlatform(service)) return this.#delegated.tokenFor(session, target ?? session.env_id, service);
    return { token: await this.#sessions.accessToken(session), as: undefined };
  }

  #isPlatform(service: string): boolean {
    return this.#ctx.catalog.manifests().some(({ id, vertical }) => id === service && vertical === 'platform');
  }

  async call({
    service,
    path,
    method,
    headers,
    bearer,
    correlationId,
    session,
    target,
    hostname,
    body,
    signal,
  }: UpstreamCall): Promise<Response> {
    const response = await this.#ctx.backends.fetch(service, path, {
      method,
      headers: {
        ...headers,
        ...(await this.#credential(bearer, method, { service, path, hostname })),
        'x-platform-correlation-id': correlationId,
        ...(target === undefined ? {} : { 'x-bff-target-env-id': target }),
      },
      timeoutMs: TIMEOUT_MS,
      party: session.session_id_hash,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
      ...(hostname === undefined ? {} : { hostname }),
      ...(bearer.as === undefined ? {} : { as: bearer.as }),
    });
    return answered(response);
  }

  /** A token as it must be shown: one that is bound to a key with its proof, for the address under which the service is known. */
  async #credential(
    { token, prove }: DelegatedToken,
    method: string,
    { service, path, hostname }: Pick<UpstreamCall, 'service' | 'path' | 'hostname'>,
  ): Promise<Record<string, string>> {
    if (!prove) return { authorization: `Bearer ${token}` };
    const { publicOrigin, host } = this.#ctx.platform;
    const url = new URL(path, publicOrigin(hostname ?? host(service)));
    return { authorization: `DPoP ${token}`, dpop: await prove(method, `${url.origin}${url.pathname}`) };
  }
}

export function forwarded(given: Headers): Record<string, string> {
  return Object.fromEntries(REQUEST_HEADERS.flatMap(name => (given.get(name) === null ? [] : [[name, given.get(name) as string]])));
}

/** The backend's answer, less what belongs to its host; what belongs to a connection the backends left out (`isHopByHop`). */
function answered(response: Response): Response {
  const headers = new Headers(response.headers);
  headers.delete('set-cookie');
  headers.set('content-security-policy', "default-src 'none'; sandbox");
  headers.set('x-content-type-options', 'nosniff');
  return new Response(response.body, { status: response.status, headers });
}
