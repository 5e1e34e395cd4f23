import { get, post, Id, Type } from '@platform/sdk/contract';
import { Audit, NewAudit } from '../schema/audit.ts';

/** The canonical audit trail (G-SYS-13). */
export const auditRoutes = {
  listAudit: get('/v1/audit', {
    summary: 'The audit trail',
    gate: 'audit:read',
    query: {
      service: Type.Optional(Type.String()),
      action: Type.Optional(Type.String()),
      env_id: Type.Optional(Id),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
      after_ts: Type.Optional(Type.String()),
      after_id: Type.Optional(Id),
    },
    returns: Type.Object({ items: Type.Array(Audit), next: Type.Union([Type.Object({ after_ts: Type.String(), after_id: Id }), Type.Null()]) }),
    problems: ['keyset_incomplete'],
  }),
  recordAudit: post('/v1/audit', {
    summary: 'Store one audit event',
    gate: 'audit:write',
    body: NewAudit,
    returns: Type.Object({ audit_id: Id }),
    status: 201,
    emits: ['platform:sys:audit:recorded'],
  }),
};
