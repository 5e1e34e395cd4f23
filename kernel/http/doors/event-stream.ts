import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../base/clock.ts';

const HEARTBEAT_MS = 15_000;

/**
 * Writes server-sent events until the source ends or the client goes; a slow client slows the source, nothing is buffered beyond the
 * socket.
 */
export async function writeEventStream(
  res: ServerResponse,
  items: AsyncIterable<{ id?: string; event?: string; data: unknown }>,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
  res.flushHeaders();
  using _heartbeat = clock.every(HEARTBEAT_MS, () => {
    if (!res.writableNeedDrain) res.write(': heartbeat\n\n');
  });
  try {
    for await (const { id, event, data } of items) {
      if (signal.aborted) break;
      const frame = `${id === undefined ? '' : `id: ${id}\n`}${
        event === undefined ? '' : `event: ${event}\n`
      }data: ${JSON.stringify(data)}\n\n`;
      if (!res.write(frame)) await Promise.race([once(res, 'drain', { signal }), once(res, 'close')]).catch(() => undefined);
    }
  } finally {
    res.end();
  }
}
