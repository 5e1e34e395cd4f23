import { Id, Type } from '@platform/sdk/contract';

/** An entry of the trail, in the registry's own shape (G-SYS-13). */
export const OwnAudit = Type.Object({
  audit_id: Id,
  ts: Type.String(),
  service: Type.Literal('auth'),
  env_id: Id,
  action: Type.String(),
  actor: Type.Object({
    kind: Type.Union([Type.Literal('user'), Type.Literal('workload')]),
    id: Type.String(),
    act: Type.Optional(Type.String()),
  }),
  resource: Type.Optional(Type.Object({ type: Type.String(), id: Type.String() })),
  outcome: Type.Union([Type.Literal('success'), Type.Literal('denied'), Type.Literal('error')]),
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  correlation_id: Type.String(),
  occurred_at: Type.Optional(Type.String()),
});
