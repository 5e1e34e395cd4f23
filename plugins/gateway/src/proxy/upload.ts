import { PROXY_BYTES } from '../../contract/routes/delegation-routes.ts';
import type { Ctx } from '../context.ts';

/** Up to here a body is read whole, so that a call that never arrived can be sent again. */
const WHOLE = 65_536;

/** The body of a request that is passed on. What is too large from the start is refused before a backend hears of it (GWY-099). */
export async function uploadOf(ctx: Ctx, request: Request): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null> {
  const length = request.headers.get('content-length');
  if (Number(length ?? 0) > PROXY_BYTES)
    throw ctx.problem('body_too_large', { detail: `At most ${PROXY_BYTES} bytes.`, headers: { connection: 'close' } });
  return length !== null && Number(length) <= WHOLE && request.body ? new Uint8Array(await request.arrayBuffer()) : request.body;
}
