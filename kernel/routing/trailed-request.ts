import { request } from 'node:http';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Forwarding } from './forwarding.ts';

export interface TrailedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | Readable;
  /** What stands behind the body, asked for when all of it was read; `undefined`: the request is not to be finished. */
  readonly trailers: () => Readonly<Record<string, string>> | undefined;
  /** How long a backend may take from the end of the request to the head of its answer. */
  readonly timeoutMs: number;
}

/**
 * Sends a request with trailers (RFC 9110 6.5), which the pool's connections cannot carry, over one of its own; the answer goes where
 * `forwarding` writes it.
 */
export function sendTrailed(
  upstream: TLSSocket,
  { method, path, headers: { 'content-length': _, ...headers }, body, trailers, timeoutMs }: TrailedRequest,
  forwarding: Forwarding,
): void {
  const outgoing = request({
    createConnection: () => upstream,
    method,
    path,
    headers: { ...headers, 'transfer-encoding': 'chunked', connection: 'close' },
  });
  let answer: Readable | undefined;
  const controller = {
    abort: (cause: Error) => outgoing.destroy(cause),
    pause: () => answer?.pause(),
    resume: () => answer?.resume(),
  } as never;
  const failed = (cause: Error) => {
    clearTimeout(late);
    forwarding.onResponseError(controller, cause);
  };
  let late: NodeJS.Timeout | undefined;
  outgoing.on('error', failed);
  outgoing.once('response', response => {
    clearTimeout(late);
    answer = response;
    try {
      forwarding.onResponseStart(controller, response.statusCode ?? 502, response.headers);
    } catch (cause) {
      outgoing.destroy(cause as Error);
    }
    if (outgoing.destroyed) return;
    response.on('data', (chunk: Buffer) => forwarding.onResponseData(controller, chunk));
    response.once('end', () => forwarding.onResponseEnd(controller, response.trailers as Record<string, string>));
    response.once('error', failed);
  });
  const finish = () => {
    const said = trailers();
    if (!said) return;
    outgoing.addTrailers(said);
    outgoing.end();
    late = setTimeout(
      () => outgoing.destroy(Object.assign(new Error('no answer in time'), { code: 'UND_ERR_HEADERS_TIMEOUT' })),
      timeoutMs,
    );
  };
  forwarding.onRequestStart(controller);
  if (!(body instanceof Readable)) {
    outgoing.write(body);
    return finish();
  }
  body.once('error', cause => outgoing.destroy(cause)).once('end', finish);
  body.pipe(outgoing, { end: false });
}
