import type { AnyPlugin } from '@platform/sdk';
import { manifestOf } from '@platform/kernel/base/manifest';
import { readSettings } from '@platform/kernel/host/boot/settings';

/** A plugin with its manifest and what it reads of an environment. Throws with every fault of the settings. */
export function loadedPlugin(plugin: AnyPlugin, environment: Readonly<Record<string, string>>) {
  const manifest = manifestOf(plugin.contract, '0.0.0-test');
  const { config, keys, faults } = readSettings(manifest, environment, false);
  if (faults.length > 0) throw new Error(faults.map(({ variable, fault }) => `${variable} ${fault}`).join('; '));
  return { plugin, manifest, config, keys };
}
