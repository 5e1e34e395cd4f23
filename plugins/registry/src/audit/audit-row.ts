import { hash } from 'node:crypto';
import type { Audit } from '../../contract/schema/audit.ts';

/** A row as its chain covers it: every member, JSON as the very text that is stored, times in milliseconds. */
export interface AuditRow {
  readonly env_id: string;
  /** From 1, without a gap, per environment. */
  readonly position: number;
  readonly audit_id: string;
  readonly ts: number;
  readonly service: string;
  readonly action: string;
  readonly actor: string;
  readonly resource: string | null;
  readonly outcome: string;
  readonly details: string | null;
  readonly correlation_id: string;
  readonly occurred_at: number | null;
  readonly delivery_key: string | null;
}

/** What stands before the first row of a chain. */
export const GENESIS = '0'.repeat(64);
/** Below every id that is made here. */
export const NO_ID = '00000000-0000-0000-0000-000000000000';

const FIELDS = [
  'env_id',
  'position',
  'audit_id',
  'ts',
  'service',
  'action',
  'actor',
  'resource',
  'outcome',
  'details',
  'correlation_id',
  'occurred_at',
  'delivery_key',
] as const satisfies readonly (keyof AuditRow)[];

/** SHA-256 over the hash before it and every member, each with its length in bytes, so that nothing can move from one to its neighbour. */
export function chainHash(previous: string, row: AuditRow): string {
  let text = previous;
  for (const [index, field] of FIELDS.entries()) {
    if (index > 0) text += ',';
    const value = row[field];
    if (value === null) text += '-';
    else {
      const part = typeof value === 'number' ? String(value) : value;
      text += `${Buffer.byteLength(part)}:${part}`;
    }
  }
  return hash('sha256', text, 'hex');
}

/** The row as the wire shows it. */
export function wireOf(row: AuditRow): Audit {
  return {
    audit_id: row.audit_id,
    ts: new Date(row.ts).toISOString(),
    service: row.service,
    env_id: row.env_id,
    action: row.action,
    actor: JSON.parse(row.actor) as Audit['actor'],
    outcome: row.outcome as Audit['outcome'],
    correlation_id: row.correlation_id,
    ...(row.resource === null ? {} : { resource: JSON.parse(row.resource) as NonNullable<Audit['resource']> }),
    ...(row.details === null ? {} : { details: JSON.parse(row.details) as NonNullable<Audit['details']> }),
    ...(row.occurred_at === null ? {} : { occurred_at: new Date(row.occurred_at).toISOString() }),
  };
}
