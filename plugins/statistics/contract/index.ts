import { defineContract, del, event, get, Id, Instant, Page, PageQuery, post, type Static, Type } from '@platform/sdk/contract';

const ofProperty = { property_id: Id };

const Kind = Type.Union([Type.Literal('listing'), Type.Literal('instance')]);
const Name = Type.String({ minLength: 1, maxLength: 200 });
export const Property = Type.Object({
  property_id: Id,
  env_id: Id,
  kind: Kind,
  ref_id: Type.String(),
  name: Type.String(),
  created_at: Type.String(),
});
export type Property = Static<typeof Property>;
const NewProperty = Type.Object({ env_id: Id, kind: Kind, ref_id: Name, name: Name });
/** G-STAT-01. `at` is when it was measured; now when absent. */
const Measurement = Type.Object({
  property_id: Id,
  metric: Type.String({ pattern: '^[a-z][a-z0-9_.]{0,99}$' }),
  value: Type.Number({ minimum: -1e15, maximum: 1e15 }),
  at: Type.Optional(Instant),
  dimensions: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 200 }), { maxProperties: 16 })),
  idempotency_key: Type.Optional(Name),
});
export type Measurement = Static<typeof Measurement>;
const Aggregate = Type.Object({
  property_id: Id,
  minute: Type.String(),
  metric: Type.String(),
  value: Type.Number(),
  count: Type.Integer(),
});
export type Aggregate = Static<typeof Aggregate>;
const Traffic = Type.Object({
  at: Type.String(),
  service: Type.String(),
  requests: Type.Integer(),
  errors: Type.Integer(),
  p50_ms: Type.Number(),
  p95_ms: Type.Number(),
  p99_ms: Type.Number(),
});
export type Traffic = Static<typeof Traffic>;
const Figures = Type.Object({
  rps: Type.Number(),
  errors: Type.Integer(),
  errors_by_minute: Type.Array(Type.Integer(), { description: 'Of each minute of the last hour that had traffic, the last one last' }),
  p50_ms: Type.Number(),
  p95_ms: Type.Number(),
  items: Type.Array(Type.Object({ at: Type.String(), requests: Type.Integer(), errors: Type.Integer() })),
});

/** Statistics: what applications measure, and the traffic of the platform (G-STAT-01 to 04). */
export const statistics = defineContract({
  id: 'stat',
  title: 'Statistics',
  family: 'stat-pipeline',
  placement: { tier: 30 },
  capabilities: ['key-value'],
  actions: {
    'stat:measure': { title: 'Record measurements', principals: ['machine'] },
    'stat:properties:write': { title: 'Provision what is measured', principals: ['machine'] },
    'stat:read': { title: 'Read statistics', grants: 'read' },
    'stat:traffic:read': { title: 'Read the traffic of the platform' },
  },
  problems: {
    property_not_found: { status: 404, title: 'No such property', retry: 'never' },
    measured_in_future: { status: 400, title: 'The measurement lies in the future, or too far back', retry: 'never' },
  },
  events: {
    'platform:stat.aggregate.updated': event(
      'A minute of a property was summed up',
      Type.Object({
        property_id: Id,
        window: Type.Object({ from: Type.String(), to: Type.String() }),
        metrics: Type.Record(Type.String(), Type.Number()),
      }),
    ),
    'platform:stat:traffic:snapshot': event(
      'A minute of the platform was summed up',
      Type.Object({
        at: Type.String(),
        rps: Type.Number(),
        p50_ms: Type.Number(),
        p95_ms: Type.Number(),
        errors: Type.Integer(),
        by_service: Type.Record(Type.String(), Type.Object({ requests: Type.Integer(), errors: Type.Integer() })),
      }),
      { everyPage: true },
    ),
  },
  waivers: { 'platform:stat.aggregate.updated': 'G-STAT-03: the name is fixed by doc1' },
  onEnvironmentDeleted: { purge: { properties: 'measured properties' } },
  routes: {
    provision: post('/v1/m/properties', {
      summary: 'Provision a property; the same again answers the one there is',
      gate: 'stat:properties:write',
      body: NewProperty,
      returns: Property,
      status: 201,
      idempotency: 'own',
    }),
    removeProperty: del('/v1/m/properties/{property_id}', {
      params: ofProperty,
      summary: 'Remove a property and what was measured of it',
      gate: 'stat:properties:write',
    }),
    measure: post('/v1/m/metric', {
      summary: 'Record a measurement',
      gate: 'stat:measure',
      body: Measurement,
      returns: Type.Object({ accepted: Type.Literal(true) }),
      status: 202,
      idempotency: 'own',
      problems: ['property_not_found', 'measured_in_future'],
    }),
    listProperties: get('/v1/m/properties', {
      summary: 'What is measured in an environment',
      gate: 'stat:read',
      env: 'own',
      query: PageQuery,
      returns: Page(Property),
    }),
    getProperty: get('/v1/m/properties/{property_id}', {
      params: ofProperty,
      summary: 'One property',
      gate: 'stat:read',
      env: 'own',
      returns: Property,
      problems: ['property_not_found'],
    }),
    listAggregates: get('/v1/m/properties/{property_id}/aggregates', {
      params: ofProperty,
      summary: 'Sums of a property by minute, newest first',
      gate: 'stat:read',
      env: 'own',
      query: PageQuery,
      returns: Page(Aggregate),
      problems: ['property_not_found'],
    }),
    traffic: get('/v1/traffic', { summary: 'Requests of the last hour by minute', gate: 'stat:traffic:read', returns: Figures }),
    trafficByService: get('/v1/traffic/services', {
      summary: 'The last minute of each service',
      gate: 'stat:traffic:read',
      returns: Type.Object({ items: Type.Array(Traffic) }),
    }),
  },
  jobs: {
    sumUp: { summary: 'Sum up measurements by minute', every: '10s', runs: 'fleet', timeout: '1m' },
    rollUp: { summary: 'Publish the traffic of the last minute and day', every: '10s', runs: 'process', timeout: '30s' },
    forget: { summary: 'Delete measurements, sums and traffic past their retention', every: '1h', runs: 'fleet', timeout: '5m' },
  },
  pages: {
    traffic: {
      kind: 'board',
      title: 'Traffic',
      icon: 'chart',
      scope: 'platform',
      refresh: 30,
      live: ['platform:stat:traffic:snapshot'],
      sections: [
        {
          kind: 'stats',
          source: 'traffic',
          items: [
            { field: 'rps', label: 'Requests per second', as: 'number', history: 'value' },
            { field: 'errors', label: 'Errors in the last minute', as: 'number', trend: 'errors_by_minute' },
            { field: 'p50_ms', label: 'Half answered within ms', as: 'number' },
            { field: 'p95_ms', label: '95 of 100 within ms', as: 'number' },
          ],
        },
        {
          title: 'Last hour',
          kind: 'chart',
          chart: 'area',
          source: 'traffic',
          x: 'at',
          series: [
            { field: 'requests', label: 'Requests' },
            { field: 'errors', label: 'Errors' },
          ],
        },
        {
          title: 'Services',
          kind: 'table',
          source: 'trafficByService',
          key: 'service',
          empty: 'No service has told of its traffic yet.',
          columns: [
            { field: 'service', label: 'Service', as: 'code' },
            { field: 'requests', label: 'Requests', as: 'number' },
            { field: 'errors', label: 'Errors', as: 'number' },
            { field: 'p50_ms', label: 'p50 ms', as: 'number' },
            { field: 'p95_ms', label: 'p95 ms', as: 'number' },
            { field: 'at', label: 'Minute', as: 'datetime' },
          ],
        },
      ],
    },
    properties: {
      kind: 'table',
      title: 'Properties',
      icon: 'tag',
      source: 'listProperties',
      key: 'property_id',
      open: 'property',
      empty: 'Nothing is measured in this environment yet. Installing an application provisions what it measures.',
      columns: [
        { field: 'name', label: 'Name' },
        { field: 'kind', label: 'Kind', as: 'status' },
        { field: 'ref_id', label: 'Of', as: 'code' },
        { field: 'created_at', label: 'Since', as: 'ago' },
      ],
    },
    property: {
      kind: 'record',
      title: 'Property',
      source: 'getProperty',
      heading: '{name}',
      fields: [
        { field: 'kind', label: 'Kind', as: 'status' },
        { field: 'ref_id', label: 'Of', as: 'code' },
        { field: 'property_id', label: 'Number', as: 'code' },
      ],
      tabs: [
        {
          label: 'By minute',
          kind: 'table',
          source: 'listAggregates',
          key: 'minute',
          empty: 'Nothing was measured yet.',
          columns: [
            { field: 'minute', label: 'Minute', as: 'datetime' },
            { field: 'metric', label: 'Metric', as: 'code' },
            { field: 'value', label: 'Sum', as: 'number' },
            { field: 'count', label: 'Measurements', as: 'number' },
          ],
        },
      ],
    },
  },
});
