import type { Deliver } from './delivery.ts';
import type { RelayClock } from './relay-clock.ts';

export interface RelayLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RelayOptions {
  readonly deliver: Deliver;
  readonly log: RelayLog;
  readonly clock?: RelayClock;
  /** After this a call counts as unanswered, though it may have arrived: the idempotency key makes the repeat harmless. */
  readonly callTimeoutMs?: number;
}
