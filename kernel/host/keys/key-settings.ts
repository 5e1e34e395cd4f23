import type { KeyDecl } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';
import type { ConfigFault } from '../boot/configuration.ts';

/** What the settings say of one key: the key itself or a secret reference, and those that came before. */
export interface KeySetting {
  readonly variable: string;
  readonly value: string | undefined;
  readonly previous: readonly string[];
}

/** Of every key of a service, by its name in the contract. */
export type KeySettings = Readonly<Record<string, KeySetting>>;

type KeyOwner = Pick<Manifest, 'id' | 'vertical' | 'keys'>;

/** The names of a key's settings, documented or made from its own. */
export function keyVariables(
  { id, vertical }: KeyOwner,
  name: string,
  { use, documented, previous }: KeyDecl,
): { variable: string; previous: string | undefined } {
  const variable = documented ?? [vertical === 'platform' ? 'platform' : vertical, id, name, 'key_ref'].join('_').toUpperCase();
  return { variable, previous: use === 'seal' ? (previous ?? `${variable}_PREVIOUS`) : undefined };
}

/** Reads the settings of a service's keys. In production an absent one is a fault. */
export function readKeySettings(
  owner: KeyOwner,
  environment: Readonly<Record<string, string | undefined>>,
  production: boolean,
): { keys: KeySettings; faults: ConfigFault[] } {
  const faults: ConfigFault[] = [];
  const entries = Object.entries(owner.keys).map(([name, declared]) => {
    const { variable, previous } = keyVariables(owner, name, declared);
    const value = environment[variable] || undefined;
    if (production && value === undefined) faults.push({ variable, purpose: declared.description, fault: 'is missing' });
    return [name, { variable, value, previous: (previous && environment[previous]?.split(',').filter(Boolean)) || [] }] as const;
  });
  return { keys: Object.fromEntries(entries), faults };
}

/** Every setting of a service's keys, with what it is for. */
export function explainKeys(owner: KeyOwner): { variable: string; description: string }[] {
  return Object.entries(owner.keys).flatMap(([name, declared]) => {
    const { variable, previous } = keyVariables(owner, name, declared);
    const own = { variable, description: declared.description };
    return previous === undefined
      ? [own]
      : [
          own,
          {
            variable: previous,
            description: `Keys that came before ${variable}, separated by commas: they open what they sealed, and seal nothing`,
          },
        ];
  });
}
