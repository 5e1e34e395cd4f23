import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Exchange } from './exchange.ts';

/** A request in the form of the web, its body streaming. */
export function webRequest(req: IncomingMessage, exchange: Exchange, signal: AbortSignal): globalThis.Request {
  const bodied =
    req.method !== 'GET' &&
    req.method !== 'HEAD' &&
    (req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined);
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers))
    if (value !== undefined && !name.startsWith(':')) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return new globalThis.Request(new URL(req.url ?? '/', `https://${exchange.hostname || 'internal'}`), {
    method: req.method ?? 'GET',
    headers,
    signal,
    ...(bodied ? { body: Readable.toWeb(req) as ReadableStream, duplex: 'half' } : {}),
  } as RequestInit);
}

/** Writes an answer in the form of the web, streaming. */
export async function writeResponse(res: ServerResponse, response: Response): Promise<void> {
  const cookies = response.headers.getSetCookie();
  for (const [name, value] of response.headers) if (name !== 'set-cookie') res.setHeader(name, value);
  if (cookies.length > 0) res.setHeader('set-cookie', cookies);
  res.writeHead(response.status);
  if (!response.body) return void res.end();
  await pipeline(Readable.fromWeb(response.body as never), res).catch(() => res.destroy());
}
