import { get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { Stamp } from '../schema/field.ts';
import { Audit, AuditKeyEntry, AuditReceipt, NewAudit, Verification } from '../schema/audit.ts';

/** The canonical audit trail (G-SYS-13). */
export const auditRoutes = {
  listAudit: get('/v1/audit', {
    summary: 'The audit trail',
    gate: 'audit:read',
    query: {
      service: Type.Optional(Type.String()),
      action: Type.Optional(Type.String()),
      env_id: Type.Optional(Id),
      correlation_id: Type.Optional(Type.String({ maxLength: 128 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
      after_ts: Type.Optional(Type.String()),
      after_id: Type.Optional(Id),
    },
    returns: Type.Object({
      items: Type.Array(Audit),
      next: Type.Union([Type.Object({ after_ts: Type.String(), after_id: Id }), Type.Null()]),
    }),
    problems: ['audit_env_required', 'keyset_incomplete', 'not_org_member', 'identity_unavailable'],
  }),
  recordAudit: post('/v1/audit', {
    summary: 'Store one audit event',
    gate: 'audit:write',
    idempotency: 'own',
    body: NewAudit,
    returns: Type.Object({ audit_id: Id }),
    status: 201,
    limit: 65_536,
    problems: ['audit_overloaded', 'audit_unstorable'],
    emits: ['platform:sys:audit:recorded'],
  }),
  recordAudits: post('/v1/audit/batch', {
    summary: 'Store several audit events',
    gate: 'audit:write',
    idempotency: 'own',
    body: Type.Object({
      events: Type.Array(Type.Object({ ...NewAudit.properties, idempotency_key: Type.Optional(Id) }), { minItems: 1, maxItems: 500 }),
    }),
    returns: Type.Object({ audit_ids: Type.Array(Id) }),
    status: 201,
    problems: ['audit_overloaded', 'audit_unstorable'],
    emits: ['platform:sys:audit:recorded'],
    hidden: true,
  }),
  verifyAudit: get('/v1/audit/verification', {
    summary: 'Prove that the trail of an environment was not changed',
    gate: 'audit:read',
    query: {
      env_id: Type.Optional(Id),
      cursor: PageQuery.cursor,
      since: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}\\.[0-9a-f]{64}$' })),
    },
    returns: Verification,
    problems: ['audit_env_required', 'invalid_cursor', 'audit_key_unusable'],
    hidden: true,
  }),
  listAuditChains: get('/v1/audit/chains', {
    summary: 'Environments that have an audit trail',
    gate: 'audit:read',
    query: { cursor: PageQuery.cursor },
    returns: Page(Type.Object({ env_id: Id, position: Type.Integer() })),
    problems: ['platform_admin_required'],
    hidden: true,
  }),
  auditReceipt: get('/v1/audit/receipt', {
    summary: 'Where every chain stands, signed, to be kept elsewhere',
    gate: 'audit:read',
    query: { cursor: PageQuery.cursor },
    returns: AuditReceipt,
    problems: ['platform_admin_required', 'audit_key_unusable'],
    hidden: true,
  }),
  auditKey: get('/v1/audit/key', {
    summary: 'The public key that signs the trail, and those before it',
    gate: 'audit:read',
    returns: Type.Object({
      algorithm: Type.Literal('ML-DSA-65'),
      key_id: Type.String(),
      public_key: Type.String(),
      keys: Type.Array(AuditKeyEntry),
      /** Since when the answering machine takes note of what is signed. */
      witness_since: Stamp,
    }),
    problems: ['audit_key_unusable'],
    hidden: true,
  }),
  auditKeyRows: get('/v1/audit/keys', {
    summary: 'Keys of the audit trail and their states',
    gate: 'sys:sys:admin',
    returns: Page(AuditKeyEntry),
    problems: ['audit_key_unusable'],
    hidden: true,
  }),
  rotateAuditKey: post('/v1/audit/keys/{key_id}/rotate', {
    params: { key_id: Type.String({ maxLength: 128 }) },
    summary: 'Bring the next key of the audit trail into force',
    gate: 'sys:sys:admin',
    returns: Page(AuditKeyEntry),
    problems: ['audit_key_unusable', 'audit_key_next_missing', 'audit_key_rotating'],
    emits: ['platform:sys:audit:recorded'],
    hidden: true,
  }),
};
