import { once } from 'node:events';
import { manifestOf } from '@platform/kernel/base/manifest';
import { PlatformProcess } from '@platform/kernel/host/platform-process';
import { readSettings } from '@platform/kernel/host/boot/settings';
import { openAuthority } from '@platform/kernel/identity/certificates/trust-anchors';
import type { LocalService } from '@platform/kernel/routing/service-caller';
import type { AnyPlugin } from '@platform/sdk';
import type { ProcessOrder } from './process-order.ts';
import type { Usage } from './service-child.ts';
import { workersUs } from './workers-us.ts';

/** One service in a process of its own, as `--split` runs it; tokens are the bench's. */
const [order] = (await once(process, 'message')) as [ProcessOrder];
// Only the one that is asked for: its memory is measured.
const plugins: Readonly<Record<ProcessOrder['service'], () => Promise<{ default: unknown }>>> = {
  auth: () => import('@platform/identity/plugin'),
  bus: () => import('@platform/event-bus/plugin'),
  sys: () => import('@platform/registry/plugin'),
};
const plugin = (await plugins[order.service]()).default as AnyPlugin;
const manifest = manifestOf(plugin.contract, '0.0.0-bench');
const { config, keys, faults } = readSettings(manifest, order.environment, false);
if (faults.length > 0) throw new Error(faults.map(({ variable, fault }) => `${variable} ${fault}`).join('; '));
const nowhere: LocalService = {
  call: async (operation, { body, signal }) => {
    if (operation === 'produceBatch')
      return { results: (body as { events: object[] }).events.map(() => ({ message_id: '0-0', stream: 'bench' })) };
    if (operation !== 'consume') return {};
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    return { entries: [] };
  },
};
/** A registry without tenants and policies, where none runs: it takes what is audited. */
const emptyRegistry: LocalService = {
  call: async (operation, { body }) =>
    operation === 'recordAudits'
      ? { audit_ids: (body as { events: object[] }).events.map(() => '') }
      : { sets: [], relations: [], attributes: [] },
};
const running = await PlatformProcess.start({
  bootstrap: order.bootstrap,
  services: [{ plugin, manifest, config, keys }],
  authority: await openAuthority(order.bootstrap.dataDir),
  processName: `bench-${order.service}-${process.pid}`,
  locals: new Map<string, LocalService>([
    ...(order.withoutBus ? ([['bus', nowhere]] as const) : []),
    ...(order.alone ? ([['sys', emptyRegistry]] as const) : []),
  ]),
  jwks: async () => order.jwks,
});
process.on('message', () =>
  process.send?.({ cpu: process.cpuUsage(), workersUs: workersUs(), rss: process.memoryUsage.rss() } satisfies Usage),
);
process.send?.({ port: running.port });
process.once('disconnect', () => process.exit(0));
