import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { Readable } from 'node:stream';

/** A request over TLS, to the last byte as it is said here. */
export interface WireRequest extends RequestOptions {
  readonly headers: OutgoingHttpHeaders;
  /** Text, bytes, or pieces that are sent one after the other without their length. */
  readonly body?: string | Buffer | Iterable<Buffer> | AsyncIterable<Buffer> | undefined;
  /** Cuts the connection behind the body's pieces, before its end. */
  readonly cut?: boolean | undefined;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
  readonly text: string;
  /** Empty where the answer is not JSON. */
  readonly json: Record<string, unknown>;
}

/** Sends a request on a connection of its own and reads the whole answer. */
export async function wireRequest(request: WireRequest): Promise<WireAnswer> {
  const response = await wireAnswer(request);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString('utf8');
  return { status: response.statusCode ?? 0, headers: response.headers, body: bytes, text, json: jsonIn(text) };
}

/** Sends a request on a connection of its own; resolves with the head of the answer, whose body is still to come. */
export function wireAnswer({ body, cut = false, headers, ...options }: WireRequest): Promise<IncomingMessage> {
  const whole = typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : undefined;
  const length = whole === undefined ? {} : { 'content-length': whole.length };
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({ host: '127.0.0.1', agent: false, ...options, headers: { ...length, ...headers } });
    outgoing.on('error', reject);
    outgoing.once('response', resolve);
    if (whole) return void outgoing.end(whole);
    if (typeof body === 'object' && Symbol.asyncIterator in body) return void Readable.from(body).pipe(outgoing);
    for (const piece of (body as Iterable<Buffer> | undefined) ?? []) outgoing.write(piece);
    if (cut) outgoing.once('socket', socket => setImmediate(() => socket.destroy()));
    else outgoing.end();
  });
}

function jsonIn(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text || '{}') as Record<string, unknown>;
  } catch {
    return {};
  }
}
