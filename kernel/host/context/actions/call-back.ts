import type { Backends, CallBack, CalledBack } from '@platform/sdk';
import type { Clock } from '../../../base/clock.ts';

/** Posts to the internal path of a service that is known only at run time: one try, on the clock, with a bound on the answer. */
export async function callBack({ backends, clock }: { backends: Backends; clock: Clock }, call: CallBack): Promise<CalledBack> {
  const ending = new AbortController();
  const end = () => ending.abort(call.signal?.reason);
  using _deadline = clock.every(call.timeoutMs, () =>
    ending.abort(new DOMException(`nothing came within ${call.timeoutMs} ms`, 'TimeoutError')),
  );
  call.signal?.throwIfAborted();
  call.signal?.addEventListener('abort', end, { once: true });
  try {
    const answer = await backends.fetch(call.service, call.path, {
      method: 'POST',
      headers: {
        ...call.headers,
        'content-type': 'application/json',
        accept: 'application/json',
        ...(call.envId === undefined ? {} : { 'x-platform-target-env-id': call.envId }),
        ...(call.correlationId === undefined ? {} : { 'x-platform-correlation-id': call.correlationId }),
        ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
      },
      body: call.body instanceof Uint8Array ? (call.body as BodyInit) : JSON.stringify(call.body),
      timeoutMs: call.timeoutMs,
      signal: ending.signal,
      ...(call.envId === undefined ? {} : { party: call.envId }),
    });
    return { status: answer.status, bytes: await boundedBytes(answer, call.maxBytes) };
  } finally {
    call.signal?.removeEventListener('abort', end);
  }
}

/** The body of an answer; undefined, with the rest unread, when it is longer than `max`. */
async function boundedBytes(answer: Response, max: number): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    size += piece.length;
    // Leaving the loop ends the stream.
    if (size > max) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
