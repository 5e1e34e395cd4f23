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
  /** When it happened, where the recorder said so; `ts` is when it was recorded. */
  occurred_at: Type.Optional(Stamp),
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
export type NewAudit = Static<typeof NewAudit>;

/** How far one step of a verification came, and what it found. */
export const Verification = Type.Object({
  env_id: Id,
  status: Type.Union([Type.Literal('intact'), Type.Literal('unfinished'), Type.Literal('broken')]),
  /** Rows and signed anchors of this step. */
  rows: Type.Integer(),
  anchors: Type.Integer(),
  /** Everything up to here is as it was written; `head` is where the chain ends. */
  position: Type.Integer(),
  head: Type.Integer(),
  hash: Type.String(),
  key_id: Type.String(),
  /** Where retention cut the chain. */
  cut: Type.Optional(Type.Object({ position: Type.Integer(), cut_at: Stamp })),
  /** The first thing that is wrong. */
  fault: Type.Optional(
    Type.Object({
      kind: Type.Union([
        Type.Literal('row_changed'),
        Type.Literal('rows_missing'),
        Type.Literal('row_inserted'),
        Type.Literal('chain_rewritten'),
        Type.Literal('head_changed'),
        Type.Literal('anchor_missing'),
        Type.Literal('signature_invalid'),
      ]),
      position: Type.Integer(),
      audit_id: Type.Optional(Id),
      detail: Type.String(),
    }),
  ),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
});
export type Verification = Static<typeof Verification>;
