import { identity } from '@platform/identity/contract';
import { registry } from '@platform/registry/contract';
import { scheduler } from '@platform/scheduler/contract';
import { definePlugin } from '@platform/sdk';
import { statistics } from '@platform/statistics/contract';
import { storage } from '@platform/storage/contract';
import { workflow } from '@platform/workflow/contract';
import { appStore } from '../contract/index.ts';
import { instanceHandlers } from './instances/instance-handlers.ts';
import { secretPurpose } from './instances/instance-row.ts';
import { servicesOf } from './services.ts';
import { listingHandlers } from './listings/listing-handlers.ts';
import { figuresOf } from './usage/figures.ts';

export default definePlugin(appStore, {
  uses: { identity, registry, storage, statistics, workflow, scheduler },
  migrations: new URL('../migrations/', import.meta.url),

  setup(ctx) {
    const parts = servicesOf(ctx);
    const { announcement, counters, environments, installs, instances, media, onboarding, recheck, runtime, uninstalls, usage } = parts;
    const follow = async (envId: string) => {
      runtime.forget(envId);
      await environments.follow(envId);
    };
    return {
      routes: {
        ...listingHandlers(parts),
        ...instanceHandlers(parts),
        runtimeContext: request => runtime.of(request),
        executeStep: async ({ body }) => onboarding.execute(body),
        dailyCounters: ({ body }) => counters.ask(body),
        figures: ({ env }) => figuresOf(ctx, env),
      },
      on: {
        'app-usage': delivery => usage.take(delivery),
        onboarded: delivery => onboarding.completed(delivery),
        declined: delivery => onboarding.failed(delivery),
        envChanged: ({ envId }) => follow(envId),
        envArchived: ({ envId }) => follow(envId),
        orgChanged: ({ payload }) => environments.followOrganization(payload.org_id),
        orgArchived: ({ payload }) => environments.followOrganization(payload.org_id),
      },
      tasks: {
        settle: async payload => {
          if ((await installs.settle(payload)) === 'done') return;
          const row = await instances.find(payload.instance_id);
          if (row) await onboarding.start(row);
        },
        uninstall: payload => uninstalls.resume(payload),
        discard: payload => media.discard(payload),
        forgetProperty: ({ property_id }) => ctx.services.statistics.removeProperty({ params: { property_id } }),
        count: (payload, { signal }) => counters.count(payload, signal),
      },
      jobs: {
        announce: () => announcement.make(),
        recheckDomains: signal => recheck.run(signal),
        sealAnew: signal =>
          ctx.reseal('secrets', [{ table: 'instances', id: 'instance_id', column: 'client_secret', purpose: secretPurpose }], signal),
        forgetUsage: () => usage.forget(),
      },
      // Both neighbours may come up later: the job says it again until they have heard it.
      ready: async () => void announcement.make().catch(err => ctx.log.debug({ err }, 'steps and schedule are registered later')),
    };
  },
});
