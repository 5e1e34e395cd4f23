import { registry } from '@platform/registry/contract';
import { definePlugin, reply } from '@platform/sdk';
import { statistics } from '@platform/statistics/contract';
import { storage } from '@platform/storage/contract';
import { functions } from '../contract/index.ts';
import { detailOf } from './execution/executor.ts';
import { servicesOf } from './services.ts';

export default definePlugin(functions, {
  uses: { registry, statistics, storage },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const { enablement, executor, limits, measurements, modules, objects, pools, records, validation } = servicesOf(ctx);
    return {
      routes: {
        uploadModule: async request => {
          const { made, module } = await modules.upload(request);
          return reply(module, { status: made ? 201 : 200 });
        },
        listModules: request => modules.list(request),
        getModule: ({ env, params }) => modules.get(env, params.module_id),
        validateModule: request => validation.validate(request),
        activateModule: request => modules.activate(request),
        deprecateModule: request => modules.deprecate(request),
        deleteModule: request => modules.remove(request),
        executeModule: request => executor.pinned(request),
        executeProduct: request => executor.product(request),
        listExecutions: ({ env, query }) => records.list(env, query),
        listDeadLetters: ({ env, query }) => records.list(env, { ...query, status: 'dead_lettered' }),
        getExecution: async ({ env, params }) => detailOf(await records.get(env, params.execution_id)),
        replayExecution: request => executor.replay(request),
        figures: ({ env }) => records.figures(env),
        productFigures: async ({ env }) => ({ items: (await records.figures(env)).products }),
        getLimits: ({ env }) => limits.of(env),
        putLimits: ({ env, body, caller }) => limits.put(env, body, caller),
      },
      on: { switched: async ({ envId }) => enablement.forget(envId) },
      tasks: {
        retry: (payload, run) => executor.retry(payload, run),
        discard: ({ storage_key }) => objects.delete(storage_key),
      },
      jobs: {
        recover: () => records.recover(),
        forget: () => records.forget(),
        measure: signal => measurements.tell(signal),
      },
      metrics: () => {
        const [core, component] = [pools.core.figures, pools.component.figures];
        return {
          executions_running: executor.running,
          measurements_waiting: measurements.waiting,
          guest_processes: core.processes + component.processes,
          guest_memory_bytes: core.residentBytes + component.residentBytes,
          guest_processes_replaced_total: core.respawned + component.respawned,
        };
      },
    };
  },
});
