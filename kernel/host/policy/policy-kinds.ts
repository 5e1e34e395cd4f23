import { Type } from '@platform/sdk';
import type { PolicyKind } from '../../policy/policy-port.ts';

const Op = Type.Optional(Type.Union([Type.Literal('upsert'), Type.Literal('delete')]));
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const SetBody = Type.Object({
  op: Op,
  policy_set_id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  mode: Type.Optional(Type.Union([Type.Literal('shadow'), Type.Literal('enforced')])),
  policies: Type.Optional(Type.String()),
});
const RelationBody = Type.Object({
  op: Op,
  relation_id: Type.Optional(Type.String()),
  subject: Type.Optional(Type.String({ pattern: '^(user|workload|group):.+$' })),
  relation: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })),
  object: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]*:.+$' })),
});
const AttributeBody = Type.Object({
  op: Op,
  attribute_id: Type.Optional(Type.String()),
  principal: Type.Optional(Type.String({ pattern: '^(user|workload):.+$' })),
  key: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })),
  value: Type.Optional(Type.Union([Scalar, Type.Array(Scalar, { maxItems: 100 })])),
});

/** What each kind of row is sent as, the member of a snapshot it stands in, and what its id is called. */
export const POLICY_KINDS = {
  'policy-sets': { body: SetBody, member: 'sets', idMember: 'policy_set_id' },
  relations: { body: RelationBody, member: 'relations', idMember: 'relation_id' },
  attributes: { body: AttributeBody, member: 'attributes', idMember: 'attribute_id' },
} as const satisfies Record<PolicyKind, object>;
