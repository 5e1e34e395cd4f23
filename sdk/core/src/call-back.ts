import type { Context } from './context/context.ts';
import type { AnyContract } from './contract/contract.ts';

/** A post to a service that is known only at run time, at the path that it gave. */
export interface CallBack {
  readonly service: string;
  readonly path: string;
  readonly body: unknown;
  /** The environment it is about. */
  readonly envId: string;
  readonly correlationId: string;
  /** How long the whole call may last on the clock. */
  readonly timeoutMs: number;
  /** The longest answer that is read. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** `bytes` is undefined where the answer is longer than asked for. */
export interface CalledBack {
  readonly status: number;
  readonly bytes: Uint8Array | undefined;
}

/**
 * Posts JSON as this service to another one's internal path, over the platform's mutual TLS (capability `backends`); whether it may is
 * the other service's to say, by the `callers` of its action. One try: whoever asks keeps what is to be tried again. Throws when no
 * answer came whole.
 */
export async function callBack({ backends, every }: Pick<Context<AnyContract>, 'backends' | 'every'>, call: CallBack): Promise<CalledBack> {
  const ending = new AbortController();
  const end = () => ending.abort(call.signal.reason);
  using _deadline = every(call.timeoutMs, () => ending.abort(new DOMException(`nothing came within ${call.timeoutMs} ms`, 'TimeoutError')));
  call.signal.throwIfAborted();
  call.signal.addEventListener('abort', end, { once: true });
  try {
    const answer = await backends.fetch(call.service, call.path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-platform-target-env-id': call.envId,
        'x-platform-correlation-id': call.correlationId,
      },
      body: JSON.stringify(call.body),
      timeoutMs: call.timeoutMs,
      signal: ending.signal,
      party: call.envId,
    });
    return { status: answer.status, bytes: await boundedBytes(answer, call.maxBytes) };
  } finally {
    call.signal.removeEventListener('abort', end);
  }
}

/** The body of an answer; undefined, with the rest unread, when it is longer than `max`. */
export async function boundedBytes(answer: Response, max: number): Promise<Uint8Array | undefined> {
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
