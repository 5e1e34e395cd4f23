import { del, get, Id, raw, Type } from '@platform/sdk/contract';
import { OwnAudit } from '../schema/own-audit.ts';
import { nothingHere } from '../idempotency.ts';

/** The longest request of a directory. */
export const SCIM_BYTES = 1_048_576;

/** People as directories and administrators keep them, and what this service recorded (G-AUTH-04, G-AUTH-05). */
export const directoryRoutes = {
  scim: raw('/scim/v2/{*rest}', {
    summary: 'Users for directories: SCIM 2.0 (RFC 7643, RFC 7644)',
    idempotency: 'kernel',
    gate: { any: ['scim:read', 'scim:write'] },
    env: 'own',
    limit: SCIM_BYTES,
    errors: 'scim',
    problems: ['last_administrator', 'own_account', 'realm_not_found', 'weak_password', 'busy'],
    emits: ['platform:auth:user:created', 'platform:auth:user:updated', 'platform:auth:user:deleted', 'platform:auth:session:revoked'],
  }),
  scimRoot: raw('/scim/v2', {
    summary: 'Nothing: a resource is named below it',
    idempotency: nothingHere,
    gate: { public: 'Nothing is here, for anybody' },
    errors: 'scim',
    hidden: true,
  }),
  deleteUser: del('/v1/admin/users/{user_id}', {
    params: { user_id: Id },
    summary: 'Remove an account and everything that hangs on it',
    gate: 'auth:users:admin',
    env: 'own',
    problems: ['user_not_found', 'own_account', 'last_administrator'],
    emits: ['platform:auth:user:deleted', 'platform:auth:session:revoked'],
  }),
  listOwnAudit: get('/v1/admin/audit', {
    summary: 'What this service recorded in the last 30 days; the registry keeps the canonical trail',
    gate: { any: ['auth:users:read', 'auth:users:admin'] },
    env: 'own',
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
      items: Type.Array(OwnAudit),
      next: Type.Union([Type.Object({ after_ts: Type.String(), after_id: Id }), Type.Null()]),
    }),
    problems: ['keyset_incomplete', 'invalid_cursor'],
  }),
};
