import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ctx } from '../context.ts';
import { notFound } from './plain-listener.ts';

const CHALLENGE = /^\/\.well-known\/acme-challenge\/[A-Za-z0-9_-]{1,128}$/;
const [MOST_BYTES, ANSWER_MS] = [4_096, 5_000];

/**
 * Port 80: what an upstream authority fetches to see that a name is ours, and nothing else (ING-001, ING-011, ING-012). No rule of the edge
 * applies to it and no context goes along (ING-013).
 */
export async function challengeDoor(ctx: Pick<Ctx, 'backends' | 'log'>, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { method = '', url = '' } = req;
  if ((method !== 'GET' && method !== 'HEAD') || !CHALLENGE.test(url)) return notFound(res);
  try {
    const answer = await ctx.backends.fetch('acme', url, { method: 'GET', headers: {}, timeoutMs: ANSWER_MS });
    const body = Buffer.from(await answer.arrayBuffer()).subarray(0, MOST_BYTES);
    if (answer.status !== 200) return notFound(res);
    res.writeHead(200, {
      'content-type': 'text/plain',
      'content-length': String(body.length),
      'cache-control': 'no-store',
      connection: 'close',
    });
    res.end(method === 'HEAD' ? undefined : body);
  } catch (error) {
    ctx.log.warn({ err: error }, 'an ACME challenge could not be answered: the authority is away');
    if (!res.headersSent) res.writeHead(503, { 'content-length': '0', 'retry-after': '3', connection: 'close' }).end();
  }
}
