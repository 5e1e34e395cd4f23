import { platformHost } from '@platform/sdk';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Manifest } from '../../base/manifest.ts';
import type { Bootstrap } from '../boot/bootstrap.ts';
import { buildHash } from '../boot/build.ts';
import { enrollmentsOf } from '../machine/enrollment/enrollment.ts';
import type { HostOptions } from '../host-options.ts';
import type { HostWorkload } from '../machine/host-workload.ts';
import type { FoundPlugin } from '../plugin/loader.ts';
import { invite } from '../machine/enrollment/invitation.ts';
import { readBehindWalls } from '../plugin/read-behind-walls.ts';
import { type AllPlugins, type CatalogPlugin, refuseFindings } from '../plugin/plugin-intake.ts';
import type { Stores } from '../boot/stores.ts';
import { HealthLook } from './health-look.ts';
import { LocalProcessHost } from './local-process-host.ts';
import type { RunnableService } from './runnable-services.ts';
import { Releases } from '../machine/releases.ts';

interface MachineParts extends AllPlugins {
  readonly base: Bootstrap;
  readonly inside: readonly FoundPlugin[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stores: Pick<Stores, 'answer' | 'ensureService' | 'restrictedKeyValueUrl'>;
  readonly host: HostWorkload;
  readonly leave: () => void;
}

/** The processes of this machine: what can run on it, and what each kind is told when it starts. */
export function machineOf(options: HostOptions, parts: MachineParts): LocalProcessHost {
  const { base, platform, others, verticals, inside, environment, stores, host, leave } = parts;
  const within = new Set(inside.map(({ manifest }) => manifest.id));
  const service = (plugin: CatalogPlugin, wanted: boolean): RunnableService => ({
    manifest: plugin.manifest,
    directory: plugin.directory,
    wanted,
    within: within.has(plugin.manifest.id),
    placement: plugin.shipped?.placement ?? placementOf(plugin.manifest),
    singleton: plugin.shipped?.singleton ?? plugin.manifest.placement.singleton ?? false,
    minInstances: plugin.shipped?.min_instances ?? 1,
  });
  const machine: LocalProcessHost = new LocalProcessHost({
    ip: options.ip,
    dataDir: options.dataDir,
    environment,
    services: [
      ...platform.map(plugin => service(plugin, options.services.includes(plugin.manifest.id) || plugin.manifest.placement.tier === 0)),
      ...others.map(plugin => service(plugin, false)),
      ...verticals.map(plugin => service(plugin, true)),
    ],
    bootstrap: started =>
      started.manifest.vertical === 'platform'
        ? platformBootstrap(started, parts)
        : verticalBootstrap(started, options, { ...parts, siblings: machine.manifestsOf(started.manifest.vertical) }),
    told: fingerprint(base),
    build: () => buildHash({ fresh: true }),
    releases: new Releases(options.releasesDir),
    health: new HealthLook(
      () => host.clientTls(),
      label => platformHost(label, options.domain),
    ),
    kv: host.kv,
    log: host.log,
    leave,
    read: async directory => {
      const plugin = await readBehindWalls(directory);
      const known = new Map([...platform, ...others, ...verticals].map(({ manifest }) => [manifest.id, manifest]));
      refuseFindings(plugin.manifest, known, { outside: true });
      return verticalService(plugin);
    },
    invite: async (ip, services) => {
      // Another machine cannot make what the administrator of the database makes.
      for (const { manifest } of others) await stores.ensureService(manifest.id);
      return invite(host.kv, base, { ip, services });
    },
  });
  return machine;
}

/** A vertical that came later, as something this machine can run. */
export const verticalService = ({ manifest, directory }: FoundPlugin): RunnableService => ({
  manifest,
  directory,
  wanted: true,
  within: false,
  placement: placementOf(manifest),
  singleton: manifest.placement.singleton ?? false,
  minInstances: 1,
});

function placementOf({ placement: { pin, anti = [] } }: Manifest): readonly string[] {
  return [...(pin ? [`pin:${pin}`] : []), ...anti.map(service => `anti:${service}`)];
}

async function platformBootstrap({ manifest, wanted }: RunnableService, { base, stores, host }: MachineParts): Promise<Bootstrap> {
  await stores.answer();
  if (!wanted) await stores.ensureService(manifest.id);
  return {
    ...base,
    build: buildHash({ fresh: true }),
    manifests: wanted ? base.manifests : [...base.manifests, manifest],
    enrollment: await enrollmentsOf(host.kv, manifest, base.ip as string),
  };
}

/**
 * A vertical is somebody else's code: a process, a certificate, a database role and a key-value login of its own (day-one, Plugins).
 * Everything it needs is seen to before every start: what was away at the first one is made good at the next.
 */
async function verticalBootstrap(
  { manifest }: RunnableService,
  { dataDir }: HostOptions,
  { base, stores, host, siblings }: MachineParts & { readonly siblings: readonly Manifest[] },
): Promise<Bootstrap> {
  await stores.ensureService(manifest.id);
  await host.found(manifest);
  await host.registerWorkload(manifest);
  await host.registerEvents(manifest);
  return {
    ...base,
    build: buildHash({ fresh: true }),
    // Its data directory is its own: nothing of the platform's keys lies below it.
    dataDir: join(dataDir, 'verticals', manifest.id),
    keyValueUrl: await stores.restrictedKeyValueUrl(manifest.id),
    manifests: [...base.manifests, ...siblings],
    enrollment: await enrollmentsOf(host.kv, manifest, base.ip as string),
  };
}

/** Of names, addresses and trust: a process that was told others cannot be kept. */
function fingerprint({ domain, ip, production, edgePort, pqMode, anchors, database, keyValueUrl }: Bootstrap): string {
  return createHash('sha256')
    .update(JSON.stringify({ domain, ip, production, edgePort, pqMode, anchors, database, keyValueUrl }))
    .digest('base64url');
}
