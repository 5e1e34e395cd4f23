import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';

/** An answer of the ingress itself, in problem form (G-K-01, G-PROXY-04). */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What follows on the connection cannot be trusted. */
  readonly closes?: boolean;
  /** The client is in the middle of its body: a connection cut at once would take the answer along. */
  readonly lingers?: boolean;
  /** The environment it was about, where that is known: for the log alone. */
  readonly envId?: string | null;
}

export const isRefusal = (value: object | string): value is Refusal => typeof value === 'object' && 'code' in value && 'title' in value;

/** The HTTP/2 stream under a response; `undefined` under HTTP/1. */
export const streamOf = (res: ServerResponse): Http2Stream | undefined => (res as ServerResponse & { stream?: Http2Stream }).stream;

/** Whether nobody reads an answer any more. */
export const isGone = (res: ServerResponse): boolean => res.destroyed || streamOf(res)?.destroyed === true;

/** Ends an exchange as it stands: of HTTP/2 the stream alone, told as such. */
export function cut(res: ServerResponse): void {
  const stream = streamOf(res);
  stream?.close(CANCEL);
  (stream ?? res).destroy();
}

/** A browser that was here once comes by TLS alone, for a year (RFC 6797). */
export const HSTS = { 'strict-transport-security': 'max-age=31536000' } as const;

/** HTTP/2's word for a stream that is not needed any more (RFC 9113 7). */
const CANCEL = 8;
/** How long a refused connection may go on sending. */
const LINGER_MS = 1_000;
/** Answers a request. A body that was not read whole ends the connection, or it would be taken for the next request. */
export function refuse(res: ServerResponse, refusal: Refusal, correlationId: string): void {
  if (res.headersSent) return void (streamOf(res) ?? res).destroy();
  const body = bodyOf(refusal, correlationId);
  const close = refusal.closes === true || !res.req.complete;
  const stream = streamOf(res);
  // Of HTTP/2 the stream alone is over; of a client that cannot be trusted the connection as well.
  if (stream && close) res.once('finish', () => (refusal.closes === true ? stream.session?.close() : stream.close()));
  res.writeHead(refusal.status, { ...headersOf(refusal, body, correlationId), ...(close && !stream ? { connection: 'close' } : {}) });
  if (refusal.lingers !== true || stream || res.req.complete) return void res.end(body);
  res.write(body);
  const end = () => void (clearTimeout(timer), res.end());
  const timer = setTimeout(end, LINGER_MS).unref();
  res.req.once('end', end).once('close', end).resume();
}

/** The same where there is no response object yet: an upgrade, a tunnel, bytes that are no request. */
export function refuseSocket(socket: Duplex, refusal: Refusal, correlationId: string): void {
  if (!socket.writable) return void socket.destroy();
  const body = bodyOf(refusal, correlationId);
  const lines = Object.entries({ ...headersOf(refusal, body, correlationId), connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  // Bytes that nobody reads would keep the socket, and cutting it at once would take the answer along.
  socket.on('error', () => socket.destroy()).resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function headersOf({ headers }: Refusal, body: string, correlationId: string): Record<string, string> {
  return {
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'x-platform-correlation-id': correlationId,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...HSTS,
    ...headers,
  };
}

function bodyOf({ status, code, title, detail, headers }: Refusal, correlationId: string): string {
  const after = headers?.['retry-after'];
  return JSON.stringify({
    type: `urn:platform:problem:proxy:${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    correlation_id: correlationId,
    ...(after === undefined ? {} : { retry_after: Number(after) }),
  });
}
