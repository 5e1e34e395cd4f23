import type { AnyContract, PlatformContext } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';
import { foreignCheck } from '../../http/schema/foreign-schema.ts';
import { Validator } from '../../http/schema/schema.ts';
import { catalogActions } from '../catalog-actions.ts';
import { livingServices } from '../platform-calls.ts';
import { LiveCatalog } from './live-catalog.ts';
import type { PluginContextParts } from './plugin-context-parts.ts';

/** The catalog as a plugin reads it: the list of actions is another one only when the manifests are. */
export function pluginCatalog(parts: PluginContextParts): PlatformContext<AnyContract>['catalog'] {
  const { manifests } = parts;
  let live: LiveCatalog | undefined;
  const services = () => (live ??= liveCatalog(parts));
  let listed: { readonly manifests: readonly Manifest[]; readonly actions: ReturnType<typeof catalogActions> } | undefined;
  return {
    manifests,
    changes: () => services().changes(),
    follow: work => services().follow(work),
    actions: () => {
      const now = manifests();
      if (listed?.manifests !== now) listed = { manifests: now, actions: now.flatMap(catalogActions) };
      return listed.actions;
    },
    checkOf: (schema, { base = '', foreign = false } = {}) => {
      if (foreign) return foreignCheck(schema, base);
      const validator = new Validator(schema);
      return value => (validator.check(value) ? [] : validator.faults(value, base));
    },
  };
}

function liveCatalog({ manifest, caller, workloadOf, kv, clock, log, owned }: PluginContextParts): LiveCatalog {
  if (!manifest.uses['sys']?.includes('sys:read'))
    throw new Error(`${manifest.id} reads the registered services: its contract must say uses: { sys: ['sys:read'] }`);
  return owned.own(new LiveCatalog({ read: signal => livingServices(caller, workloadOf(undefined), signal), kv, clock, log }));
}
