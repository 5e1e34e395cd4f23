import { defineContract, get, post, put, Type } from '@platform/sdk';

const open = { public: 'Nothing here is a secret' } as const;

/** The parts of the registry the kernel calls, so that a test can answer them. */
export const sys = defineContract({
  id: 'sys',
  title: 'Registry',
  placement: { tier: 1 },
  actions: {},
  problems: {},
  events: {},
  routes: {
    policySnapshot: get('/v1/internal/policy', {
      summary: 'Policy',
      gate: open,
      query: { service: Type.String(), env_id: Type.String() },
      returns: Type.Any(),
    }),
    policyUpsertSet: post('/v1/internal/policy/sets', { summary: 'Set', gate: open, body: Type.Any(), returns: Type.Any() }),
    policyUpsertRelation: post('/v1/internal/policy/relations', { summary: 'Relation', gate: open, body: Type.Any(), returns: Type.Any() }),
    policyUpsertAttribute: post('/v1/internal/policy/attributes', {
      summary: 'Attribute',
      gate: open,
      body: Type.Any(),
      returns: Type.Any(),
    }),
    policyPutAttributes: put('/v1/internal/policy/attributes', {
      summary: 'Attributes',
      gate: open,
      body: Type.Any(),
      returns: Type.Any(),
    }),
    policyRemove: post('/v1/internal/policy/remove', { summary: 'Remove', gate: open, body: Type.Any(), returns: Type.Any() }),
    registerVertical: post('/v1/verticals/register', { summary: 'Register', gate: open, body: Type.Any(), returns: Type.Any() }),
    recordAudits: post('/v1/audit/batch', { summary: 'Audit', gate: open, body: Type.Any(), returns: Type.Any() }),
    listVerticals: get('/v1/verticals/services', { summary: 'Registered', gate: open, query: { limit: Type.Any() }, returns: Type.Any() }),
    tell: post('/v1/shops/{shop_id}/words', {
      params: { shop_id: Type.String() },
      summary: 'Tell',
      gate: open,
      body: Type.Any(),
      returns: Type.Any(),
    }),
    echo: get('/v1/echo', { summary: 'Echo', gate: open, returns: Type.Any() }),
  },
});

/** The parts of the event bus the kernel calls. */
export const bus = defineContract({
  id: 'bus',
  title: 'Event bus',
  placement: { tier: 1 },
  actions: {},
  problems: {},
  events: {},
  routes: {
    produceBatch: post('/v1/produce/batch', { summary: 'Produce', gate: open, body: Type.Any(), returns: Type.Any() }),
    consume: post('/v1/consume', { summary: 'Consume', gate: open, body: Type.Any(), returns: Type.Any() }),
    ack: post('/v1/ack', { summary: 'Ack', gate: open, body: Type.Any(), returns: Type.Any() }),
    nack: post('/v1/nack', { summary: 'Nack', gate: open, body: Type.Any(), returns: Type.Any() }),
  },
});
