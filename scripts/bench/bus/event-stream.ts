import type { Pool } from 'undici';
import type { BusClient } from './bus-client.ts';
import { ENV } from './bench-event.ts';

/** A client of server-sent events, open from the answer's head on: hears every event's payload once. */
export async function eventStream(
  bus: BusClient,
  pool: Pool,
  family: string,
  heard: (payload: Record<string, unknown>) => void,
): Promise<AsyncDisposable> {
  const ended = new AbortController();
  const { statusCode, body } = await pool.request({
    method: 'GET',
    path: `/v1/consume/sse?env_id=${ENV}&stream_family=${family}&consumer_group=bench-sse`,
    headers: { ...bus.headers, accept: 'text/event-stream' },
    signal: ended.signal,
  });
  if (statusCode !== 200) throw new Error(`the event stream answered ${statusCode}: ${await body.text()}`);
  const reading = (async () => {
    let rest = '';
    body.setEncoding('utf8');
    for await (const chunk of body) {
      rest += chunk as string;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(rest.slice(0, end))?.[1];
        rest = rest.slice(end + 2);
        if (data) heard((JSON.parse(data) as { payload: Record<string, unknown> }).payload);
      }
    }
  })().catch(() => undefined);
  return {
    [Symbol.asyncDispose]: async () => {
      ended.abort();
      await reading;
    },
  };
}
