import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPrivateAddress } from '@platform/sdk';
import type { Ctx } from './context.ts';

const TIMEOUT_MS = 5_000;
const LIMIT = 262_144;

interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of the caller; five seconds are the end in any case. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * One request to a server outside that somebody else named: no redirects, a bounded answer, five seconds, and in production no address of
 * our own network.
 */
export function fetchOutside(
  { platform }: Ctx,
  url: URL,
  { method = 'GET', headers, body, signal }: Asked,
): Promise<{ status: number; text: string }> {
  const guarded = platform.production;
  const bare = url.hostname.replace(/^\[|\]$/g, '');
  if (guarded && isIP(bare) && isPrivateAddress(bare)) return Promise.reject(new Error('a private address is not asked'));
  return new Promise((resolve, reject) => {
    const options = {
      method,
      headers,
      signal: AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(TIMEOUT_MS)]),
      ...(guarded ? { lookup: publicOnly } : {}),
    };
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, response =>
      bodyOf(response).then(text => resolve({ status: response.statusCode ?? 0, text }), reject),
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** A name that leads inside is not followed: what a stranger registered must not reach the platform's own network. */
const publicOnly: LookupFunction = (hostname, options, done) =>
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error || !first) return done(error ?? new Error('no address'), '', 0);
    if (found.some(({ address }) => isPrivateAddress(address))) return done(new Error('a private address is not asked'), '', 0);
    if (options.all) (done as unknown as (error: null, addresses: typeof found) => void)(null, found);
    else done(null, first.address, first.family);
  });

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LIMIT) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
