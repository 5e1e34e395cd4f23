import type { KeySeeds, Sealed, SealedBox, TaskDef } from '@platform/sdk';

/** How what a task carries is sealed while it waits, and opened when it runs; `undefined` for one that carries nothing to hide. */
export function sealedTask(service: string, name: string, { sealed: key }: TaskDef, keys: Readonly<Record<string, SealedBox | KeySeeds>>) {
  if (key === undefined) return undefined;
  const box = keys[key];
  if (!box || !('seal' in box)) throw new Error(`${service} seals the task ${name} with the key ${key}, which seals nothing`);
  const purpose = taskPurpose(service, name);
  return {
    seal: (payload: unknown): { sealed: Sealed } => ({ sealed: box.seal(purpose, JSON.stringify(payload)) }),
    open: (payload: unknown): unknown => {
      const opened = box.open(purpose, (payload as { sealed: Sealed }).sealed);
      return opened === undefined ? undefined : JSON.parse(opened);
    },
  };
}

export const taskPurpose = (service: string, name: string): string => `${service}:task:${name}`;
