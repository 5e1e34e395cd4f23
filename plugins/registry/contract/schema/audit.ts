import { Id, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

/** G-SYS-13. */
export const Actor = Type.Object({
  kind: Type.Union([Type.Literal('user'), Type.Literal('workload')]),
  id: Type.String(),
  act: Type.Optional(Type.String()),
});
export type Actor = Static<typeof Actor>;
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
  /** Up to where the answering machine saw the chain signed, and since when it looks. */
  witnessed: Type.Optional(Type.Object({ position: Type.Integer(), since: Stamp })),
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
        Type.Literal('signature_unconfirmed'),
        Type.Literal('rolled_back'),
      ]),
      position: Type.Integer(),
      audit_id: Type.Optional(Id),
      detail: Type.String(),
    }),
  ),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
});
export type Verification = Static<typeof Verification>;

/** A key of the trail and how it came into force. */
export const AuditKeyEntry = Type.Object({
  seq: Type.Integer(),
  key_id: Type.String(),
  status: Type.Union([Type.Literal('next'), Type.Literal('current'), Type.Literal('retired')]),
  public_key: Type.String(),
  /** When it came into force; the first key signs from the beginning. */
  since: Type.Union([Stamp, Type.Null()]),
  /** Its introduction, signed by the key before it and by itself; in hex. */
  by_previous: Type.Union([Type.String(), Type.Null()]),
  by_itself: Type.Union([Type.String(), Type.Null()]),
});
export type AuditKeyEntry = Static<typeof AuditKeyEntry>;

/** Where some of the chains stand, signed, for somebody to keep elsewhere. `after` and `next_cursor` join the pages to one receipt. */
export const AuditReceipt = Type.Object({
  at: Stamp,
  key_id: Type.String(),
  after: Type.Union([Type.String(), Type.Null()]),
  heads: Type.Array(Type.Object({ env_id: Id, position: Type.Integer(), hash: Type.String() })),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
  signature: Type.String(),
});
export type AuditReceipt = Static<typeof AuditReceipt>;
