import { isProblem } from '@platform/sdk';
import { AUDIT_EVENT } from './audit-event.ts';
import type { Deliver, DeliveryResult, OutboxRow } from './delivery.ts';

/** The two services an outbox row can go to. */
export interface DeliveryTargets {
  /** `POST /v1/produce/batch` of the event bus, as the producing service. */
  produceBatch(service: string, events: readonly object[], signal: AbortSignal): Promise<{ results: readonly ({ message_id: string } | { error: string; status: number; detail?: string })[] }>;
  /** `POST /v1/audit` of the registry; the row's id makes a repeat harmless. */
  recordAudit(service: string, event: object, id: string, signal: AbortSignal): Promise<void>;
}

/** Sends a batch in its order: runs of events to the bus, audit events to the registry (KRN-009, KRN-011). */
export function deliverTo(targets: DeliveryTargets): Deliver {
  return async (rows, { service, signal }) => {
    const results: DeliveryResult[] = [];
    for (let start = 0; start < rows.length; ) {
      const audit = (rows[start] as OutboxRow).event_type === AUDIT_EVENT;
      let end = start + 1;
      while (!audit && end < rows.length && (rows[end] as OutboxRow).event_type !== AUDIT_EVENT) end += 1;
      const run = rows.slice(start, end);
      results.push(...(await (audit ? recordAudit(targets, service, run, signal) : produce(targets, service, run, signal))));
      start = end;
    }
    return results;
  };
}

async function produce(targets: DeliveryTargets, service: string, rows: readonly OutboxRow[], signal: AbortSignal): Promise<DeliveryResult[]> {
  try {
    const { results } = await targets.produceBatch(service, rows.map(toEvent), signal);
    return rows.map((_, index) => {
      const result = results[index];
      if (result && 'message_id' in result) return { ok: true };
      return { ok: false, status: result?.status ?? null, error: result ? (result.detail ?? result.error) : 'the answer is shorter than the batch' };
    });
  } catch (error) {
    const failure = failureOf(error);
    return rows.map(() => failure);
  }
}

async function recordAudit(targets: DeliveryTargets, service: string, rows: readonly OutboxRow[], signal: AbortSignal): Promise<DeliveryResult[]> {
  const [row] = rows as [OutboxRow];
  try {
    await targets.recordAudit(service, { env_id: row.env_id, correlation_id: row.correlation_id, ...row.payload }, row.id, signal);
    return [{ ok: true }];
  } catch (error) {
    return [failureOf(error)];
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
  if (!isProblem(error)) return { ok: false, status: null, error: error instanceof Error ? error.message : String(error) };
  const retryAfter = Number(error.headers['retry-after']);
  return { ok: false, status: error.status, error: `${error.code}: ${error.message}`, ...(Number.isFinite(retryAfter) ? { retryAfterS: retryAfter } : {}) };
}
