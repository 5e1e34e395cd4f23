import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import { auditId } from '../../../plugins/registry/src/audit/audit-id.ts';
import { type AuditRow, chainHash, GENESIS } from '../../../plugins/registry/src/audit/audit-row.ts';

const ENVS = 200;
const SERVICES = 12;
const DAYS = 300;

export const envId = (index: number) => `018f0000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
export const serviceName = (index: number) => `service${index}`;

/**
 * Rows of a platform that is in use: half of all in one environment, actions that belong to a service, one that all share, one that was
 * done long ago.
 */
export async function loadTrail(sql: postgres.Sql, count: number): Promise<void> {
  const heads = new Map<string, { position: number; audit_id: string; ts: number; hash: string }>();
  const start = Date.now() - DAYS * 86_400_000;
  const line = (index: number): string => {
    const spread = (index * 2_654_435_761) >>> 0;
    const env_id = envId(spread % 2 === 0 ? 0 : (spread >>> 8) % ENVS);
    const service = (spread >>> 16) % SERVICES;
    const kind = (spread >>> 4) % 10;
    const action = index < 20 ? 'once.upon.a.time' : kind === 0 ? 'shared.read' : `service${service}.action${kind}`;
    const ts = start + Math.floor((index * DAYS * 86_400_000) / count);
    const head = heads.get(env_id);
    const row: AuditRow = {
      env_id,
      position: (head?.position ?? 0) + 1,
      audit_id: auditId(ts, index & 0x3ffffff),
      ts,
      service: serviceName(service),
      action,
      actor: `{"kind":"user","id":"user-${spread % 5_000}"}`,
      resource: `{"type":"run","id":"run-${index}"}`,
      outcome: 'success',
      details: '{"from":"console","count":3}',
      correlation_id: `click-${Math.floor(index / 4)}`,
      occurred_at: null,
      delivery_key: null,
    };
    const hash = chainHash(head?.hash ?? GENESIS, row);
    heads.set(env_id, { position: row.position, audit_id: row.audit_id, ts, hash });
    return `${row.audit_id}\t${row.position}\t${new Date(ts).toISOString()}\t${row.service}\t${env_id}\t${row.action}\t${row.actor}\t${row.resource}\t${row.outcome}\t${row.details}\t${row.correlation_id}\t\\N\t\\N\t\\\\x${hash}\n`;
  };
  const lines = function* () {
    for (let index = 0; index < count; ) {
      let chunk = '';
      for (const end = Math.min(index + 1_000, count); index < end; index++) chunk += line(index);
      yield chunk;
    }
  };
  await sql`set statement_timeout = 0`;
  await sql`set maintenance_work_mem = '512MB'`;
  const indexes = await sql<
    { name: string; text: string }[]
  >`select indexname as name, indexdef as text from pg_indexes where tablename = 'audit' and schemaname = current_schema()
    and indexname <> 'audit_pkey'`;
  for (const { name } of indexes) await sql.unsafe(`drop index ${name}`);
  await sql`alter table audit disable trigger user`;
  await pipeline(
    Readable.from(lines()),
    await sql`copy audit (audit_id, position, ts, service, env_id, action, actor, resource, outcome, details, correlation_id, occurred_at,
      delivery_key, hash) from stdin`.writable(),
  );
  for (const { text } of indexes) await sql.unsafe(text);
  await sql`alter table audit enable trigger user`;
  const rows = [...heads].map(([env_id, head]) => ({
    env_id,
    position: head.position,
    audit_id: head.audit_id,
    ts: new Date(head.ts),
    hash: Buffer.from(head.hash, 'hex'),
  }));
  await sql`insert into audit_heads ${sql(rows)} on conflict (env_id) do update
    set position = excluded.position, audit_id = excluded.audit_id, ts = excluded.ts, hash = excluded.hash`;
  await sql`vacuum analyze audit`;
}
