import { Id, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
export const PolicySet = Type.Object({
  policy_set_id: Id,
  env_id: Id,
  service: Type.String(),
  name: Type.String(),
  origin: Type.Union([Type.Literal('platform'), Type.Literal('tenant')]),
  mode: Type.Union([Type.Literal('shadow'), Type.Literal('enforced')]),
  version: Type.Integer(),
  policies: Type.String(),
  created_at: Stamp,
  updated_at: Stamp,
  updated_by: Type.String(),
});
export type PolicySet = Static<typeof PolicySet>;
export const Relation = Type.Object({
  relation_id: Id,
  env_id: Id,
  service: Type.String(),
  subject: Type.String(),
  relation: Type.String(),
  object: Type.String(),
});
export type Relation = Static<typeof Relation>;
export const Attribute = Type.Object({
  attribute_id: Id,
  env_id: Id,
  service: Type.String(),
  principal: Type.String(),
  key: Type.String(),
  value: Type.Union([Scalar, Type.Array(Scalar)]),
});
export type Attribute = Static<typeof Attribute>;
/** With a `kind` no set changed, but relations or attributes that sets are judged by. */
export const PolicyChange = Type.Object({
  service: Type.String(),
  policy_set: Type.Union([PolicySet, Type.Null()]),
  deleted_id: Type.Optional(Type.String()),
  version: Type.Integer(),
  mode: Type.Union([Type.Literal('shadow'), Type.Literal('enforced')]),
  seeded: Type.Boolean(),
  kind: Type.Optional(Type.Union([Type.Literal('relations'), Type.Literal('attributes')])),
});
