import type { InstanceRow } from '@platform/sdk';

/** Routers give nothing to an instance that was not heard of for so long (ING-006). */
const IN_TURN_MS = 30_000;
/** A machine whose own sample has run out is taken for gone, and so is what it said of its instances. */
const GONE_MS = 120_000;

const age = ({ last_health_at: at }: Pick<InstanceRow, 'last_health_at'>, now: Date): number =>
  at === null ? Number.POSITIVE_INFINITY : now.getTime() - Date.parse(at);

/** Whether routers send it anything: a machine that died or is cut off leaves its rows behind as they were. */
export const isInTurn = (row: Pick<InstanceRow, 'status' | 'last_health_at'>, now: Date): boolean =>
  row.status === 'Active' && age(row, now) < IN_TURN_MS;

/** Whether it was Active once, on a machine that nobody has heard of since. */
export const isForsaken = (row: Pick<InstanceRow, 'status' | 'last_health_at'>, now: Date): boolean =>
  row.status === 'Active' && row.last_health_at !== null && age(row, now) >= GONE_MS;
