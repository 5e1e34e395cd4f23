import type { IncomingMessage } from 'node:http';
import { announced, isHopByHop, mayTrail, isCorrelationId } from '@platform/sdk';
import type { Mapping } from './host-mappings.ts';
import type { Refusal } from './refusal.ts';

/** Headers a client may send with the platform's prefix; all others are ours to write (C15, G-PROXY-02). */
const CORRELATION = 'x-platform-correlation-id';
const CSRF = 'x-platform-csrf';
/** Said anew by us; what a client expects before its body was answered here. */
const DROPPED = new Set(['host', 'expect', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']);
/** A socket needs these to be upgraded. */
const UPGRADE = new Set(['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions', 'sec-websocket-protocol']);

/** The headers a backend gets: the client's, less everything it must not say, plus the resolved context. */
export function backendHeaders(
  req: IncomingMessage,
  mapping: Pick<Mapping, 'hostname' | 'service' | 'env_id' | 'app_instance_id'>,
  options: { correlationId: string; ip: string; upgrade?: boolean },
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(req.headers)) {
    if (value === undefined || DROPPED.has(name) || isHopByHop(name, req.headers.connection)) continue;
    // Another server may read an underscore as a hyphen.
    if (name.startsWith(':') || name.includes('_')) continue;
    if (name.startsWith('x-platform-') && !(name === CSRF && mapping.service === 'auth')) continue;
    if (UPGRADE.has(name) && !options.upgrade) continue;
    headers[name] = Array.isArray(value) ? value.join(name === 'cookie' ? '; ' : ', ') : value;
  }
  return {
    ...headers,
    host: mapping.hostname,
    'x-platform-hostname': mapping.hostname,
    'x-platform-service': mapping.service,
    ...(mapping.env_id ? { 'x-platform-env-id': mapping.env_id } : {}),
    ...(mapping.app_instance_id ? { 'x-platform-app-id': mapping.app_instance_id } : {}),
    [CORRELATION]: options.correlationId,
    'x-platform-caller-service': 'proxy',
    'x-forwarded-for': options.ip,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': req.headers.host ?? mapping.hostname,
  };
}

/** What of a client's trailers a backend gets: fields that may stand there, as many as headers may be. */
export function backendTrailers(req: IncomingMessage): Record<string, string> {
  const { connection } = req.headers;
  const kept = Object.entries(req.trailers).filter(
    ([name, value]) => value !== undefined && mayTrail(name) && !isHopByHop(name, connection),
  );
  return kept.length > MAX_HEADERS ? {} : Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

/** The `Trailer` header of a request whose body is still coming, or the names of what came behind one that is whole. */
export const trailerNames = (req: IncomingMessage): string | undefined =>
  announced(req.complete ? Object.keys(backendTrailers(req)) : req.headers.trailer);

/**
 * Whether fields may stand behind a body, announced or not: chunked ones need no announcement (RFC 9112 7.1.2, RFC 9110 6.5). Those behind
 * a large body whose length was said are passed on where they were announced alone. HTTP/1.1 has none there (RFC 9112 6.3); HTTP/2 might,
 * and each upload of a browser would pay a connection of its own for them, while a recipient may drop any that it was not told of.
 */
export const mayBeTrailed = (req: IncomingMessage, body: { readonly rest?: unknown } | null, announcement: string | undefined): boolean =>
  announcement !== undefined || (body?.rest !== undefined && req.headers['content-length'] === undefined);

/** The client's correlation id when it is well formed, else a new one. */
export function correlationOf(req: IncomingMessage, newId: () => string): string {
  const given = req.headers[CORRELATION];
  return typeof given === 'string' && isCorrelationId(given) ? given : `proxy-${newId()}`;
}

const MAX_HEADERS = 100;
const HOST = /^(?:[a-z0-9_](?:[a-z0-9_.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
const malformed = (title: string): Refusal => ({ status: 400, code: 'malformed', title, closes: true });

/**
 * Why a request is refused before anything else reads it, or `undefined` (hardening H-14, G-PROXY-04, facts 3 and 4). HTTP/2's own names
 * are read as what they stand for.
 */
export function refusalOf(req: IncomingMessage): Refusal | undefined {
  const all = req.rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase());
  const names = all.filter(name => !name.startsWith(':'));
  if (names.length > MAX_HEADERS) return { status: 431, code: 'headers_too_large', title: 'Too many request headers', closes: true };
  const framing = 'stream' in req ? pseudoFault(req, names) : framingFault(req, names);
  if (framing) return framing;
  if (!HOST.test(req.headers.host ?? '')) return malformed('The Host header is no host name');
  if (names.some(name => name.includes('_') && name.replaceAll('_', '-').startsWith('x-platform-')))
    return malformed('Header names are spelt with hyphens');
  return undefined;
}

function framingFault({ httpVersion, headers }: IncomingMessage, names: readonly string[]): Refusal | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return malformed('The request line names another protocol');
  if (names.filter(name => name === 'host').length !== 1) return malformed('Exactly one Host header');
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (names.includes('content-length')) return malformed('Content-Length or Transfer-Encoding, not both');
  return httpVersion === '1.1' && coding.toLowerCase() === 'chunked'
    ? undefined
    : malformed('Transfer-Encoding is chunked, and nothing else');
}

function pseudoFault({ headers, method = '' }: IncomingMessage, names: readonly string[]): Refusal | undefined {
  const { ':authority': authority, ':scheme': scheme } = headers as Record<string, string | undefined>;
  if (authority !== undefined && headers.host !== undefined && authority.toLowerCase() !== headers.host.toLowerCase())
    return malformed(':authority and Host name different hosts');
  if (names.filter(name => name === 'host').length > 1) return malformed('At most one Host header');
  if (scheme !== 'https' || method !== method.toUpperCase()) return malformed('The scheme is https, the method in capitals');
  headers.host = authority ?? headers.host;
  return undefined;
}
