import type { ServerResponse } from 'node:http';
import { CORRELATION_HEADER } from '../doors/exchange.ts';
import type { Outgoing } from '../operation-call.ts';

/** Writes what a request door answered: text and bytes as they are where the handler says what they are, everything else as JSON. */
export function writeAnswer(res: ServerResponse, { status, headers, value }: Outgoing, correlationId: string): void {
  const raw = value instanceof Uint8Array || (typeof value === 'string' && headers['content-type'] !== undefined);
  const body = value === undefined ? '' : raw ? value : JSON.stringify(value);
  const described = {
    [CORRELATION_HEADER]: correlationId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(raw || value === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }),
    ...headers,
    ...(status === 204 || status === 304 ? {} : { 'content-length': Buffer.byteLength(body) }),
  };
  res.writeHead(status, described).end(body);
}
