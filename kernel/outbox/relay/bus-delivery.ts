import { isProblem } from '@platform/sdk';
import { AUDIT_EVENT } from '../audit-event.ts';
import { type Deliver, type DeliveryResult, type OutboxRow, unanswered } from './delivery.ts';

/** The two services an outbox row can go to. */
export interface DeliveryTargets {
  /** `POST /v1/produce/batch` of the event bus, as the producing service. */
  produceBatch(
    service: string,
    events: readonly object[],
    signal: AbortSignal,
  ): Promise<{ results: readonly ({ message_id: string } | { error: string; status: number; detail?: string })[] }>;
  /** `POST /v1/audit/batch` of the registry: all are stored when it answers; each one's key makes a repeat harmless. */
  recordAudits(service: string, events: readonly object[], signal: AbortSignal): Promise<void>;
}

/** Sends a batch in its order: runs of events to the bus, runs of audit events to the registry (KRN-009, KRN-011). */
export function deliverTo(targets: DeliveryTargets): Deliver {
  return async (rows, { service, signal }) => {
    const results: DeliveryResult[] = [];
    for (let start = 0; start < rows.length; ) {
      const audit = (rows[start] as OutboxRow).event_type === AUDIT_EVENT;
      let end = start + 1;
      while (end < rows.length && ((rows[end] as OutboxRow).event_type === AUDIT_EVENT) === audit) end += 1;
      const run = rows.slice(start, end);
      results.push(...(await (audit ? recordAudits(targets, service, run, signal) : produce(targets, service, run, signal))));
      start = end;
    }
    return results;
  };
}

async function produce(
  targets: DeliveryTargets,
  service: string,
  rows: readonly OutboxRow[],
  signal: AbortSignal,
): Promise<DeliveryResult[]> {
  try {
    const { results } = await targets.produceBatch(service, rows.map(toEvent), signal);
    return rows.map((_, index) => {
      const result = results[index];
      if (result && 'message_id' in result) return { ok: true };
      return {
        ok: false,
        status: result?.status ?? null,
        error: result ? (result.detail ?? result.error) : 'the answer is shorter than the batch',
      };
    });
  } catch (error) {
    const failure = failureOf(error);
    return rows.map(() => failure);
  }
}

async function recordAudits(
  targets: DeliveryTargets,
  service: string,
  rows: readonly OutboxRow[],
  signal: AbortSignal,
): Promise<DeliveryResult[]> {
  try {
    await targets.recordAudits(
      service,
      rows.map(row => ({ env_id: row.env_id, correlation_id: row.correlation_id, ...row.payload, idempotency_key: row.id })),
      signal,
    );
    return rows.map(() => ({ ok: true }));
  } catch (error) {
    const failure = failureOf(error);
    if (
      rows.length === 1 ||
      failure.ok ||
      failure.status === null ||
      failure.status < 400 ||
      failure.status >= 500 ||
      failure.status === 429
    )
      return rows.map(() => failure);
    // One of them is refused: each for itself, so that it is refused alone.
    const results: DeliveryResult[] = [];
    for (const row of rows) results.push(...(await recordAudits(targets, service, [row], signal)));
    return results;
  }
}

function toEvent(row: OutboxRow): object {
  return {
    event_type: row.event_type,
    env_id: row.env_id,
    stream_family: row.stream_family,
    payload: row.payload,
    idempotency_key: row.idempotency_key,
    correlation_id: row.correlation_id,
    created_at: row.created_at,
    ...(row.publisher_id_token ? { publisher_id_token: row.publisher_id_token } : {}),
  };
}

function failureOf(error: unknown): DeliveryResult {
  if (!isProblem(error)) return unanswered(error instanceof Error ? error.message : String(error));
  const retryAfter = Number(error.headers['retry-after']);
  return {
    ok: false,
    status: error.status,
    error: `${error.code}: ${error.message}`,
    ...(Number.isFinite(retryAfter) ? { retryAfterS: retryAfter } : {}),
  };
}
