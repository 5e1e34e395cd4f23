import type { IncomingMessage } from 'node:http';
import type { Refusal } from './refusal.ts';

/** What a request line asks for: a path of the host, or something about the server itself (`OPTIONS *`). */
export type Target = { readonly path: string } | 'server';

const ABSOLUTE = /^https?:\/\/([^/?#]*)(\/[^#]*|\?[^#]*)?$/i;
const malformed = (title: string): Refusal => ({ status: 400, code: 'malformed', title });

/**
 * Reads the four forms of a request target (RFC 9112 3.2). What a backend's connection could not carry is refused or put into origin form
 * here (F-16).
 */
export function targetOf({ method, url = '/', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): Target | Refusal {
  if (url === '*') return method === 'OPTIONS' ? 'server' : malformed('Only OPTIONS may ask about the server itself');
  if (url.startsWith('/')) return url.includes('#') ? malformed('A request target has no fragment') : pathOf(url);
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return malformed('The request target is neither a path nor a URL');
  // Two names for one request would be read differently by two servers.
  if (authority.toLowerCase() !== (headers.host ?? '').toLowerCase()) return malformed('The request target and Host name different hosts');
  return pathOf(rest.startsWith('/') ? rest : `/${rest}`);
}

/** Paths that two servers read differently are nobody's honest request: browsers and libraries resolve dot segments themselves. */
function pathOf(path: string): Target | Refusal {
  const [segments = ''] = path.split('?');
  if (segments.includes('\\') || /%00|%5c/i.test(segments)) return malformed('The path holds a backslash or a null');
  if (segments.split('/').some(segment => /^(?:\.|%2e){1,2}$/i.test(segment))) return malformed('The path holds dot segments');
  return { path };
}
