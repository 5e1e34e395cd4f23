import { Id, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

/** G-SYS-13. */
export const Actor = Type.Object({ kind: Type.Union([Type.Literal('user'), Type.Literal('workload')]), id: Type.String(), act: Type.Optional(Type.String()) });
const Resource = Type.Object({ type: Type.String({ maxLength: 100 }), id: Type.String({ maxLength: 200 }) });
const Outcome = Type.Union([Type.Literal('success'), Type.Literal('denied'), Type.Literal('error')]);
export const Audit = Type.Object({
  audit_id: Id,
  ts: Stamp,
  service: Type.String(),
  env_id: Id,
  action: Type.String(),
  actor: Actor,
  resource: Type.Optional(Resource),
  outcome: Outcome,
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  correlation_id: Type.String(),
});
export type Audit = Static<typeof Audit>;
export const NewAudit = Type.Object({
  env_id: Id,
  action: Type.String({ minLength: 1, maxLength: 200 }),
  /** Accepted and ignored: the service is who the certificate says. */
  service: Type.Optional(Type.String()),
  actor: Type.Optional(Actor),
  resource: Type.Optional(Resource),
  outcome: Type.Optional(Outcome),
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  correlation_id: Type.Optional(Type.String({ maxLength: 128 })),
  occurred_at: Type.Optional(Type.String({ format: 'date-time' })),
});
