import { backoff } from '../../base/backoff.ts';

/** An event on its way to the bus. */
export interface OutboxRow {
  readonly id: string;
  /** Always {@link id}: a row that is sent again is the same event. */
  readonly idempotency_key: string;
  readonly env_id: string;
  readonly event_type: string;
  readonly stream_family: string;
  readonly payload: object;
  readonly correlation_id: string;
  readonly publisher_subject: string;
  readonly publisher_id_token: string | null;
  readonly created_at: string;
  readonly attempts: number;
  readonly refusals: number;
}

/** What the bus said to one row; `status` is null when nothing came back. */
export type DeliveryResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly status: number | null; readonly retryAfterS?: number; readonly error: string };

/** Sends rows of one environment, in order. Answers one result per row; a throw counts for all of them as no answer. */
export type Deliver = (
  batch: readonly OutboxRow[],
  call: { readonly service: string; readonly signal: AbortSignal },
) => Promise<readonly DeliveryResult[]>;

/** What becomes of a row, as columns of the outbox. */
export interface Outcome {
  readonly id: string;
  readonly relayed: boolean;
  readonly parked: boolean;
  readonly refused: boolean;
  readonly next_retry_at: string | null;
  readonly last_error: string | null;
}

const PARK_AFTER = 10;
const PACE = { baseMs: 2_000, capMs: 60_000 };
const LONGEST_RETRY_AFTER_S = 3_600;

/**
 * The rules of G-K-12: busy → when the bus says, else 2 s; no answer or a fault → 2 s doubling to 60 s, for ever; refused → the same,
 * parked at the tenth.
 */
export function outcomeOf(row: Pick<OutboxRow, 'id' | 'attempts' | 'refusals'>, result: DeliveryResult, now: Date): Outcome {
  if (result.ok) return { id: row.id, relayed: true, parked: false, refused: false, next_retry_at: null, last_error: null };
  const { status, retryAfterS, error } = result;
  const busy = status === 429 || status === 503;
  const refused = status !== null && status >= 400 && status < 500 && !busy;
  const parked = refused && row.refusals + 1 >= PARK_AFTER;
  const asked = retryAfterS !== undefined && retryAfterS >= 0 ? Math.min(retryAfterS, LONGEST_RETRY_AFTER_S) * 1_000 : PACE.baseMs;
  const waitMs = busy ? asked : backoff(refused ? row.refusals : row.attempts, PACE);
  return {
    id: row.id,
    relayed: false,
    parked,
    refused,
    next_retry_at: parked ? null : new Date(now.getTime() + waitMs).toISOString(),
    last_error: `${status ?? 'no answer'}: ${error}`.slice(0, 500),
  };
}

/** Nothing is known of what became of the row. */
export const unanswered = (error: string): DeliveryResult => ({ ok: false, status: null, error });
