import type { Action } from '../contract/action.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { FieldFault } from '../contract/problem.ts';

/** Every manifest that this process knows, read only. */
export interface Catalog {
  manifests(): readonly Manifest[];
  actions(): readonly {
    scope: string;
    service: string;
    vertical: string;
    title: string;
    admin: boolean;
    grants: Action['grants'] | undefined;
    machineOnly: boolean;
  }[];
  /**
   * A check by the schema of a declared event: no fault when the value fits, each with a JSON pointer that begins with `base` when not.
   * `foreign` for a schema that no loaded manifest has: it is interpreted, and its patterns do not count. Make it once and keep it.
   */
  checkOf(schema: object, options?: { base?: string; foreign?: boolean }): (value: unknown) => readonly FieldFault[];
}
