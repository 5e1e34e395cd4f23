import { get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { HeldAction, Holder } from '../schema/access.ts';
import { Attribute, PolicySet, Relation } from '../schema/policy.ts';

const policyGate = 'sys:policy:store';
const AttributeValues = Type.Record(Type.String(), Attribute.properties.value);
const PolicyRow = { env_id: Id, service: Type.String({ maxLength: 64 }) };
/** What `If-Match` named where the change was asked for. */
const Versions = { if_match: Type.Optional(Type.Array(Type.Integer(), { maxItems: 100 })) };
/** In whose name the service writes, for the audit trail: `user:{id}` or `workload:{name}`, and who acts for that person. */
const Writer = { updated_by: Type.Optional(Type.String()), act: Type.Optional(Type.String()) };
const NamedWriter = { ...Writer, updated_by: Type.String() };

/** Policy data of every service, kept here (C27, G-K-10). */
export const policyRoutes = {
  whoCan: get('/v1/access/holders', {
    summary: 'Who can do something in an environment',
    gate: { any: ['sys:policy:read', 'sys:policy:admin'] },
    query: {
      ...PageQuery,
      action: Type.Optional(Type.String({ maxLength: 200 })),
      resource: Type.Optional(Type.String({ maxLength: 200, pattern: '^[a-z][a-z0-9_]*:.+$' })),
    },
    env: 'target',
    returns: Page(Holder),
    problems: ['unknown_action', 'identity_unavailable'],
    hidden: true,
  }),
  whatCan: get('/v1/access/actions', {
    summary: 'What somebody can do in an environment',
    gate: { any: ['sys:policy:read', 'sys:policy:admin'] },
    query: { ...PageQuery, principal: Type.Optional(Type.String({ maxLength: 200, pattern: '^(user|workload):.+$' })) },
    env: 'target',
    returns: Page(HeldAction),
    problems: ['invalid_cursor', 'identity_unavailable'],
    hidden: true,
  }),

  policySnapshot: get('/v1/internal/policy', {
    summary: 'Policy data of (env, service)',
    gate: policyGate,
    query: PolicyRow,
    returns: Type.Object({ sets: Type.Array(PolicySet), relations: Type.Array(Relation), attributes: Type.Array(Attribute) }),
    hidden: true,
  }),
  policyUpsertSet: post('/v1/internal/policy/sets', {
    summary: 'Store a policy set',
    gate: policyGate,
    body: Type.Object({
      ...PolicyRow,
      name: Type.String(),
      policies: Type.String(),
      policy_set_id: Type.Optional(Id),
      mode: Type.Optional(Type.Union([Type.Literal('shadow'), Type.Literal('enforced')])),
      ...Versions,
      ...NamedWriter,
    }),
    returns: PolicySet,
    problems: ['platform_origin_row', 'policy_row_not_found'],
    hidden: true,
    emits: ['platform:sys:policy:updated'],
  }),
  policyUpsertRelation: post('/v1/internal/policy/relations', {
    summary: 'Store a relation',
    gate: policyGate,
    body: Type.Object({ ...PolicyRow, ...Writer, subject: Type.String(), relation: Type.String(), object: Type.String() }),
    returns: Relation,
    hidden: true,
    emits: ['platform:sys:policy:updated'],
  }),
  policyUpsertAttribute: post('/v1/internal/policy/attributes', {
    summary: 'Store an attribute',
    gate: policyGate,
    body: Type.Object({ ...PolicyRow, ...Writer, principal: Type.String(), key: Type.String(), value: Attribute.properties.value }),
    returns: Attribute,
    hidden: true,
    emits: ['platform:sys:policy:updated'],
  }),
  policyPutAttributes: put('/v1/internal/policy/attributes', {
    summary: 'Store attributes of one principal, and take others away',
    gate: policyGate,
    body: Type.Object({
      ...PolicyRow,
      ...Writer,
      principal: Type.String(),
      values: Type.Record(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' }), Type.Union([Attribute.properties.value, Type.Null()]), {
        maxProperties: 100,
        additionalProperties: false,
      }),
    }),
    returns: Type.Object({ before: AttributeValues, after: AttributeValues }),
    hidden: true,
    emits: ['platform:sys:policy:updated'],
  }),
  policyRemove: post('/v1/internal/policy/remove', {
    summary: 'Remove a policy row',
    gate: policyGate,
    body: Type.Object({
      ...PolicyRow,
      kind: Type.Union([Type.Literal('policy-sets'), Type.Literal('relations'), Type.Literal('attributes')]),
      id: Type.String(),
      ...Versions,
      ...NamedWriter,
    }),
    problems: ['platform_origin_row', 'policy_row_not_found'],
    hidden: true,
    emits: ['platform:sys:policy:updated'],
  }),
};
