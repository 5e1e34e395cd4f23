import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setImmediate as turn } from 'node:timers/promises';
import type { Exchange } from './exchange.ts';
import type { BodyBounds, RequestBody } from './request-body.ts';

/** A request in the form of the web. */
export function webRequest({ req, hostname }: Exchange, body: RequestBody, bounds: BodyBounds, signal: AbortSignal): globalThis.Request {
  const bodied = req.method !== 'GET' && req.method !== 'HEAD' && body.isSent;
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers))
    if (value !== undefined && !name.startsWith(':')) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return new globalThis.Request(new URL(req.url ?? '/', `https://${hostname || 'internal'}`), {
    method: req.method ?? 'GET',
    headers,
    signal,
    ...(bodied ? { body: body.web(bounds), duplex: 'half' } : {}),
  } as RequestInit);
}

/**
 * Writes an answer in the form of the web: what is whole at once in one piece with its length, all else as it comes. A stream of our own
 * making would cost a small answer more than all that it says.
 */
export async function writeResponse(res: ServerResponse, response: Response): Promise<void> {
  const cookies = response.headers.getSetCookie();
  for (const [name, value] of response.headers) if (name !== 'set-cookie') res.setHeader(name, value);
  if (cookies.length > 0) res.setHeader('set-cookie', cookies);
  res.statusCode = response.status;
  if (!response.body) return void res.end();
  const reader = response.body.getReader();
  const [first, next] = [reader.read(), reader.read()];
  const whole = await Promise.race([ended(next), turn(false)]).catch(() => false);
  if (whole) return void res.end((await first).value);
  const leave = () => reader.cancel().catch(() => undefined);
  // A source that is waited for hears at once that nobody reads on.
  res.once('close', leave);
  await pipeline(chunks([first, next], reader), res).catch(() => (res.destroy(), leave()));
}

type Reading = Promise<ReadableStreamReadResult<Uint8Array>>;
const ended = async (reading: Reading): Promise<boolean> => (await reading).done;

/** What was asked for already, and then the rest. */
async function* chunks(begun: readonly Reading[], reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const reading of begun) {
    const { done, value } = await reading;
    if (done) return;
    yield value;
  }
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}
