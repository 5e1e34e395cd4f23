import type { Identity, Verifier, VerifyRequest } from '../../identity/tokens/verifier.ts';
import type { Mounted } from './door.ts';
import { type Exchange, parseJson } from './exchange.ts';
import type { Incoming } from '../operation-call.ts';
import { RequestBody } from './request-body.ts';
import type { StreamTickets } from './stream-tickets.ts';
import type { Clock } from '../../base/clock.ts';

export interface IncomingOptions {
  readonly service: string;
  readonly params: Readonly<Record<string, string>>;
  readonly signal: () => AbortSignal;
  /** The event stream that is asked for: a browser names its ticket in the query. */
  readonly stream?: Mounted;
  readonly verifier: Verifier;
  readonly tickets: StreamTickets;
  readonly clock: Clock;
  readonly originOf: (host: string) => string;
}

/** An exchange as an operation takes it; the caller is identified when first asked for, the body read when the gate has been passed. */
export function incomingOf(
  exchange: Exchange,
  { service, params, signal, stream, verifier, tickets, clock, originOf }: IncomingOptions,
): Incoming & { readonly bytes: RequestBody } {
  const { req, url, peer, tenant, hostname, ip, correlationId } = exchange;
  let identity: Promise<Identity> | undefined;
  // A browser's EventSource cannot send a header; no other door takes a credential from a URL (H-06).
  const inQuery = (name: string) =>
    stream && req.headers.authorization === undefined && req.headers.accept === 'text/event-stream' ? url.searchParams.get(name) : null;
  const [token, ticket] = [inQuery('token'), inQuery('ticket')];
  const authorization = req.headers.authorization ?? (token === null ? undefined : `Bearer ${token}`);
  const verify = (): Promise<Identity> =>
    ticket !== null && token === null && stream?.operation
      ? tickets.redeem(stream.name, ticket, stream.operation.gateKeys)
      : verifier.verify({ authorization, peer, service, tenantEnvId: tenant.envId, shown: shownAt(exchange, originOf) });
  const bytes = new RequestBody(req, clock);
  return {
    params,
    query: url.searchParams,
    headers: req.headers as Record<string, string | undefined>,
    identity: () => (identity ??= verify()),
    body: async bounds => parseJson(await bytes.bytes(bounds), req.headers['content-type']),
    bytes,
    correlationId,
    signal,
    ip,
    hostname,
    tenant,
    peer,
    method: req.method ?? 'GET',
  };
}

/**
 * What a proof of possession must name: the address as the client saw it, by the public name or, without an ingress between, by the port it
 * came to.
 */
function shownAt({ req, url, hostname }: Exchange, originOf: (host: string) => string): NonNullable<VerifyRequest['shown']> {
  const [proof, host = ''] = [req.headers['dpop'], req.headers.host];
  const named = URL.parse(`https://${host}`)?.hostname === hostname ? [`https://${host}${url.pathname}`] : [];
  const urls = proof === undefined ? [] : [originOf(hostname) + url.pathname, ...named];
  return { proof: Array.isArray(proof) ? proof.join(', ') : proof, method: req.method ?? 'GET', urls };
}
