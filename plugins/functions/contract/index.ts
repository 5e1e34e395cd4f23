import { counter, defineContract, Id, subscribe, task, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { routes } from './routes.ts';

/** Functions: foreign code with fuel (doc3, Function runtime service; G-FUNC). */
export const functions = defineContract({
  id: 'func',
  title: 'Functions',
  placement: { tier: 30 },
  uses: {
    sys: ['sys:instances:read'],
    storage: ['storage:objects:read', 'storage:objects:write'],
    stat: ['stat:measure', 'stat:properties:write'],
  },
  capabilities: ['backends', 'key-value'],
  metrics: {
    executions: counter('Executions that came to an end'),
    executions_failed: counter('Executions that ended without a result'),
    fuel_used: counter('Fuel that executions used'),
    duration_ms: counter('Milliseconds that executions took'),
    measurements_dropped: counter('Sums for the statistics that were let go, because too many were kept or they were refused'),
  },
  config: Type.Object({
    processes: Type.Integer({
      env: 'PLATFORM_FUNC_PROCESSES',
      default: 2,
      minimum: 1,
      maximum: 32,
      description: 'Locked processes that run functions',
    }),
    fuel: Type.Integer({
      env: 'PLATFORM_FUNC_FUEL',
      default: 10_000_000,
      minimum: 10_000,
      maximum: 100_000_000,
      description: 'Instructions of one execution, where an environment says nothing',
    }),
    memoryBytes: Type.Integer({
      env: 'PLATFORM_FUNC_MEMORY_BYTES',
      default: 67_108_864,
      minimum: 1_048_576,
      maximum: 268_435_456,
      description: 'Memory of one execution, where an environment says nothing',
    }),
    timeoutMs: Type.Integer({
      env: 'PLATFORM_FUNC_TIMEOUT_MS',
      default: 2_000,
      minimum: 50,
      maximum: 30_000,
      description: 'Milliseconds of one execution, its calls included, where an environment says nothing',
    }),
    dedupeS: Type.Integer({
      env: 'PLATFORM_FUNC_DEDUPE_S',
      default: 86_400,
      minimum: 60,
      maximum: 604_800,
      description: 'Seconds for which an execution is known by its key',
    }),
  }),
  actions: {
    'func:modules:read': { title: 'See modules and executions', grants: 'read' },
    'func:modules:write': { title: 'Upload modules, and change the own ones', grants: 'write' },
    'func:modules:execute': { title: 'Execute functions', grants: 'write' },
    'func:modules:admin': { title: 'Change every module, set limits and replay', grants: 'admin' },
  },
  problems,
  events,
  routes,
  consumes: {
    switched: subscribe('platform:sys:service:updated', { family: 'sys', delivery: 'process' }),
  },
  onEnvironmentDeleted: { purge: { executions: 'executions', products: 'active versions', modules: 'modules', limits: 'limits' } },
  tasks: {
    retry: task(Type.Object({ execution_id: Id }), {
      summary: 'Try a failed execution again',
      lane: 'env',
      attempts: 20,
      backoff: [5, 30],
      timeout: '2m',
      slots: 8,
    }),
    discard: task(Type.Object({ storage_key: Type.String() }), {
      summary: 'Delete the bytes of a module that is gone',
      lane: 'one',
      attempts: 50,
      backoff: [5, 30, 300],
    }),
  },
  jobs: {
    recover: { summary: 'Take executions up that their process left', every: '30s', runs: 'fleet' },
    measure: { summary: 'Tell the statistics what ran', every: '30s', runs: 'process', timeout: '20s' },
    forget: { summary: 'Delete executions past their retention', every: '1h', runs: 'fleet' },
  },
  pages,
});
