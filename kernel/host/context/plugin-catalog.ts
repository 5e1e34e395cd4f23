import type { AnyContract, Context } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';
import { foreignCheck } from '../../http/foreign-schema.ts';
import { Validator } from '../../http/schema.ts';
import { catalogActions } from '../catalog-actions.ts';

/** The catalog as a plugin reads it: the list of actions is another one only when the manifests are. */
export function pluginCatalog(manifests: () => readonly Manifest[]): Context<AnyContract>['catalog'] {
  let listed: { readonly manifests: readonly Manifest[]; readonly actions: ReturnType<typeof catalogActions> } | undefined;
  return {
    manifests,
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
