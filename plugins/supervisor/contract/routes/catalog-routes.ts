import { get, post, Type } from '@platform/sdk/contract';
import { CatalogEntry, CatalogRow, ServiceType } from '../schema/catalog.ts';
import { Started } from '../schema/instance.ts';

const gate = 'captain:admin';
const START_PROBLEMS = ['unknown_service_type', 'placement_refused', 'self_target', 'start_failed'] as const;
const ServiceTypes = Type.Object(
  { service_types: Type.Array(ServiceType, { minItems: 1, maxItems: 64, uniqueItems: true }) },
  { additionalProperties: false },
);

/** What can be started, and starting it (G-CAP-06). */
export const catalogRoutes = {
  catalog: get('/v1/captain/catalog', {
    summary: 'Services that can be started',
    gate,
    returns: Type.Object({ items: Type.Array(CatalogRow) }),
  }),
  mergeCatalog: post('/v1/captain/merge-catalog', {
    summary: 'Add lines to the catalog, or change them',
    gate,
    body: Type.Object({ entries: Type.Array(CatalogEntry, { minItems: 1, maxItems: 200 }) }, { additionalProperties: false }),
    returns: Type.Object({ added: Type.Integer(), updated: Type.Integer() }),
    problems: ['builtin_entry', 'invalid_placement', 'channel_restricted'],
  }),
  startServices: post('/v1/captain/start-services', {
    summary: 'Start services on this machine',
    gate,
    body: ServiceTypes,
    returns: Started,
    status: 200,
    problems: [...START_PROBLEMS, 'channel_restricted'],
  }),
  instances: post('/v1/captain/instances', {
    summary: 'Start services, asked for by another machine of the fleet',
    gate: { any: ['captain:instances:write', 'captain:admin'] },
    body: ServiceTypes,
    returns: Started,
    status: 200,
    problems: START_PROBLEMS,
  }),
} as const;
