import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { Ctx } from './context.ts';

const TIMEOUT_MS = 5_000;
const LIMIT = 262_144;

const PRIVATE = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(net, prefix);
for (const [net, prefix] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(net, prefix, 'ipv6');

interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** One request to a server outside that somebody else named: no redirects, a bounded answer, five seconds, and in production no address of our own network. */
export function fetchOutside({ platform }: Ctx, url: URL, { method = 'GET', headers, body, signal }: Asked): Promise<{ status: number; text: string }> {
  const guarded = platform.production;
  const bare = url.hostname.replace(/^\[|\]$/g, '');
  if (guarded && isIP(bare) && isPrivate(bare)) return Promise.reject(new Error('a private address is not asked'));
  return new Promise((resolve, reject) => {
    const options = { method, headers, signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]), ...(guarded ? { lookup: publicOnly } : {}) };
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, response => bodyOf(response).then(text => resolve({ status: response.statusCode ?? 0, text }), reject));
    request.on('error', reject);
    request.end(body);
  });
}

const isPrivate = (address: string) => PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** A name that leads inside is not followed: what a stranger registered must not reach the platform's own network. */
const publicOnly: LookupFunction = (hostname, options, done) =>
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error || !first) return done(error ?? new Error('no address'), '', 0);
    if (found.some(({ address }) => isPrivate(address))) return done(new Error('a private address is not asked'), '', 0);
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
