import { defineContract, Id, subscribe, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { consumeRoutes } from './routes/consume-routes.ts';
import { deadLetterRoutes } from './routes/dead-letter-routes.ts';
import { operationRoutes } from './routes/operation-routes.ts';
import { produceRoutes } from './routes/produce-routes.ts';
import { scheduleRoutes } from './routes/schedule-routes.ts';

/** The event bus: events that were accepted are kept, delivered at least once, retried and, when nothing helps, put aside (doc2; G-BUS). */
export const eventBus = defineContract({
  id: 'bus',
  title: 'Event bus',
  placement: { tier: 20, heap_growth: 50 },
  onEnvironmentDeleted: { purge: { scheduled_events: 'scheduled events', suspended_environments: 'notes of a suspension' } },
  essential: true,
  uses: { sys: ['sys:read'] },
  capabilities: ['key-value'],
  config: Type.Object({
    produceRate: Type.Integer({
      env: 'PLATFORM_BUS_PRODUCE_RATE',
      default: 1_000,
      minimum: 1,
      description: 'Events per second that verticals may produce into one environment',
    }),
    produceBurst: Type.Integer({
      env: 'PLATFORM_BUS_PRODUCE_BURST',
      default: 2_000,
      minimum: 1,
      description: 'Events that may come at once',
    }),
    streamEntries: Type.Integer({
      env: 'PLATFORM_BUS_STREAM_ENTRIES',
      default: 1_000_000,
      minimum: 1_000,
      description: 'About how many entries a stream keeps',
    }),
  }),

  actions: {
    'bus:produce': { title: 'Publish events' },
    'bus:consume': { title: 'Receive and acknowledge events' },
    'bus:read': { title: 'See streams, consumers and metrics', grants: 'read' },
    'bus:admin': { title: 'See and replay dead letters', grants: 'admin' },
    'bus:contracts:write': { title: 'Tell the bus which events a service declares', principals: ['machine'], bound: true },
  },
  problems,
  events,
  consumes: {
    environmentChanged: subscribe('platform:sys:env:updated', {
      family: 'sys',
      expects: Type.Object({ env_id: Type.Union([Id, Type.Null()]), status: Type.String() }),
    }),
  },

  routes: { ...produceRoutes, ...scheduleRoutes, ...consumeRoutes, ...deadLetterRoutes, ...operationRoutes },
  jobs: {
    relay: { summary: 'Append what was accepted and is not on its stream yet', every: '2s', runs: 'fleet' },
    reap: { summary: 'Put due retries and delayed events on their streams, or aside', every: '10s', runs: 'fleet' },
    trim: { summary: 'Cut streams to their retention', every: '60s', runs: 'fleet' },
    sweepGroups: { summary: 'Destroy groups whose process is gone', every: '10m', runs: 'fleet' },
    retention: { summary: 'Delete what is past its time', every: '1h', runs: 'fleet' },
  },
  pages,
});
