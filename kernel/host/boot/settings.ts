import type { Manifest } from '../../base/manifest.ts';
import { type ConfigFault, readConfig } from './configuration.ts';
import { type KeySettings, readKeySettings } from '../keys/key-settings.ts';

/** What the environment says to one service: its configuration and its keys. */
export interface ServiceSettings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly keys: KeySettings;
}

/** Reads both; every fault is reported at once. */
export function readSettings(
  manifest: Manifest,
  environment: Readonly<Record<string, string | undefined>>,
  production: boolean,
): ServiceSettings & { readonly faults: readonly ConfigFault[] } {
  const { config, faults } = readConfig(manifest.config, environment);
  const { keys, faults: absent } = readKeySettings(manifest, environment, production);
  return { config, keys, faults: [...faults, ...absent] };
}
