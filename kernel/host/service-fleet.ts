import { join } from 'node:path';
import type { DisposalStack } from '../base/disposal-stack.ts';
import type { Manifest } from '../base/manifest.ts';
import { connectKeyValue } from '../storage/key-value.ts';
import { openLog } from '../telemetry/log.ts';
import type { Bootstrap } from './bootstrap.ts';
import { serviceProcess } from './child-process.ts';
import { publishEnrollment } from './enrollment.ts';
import type { HostOptions } from './host.ts';
import type { HostWorkload } from './host-workload.ts';
import { keyValuePort } from './key-value-port.ts';
import type { FoundPlugin } from './loader.ts';
import type { SupervisedProcess } from './process/supervised-process.ts';
import type { Stores } from './stores.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** One process per platform service, tier by tier, each with enrollment secrets of its own. */
export async function startSplit(owned: DisposalStack, options: HostOptions, parts: { base: Bootstrap; found: readonly FoundPlugin[]; environment: Environment; stores: Stores }): Promise<void> {
  const store = owned.own(await connectKeyValue(parts.base.keyValueUrl));
  const kv = owned.own(await keyValuePort(store));
  const telemetry = openLog({ level: options.logLevel, directory: join(options.dataDir, 'logs'), build: parts.base.build, pretty: options.pretty, process: 'host' });
  owned.defer(() => telemetry.flush());
  const tiers = [...new Set(parts.found.map(({ manifest }) => manifest.placement.tier))].sort((left, right) => left - right);
  for (const tier of tiers) {
    const members = parts.found.filter(({ manifest }) => manifest.placement.tier === tier);
    options.progress(`Starting ${members.map(({ manifest }) => manifest.title).join(', ')}`);
    const processes = members.map(({ manifest, directory }) =>
      serviceProcess({
        name: manifest.id,
        pluginDirectory: directory,
        placement: manifest.placement,
        environment: parts.environment,
        settings: ['PLATFORM_'],
        life: { lastResortMs: options.lastResortMs },
        kv,
        dataDir: options.dataDir,
        log: telemetry.logger('host'),
        bootstrap: async () => {
          await parts.stores.answer();
          return { ...parts.base, enrollment: await enrollmentsOf(kv, manifest) };
        },
      }),
    );
    owned.defer(() => stopAll(processes));
    await Promise.all(processes.map(process => process.start()));
  }
}

/** All at once: one that does not end keeps nobody waiting but itself. */
export async function stopAll(processes: Iterable<SupervisedProcess>): Promise<void> {
  await Promise.all([...processes].map(process => process[Symbol.asyncDispose]()));
}

/** A vertical is somebody else's code: a process, a certificate, a database role and a key-value login of its own (day-one, Plugins). */
export function verticalProcess(
  { manifest, directory }: FoundPlugin,
  { base, options, environment, stores, host, siblings }: { base: Bootstrap; options: HostOptions; environment: Environment; stores: Stores; host: HostWorkload; siblings: readonly FoundPlugin[] },
): SupervisedProcess {
  const own = siblings.filter(sibling => sibling.manifest.vertical === manifest.vertical).map(sibling => sibling.manifest);
  return serviceProcess({
    name: manifest.id,
    pluginDirectory: directory,
    placement: manifest.placement,
    environment,
    settings: [`${manifest.vertical.toUpperCase()}_`],
    life: { lastResortMs: options.lastResortMs },
    kv: host.kv,
    dataDir: options.dataDir,
    log: host.log,
    // Everything it needs is seen to before every start: what was away at the first one is made good at the next.
    bootstrap: async () => {
      await stores.ensureService(manifest.id);
      await host.registerWorkload(manifest);
      await host.registerEvents(manifest);
      return {
        ...base,
        // Its data directory is its own: nothing of the platform's keys lies below it.
        dataDir: join(options.dataDir, 'verticals', manifest.id),
        keyValueUrl: await stores.restrictedKeyValueUrl(manifest.id),
        manifests: [...base.manifests, ...(own.includes(manifest) ? own : [...own, manifest])],
        enrollment: await enrollmentsOf(host.kv, manifest),
      };
    },
  });
}

async function enrollmentsOf(kv: Parameters<typeof publishEnrollment>[0], { id, workloads }: Manifest): Promise<Record<string, string>> {
  const names = [id, ...Object.keys(workloads).map(name => `${id}-${name}`)];
  return Object.fromEntries(await Promise.all(names.map(async name => [name, await publishEnrollment(kv, name)] as const)));
}
