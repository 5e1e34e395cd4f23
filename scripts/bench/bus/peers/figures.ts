export const BATCH = 100;
export const PRODUCERS = 4;
export const BATCHES_AHEAD = 4;
export const IN_FLIGHT = 64;
/** For who is quicker with more of them under way. */
export const MANY_IN_FLIGHT = 256;
export const BODY = Buffer.from(JSON.stringify({ filler: 'x'.repeat(240) }));
const WARM_UP_MS = 2_000;
const MS = 6_000;

/** Durable messages a second, by the peer's own client. */
export interface PeerFigures {
  /** Single messages, {@link IN_FLIGHT} unconfirmed at a time. */
  readonly inFlight: number;
  /** The same with {@link MANY_IN_FLIGHT}, where it was asked for. */
  readonly manyInFlight?: number;
  /** In batches of {@link BATCH}, {@link PRODUCERS} at a time; where the peer has batches. */
  readonly batches?: number;
  /** The same with {@link BATCHES_AHEAD} of each producer under way, where it was asked for. */
  readonly batchesAhead?: number;
}

/** How many a second `send` gets through when `atOnce` of it run; each call counts `each`. */
export async function perSecond(atOnce: number, each: number, send: (worker: number) => Promise<unknown>): Promise<number> {
  const start = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async (_, worker) => {
      while (performance.now() - start < WARM_UP_MS + MS) {
        await send(worker);
        if (performance.now() - start > WARM_UP_MS) done += each;
      }
    }),
  );
  return (done * 1_000) / MS;
}
