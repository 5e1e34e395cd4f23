import { get, Id, Page, PageQuery, put, ServiceId, SortQuery, Type } from '@platform/sdk/contract';
import { EventContract, EventContractKept } from '../schema/event-contract.ts';
import { GroupRow, Lag, Metrics, Overview, StreamRow } from '../schema/operation.ts';

const anyone = { any: ['bus:read', 'bus:consume', 'bus:admin'] } as const;
const envQuery = { env_id: Type.Optional(Id) };
const where = ['env_required', 'env_mismatch'] as const;

/** What operators see, and what the host tells the bus. */
export const operationRoutes = {
  listStreams: get('/v1/streams', {
    summary: 'Streams of an environment',
    gate: anyone,
    query: { ...envQuery, ...SortQuery('stream_family', 'length', 'groups'), ...PageQuery },
    returns: Page(StreamRow),
    problems: [...where, 'too_many_streams'],
  }),
  streamLag: get('/v1/streams/{family}/lag', {
    params: { family: Type.String({ maxLength: 64 }) },
    summary: 'How far each group is behind',
    gate: anyone,
    query: envQuery,
    returns: Lag,
    problems: [...where, 'invalid_stream_family'],
  }),
  listGroups: get('/v1/groups', {
    summary: 'Consumer groups of an environment',
    gate: anyone,
    query: envQuery,
    returns: Type.Object({ items: Type.Array(GroupRow) }),
    problems: where,
    hidden: true,
  }),
  overview: get('/v1/overview', {
    summary: 'An environment at a glance',
    gate: anyone,
    query: envQuery,
    returns: Overview,
    problems: where,
    hidden: true,
  }),
  metrics: get('/v1/metrics', { summary: 'Counters of this process, depths of the bus', gate: anyone, returns: Metrics }),
  keepEventContract: put('/v1/event-contracts/{service}', {
    params: { service: ServiceId },
    summary: 'Keep the events that a service of a vertical declares',
    gate: 'bus:contracts:write',
    body: EventContract,
    returns: EventContractKept,
    problems: ['bad_schema', 'env_mismatch'],
    hidden: true,
  }),
} as const;
