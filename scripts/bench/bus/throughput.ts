import { loaded } from '../load/loaded.ts';
import { ENV, EVENT_TYPE, PAYLOAD } from './bench-event.ts';
import type { Size } from '../row.ts';
import type { BusRig } from './bus-rig.ts';

const MS: Readonly<Record<Size, number>> = { short: 3_000, long: 8_000 };
const WARM_UP_MS: Readonly<Record<Size, number>> = { short: 1_500, long: 4_000 };
export const BATCH = 100;

const event = (family: string) => ({ event_type: EVENT_TYPE, env_id: ENV, stream_family: family, payload: PAYLOAD });

export interface Produced {
  readonly perSecond: number;
  readonly p99Ms: number;
}

/** Single events, one a request, so many of them under way on each of so many kept connections. */
export function singles(rig: BusRig, size: Size, concurrency: number, inFlight = 1): Promise<Produced> {
  return load(rig, size, '/v1/produce', event('singles'), concurrency, inFlight);
}

/** Events per second in batches of {@link BATCH}, so many of them under way on each connection. */
export async function batches(rig: BusRig, size: Size, concurrency: number, inFlight = 1): Promise<Produced> {
  const { perSecond, p99Ms } = await load(
    rig,
    size,
    '/v1/produce/batch',
    { events: Array.from({ length: BATCH }, () => event('batches')) },
    concurrency,
    inFlight,
  );
  return { perSecond: perSecond * BATCH, p99Ms };
}

function load({ client }: BusRig, size: Size, path: string, body: object, concurrency: number, inFlight = 1): Promise<Produced> {
  const { credentials, port, hostname, authorization } = client.address;
  return loaded({
    ...credentials,
    port,
    host: hostname,
    path,
    authorization,
    body: JSON.stringify(body),
    concurrency,
    inFlight,
    warmUpMs: WARM_UP_MS[size],
    ms: MS[size],
  });
}

/**
 * Events per second that workers of one group pull in batches and acknowledge, until the stream of {@link batches} is empty or time is up.
 */
export async function consumed({ client }: BusRig, size: Size, workers: number): Promise<{ perSecond: number; events: number }> {
  const pool = client.pool(workers);
  const group = { env_id: ENV, stream_family: 'batches', consumer_group: 'bench-pull' };
  let events = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      while (performance.now() - start < MS[size]) {
        const { entries } = await client.post<{ entries: { message_id: string }[] }>(pool, '/v1/consume', {
          ...group,
          count: BATCH,
          consumer: `w${worker}`,
        });
        if (entries.length === 0) return;
        await client.post(pool, '/v1/ack', { ...group, message_ids: entries.map(({ message_id }) => message_id) });
        events += entries.length;
      }
    }),
  );
  return { perSecond: (events * 1_000) / (performance.now() - start), events };
}
