import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { EVENT_STREAM_HEADERS, eventFrame, HEARTBEAT_FRAME, type StreamItem } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';

const HEARTBEAT_MS = 15_000;

/**
 * Writes server-sent events until the source ends or the client goes; a slow client slows the source, nothing is buffered beyond the
 * socket.
 */
export async function writeEventStream(
  res: ServerResponse,
  items: AsyncIterable<StreamItem>,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  res.writeHead(200, EVENT_STREAM_HEADERS);
  res.flushHeaders();
  using _heartbeat = clock.every(HEARTBEAT_MS, () => {
    if (!res.writableNeedDrain) res.write(HEARTBEAT_FRAME);
  });
  try {
    for await (const item of items) {
      if (signal.aborted) break;
      if (!res.write(eventFrame(item))) await Promise.race([once(res, 'drain', { signal }), once(res, 'close')]).catch(() => undefined);
    }
  } finally {
    res.end();
  }
}
