import type { Ctx } from '../context.ts';

export const MAX_BODY = 10_485_760;
/** Up to here a body is read whole, so that a call that never arrived can be sent again. */
const WHOLE = 65_536;

export interface Upload {
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal;
  /** Whether the body turned out to be larger than allowed. */
  readonly exceeded: () => boolean;
}

/** The body of a proxied request, at most 10 MB of it. What is too large aborts the call, so that no backend is blamed for it (GWY-099). */
export async function uploadOf(ctx: Ctx, request: Request): Promise<Upload> {
  const length = request.headers.get('content-length');
  const size = length === null ? undefined : Number(length);
  if (size !== undefined && size > MAX_BODY) throw tooLarge(ctx);
  if (!request.body) return { body: null, signal: request.signal, exceeded: () => false };
  if (size !== undefined && size <= WHOLE)
    return { body: new Uint8Array(await request.arrayBuffer()), signal: request.signal, exceeded: () => false };
  const aborted = new AbortController();
  let read = 0;
  const counted = request.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        read += chunk.byteLength;
        if (read <= MAX_BODY) return controller.enqueue(chunk);
        aborted.abort();
        controller.error(new Error('the body is too large'));
      },
    }),
  );
  return { body: counted, signal: AbortSignal.any([request.signal, aborted.signal]), exceeded: () => aborted.signal.aborted };
}

export const tooLarge = (ctx: Ctx) =>
  ctx.problem('body_too_large', { detail: `At most ${MAX_BODY} bytes.`, headers: { connection: 'close' } });
