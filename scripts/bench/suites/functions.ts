import { httpRows } from '../functions/http-cost.ts';
import { memoryRows } from '../functions/idle-memory.ts';
import { meteringRows } from '../functions/metering-cost.ts';
import { poolRows } from '../functions/pool-rates.ts';
import type { Row } from '../row.ts';

/**
 * Functions: what metering costs, how fast small modules run, beside the peer and over HTTP, and what a guest in an endless loop does to
 * others.
 */
export async function* functionRows(): AsyncGenerator<Row> {
  yield* meteringRows();
  yield* poolRows();
  yield* httpRows();
  yield* memoryRows();
}
