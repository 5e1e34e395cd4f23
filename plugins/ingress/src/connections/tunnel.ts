import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Ctx } from '../context.ts';
import { BulkRead } from './bulk-read.ts';

/** A piped connection on which nothing moves for so long, in either direction, is over. */
const SILENT_MS = 900_000;

/**
 * Pipes a connection as it is to the listener of a backend, which ends TLS itself (ING-003): no byte is read or changed, each side goes no
 * faster than the other takes, either may end its half first. Resolves when both have ended.
 */
export async function tunnel(ctx: Pick<Ctx, 'backends' | 'log'>, service: string, client: Socket): Promise<void> {
  const answers = new BulkRead(client);
  const upstream = await ctx.backends.dial(service, answers.onread).catch(error => {
    ctx.log.debug({ service, err: error }, 'no backend to pipe a connection to');
    return undefined;
  });
  if (!upstream) return void client.destroy();
  if (client.destroyed) return void upstream.destroy();
  upstream.setNoDelay(true);
  // One timer for both: whatever moves, moves through the client's socket.
  client.setTimeout(SILENT_MS, () => client.destroy());
  const ended = await Promise.allSettled([pipeline(client, upstream), answers.until(upstream)]);
  if (ended.some(({ status }) => status === 'rejected')) for (const socket of [client, upstream]) socket.destroy();
}
