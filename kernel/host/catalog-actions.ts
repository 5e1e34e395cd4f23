import type { Manifest } from '../base/manifest.ts';
import { actionKey } from '../identity/tokens/scope-name.ts';

type CatalogAction = ReturnType<typeof read>[number];
/** A manifest never changes: what it declares is read once. */
const known = new WeakMap<Manifest, readonly CatalogAction[]>();

/** Actions of one service, its policy administration included, as the scope catalog lists them. */
export function catalogActions(manifest: Manifest): readonly CatalogAction[] {
  const actions = known.get(manifest) ?? read(manifest);
  known.set(manifest, actions);
  return actions;
}

function read(manifest: Manifest) {
  const declared = Object.entries(manifest.actions).map(([action, { title, grants, principals }]) => ({
    action,
    title,
    grants,
    principals,
  }));
  const policy = [
    { action: `${manifest.id}:metrics:read`, title: `See figures of ${manifest.title}`, grants: undefined, principals: undefined },
    { action: `${manifest.id}:policy:read`, title: `Read policies of ${manifest.title}`, grants: undefined, principals: undefined },
    { action: `${manifest.id}:policy:admin`, title: `Change policies of ${manifest.title}`, grants: undefined, principals: undefined },
    ...('work' in manifest.pages
      ? [
          {
            action: `${manifest.id}:work:read`,
            title: `See queues and jobs of ${manifest.title}`,
            grants: undefined,
            principals: undefined,
          },
          {
            action: `${manifest.id}:work:admin`,
            title: `Run jobs and replay tasks of ${manifest.title}`,
            grants: undefined,
            principals: undefined,
          },
        ]
      : []),
  ].filter(({ action }) => !(action in manifest.actions));
  return [...declared, ...policy].map(({ action, title, grants, principals }) => ({
    scope: actionKey(manifest.vertical, action),
    service: manifest.id,
    vertical: manifest.vertical,
    title,
    admin: action.endsWith(':admin'),
    grants,
    /** Whether only workloads may hold it. */
    machineOnly: principals !== undefined && principals.every(principal => principal === 'machine'),
  }));
}

/** Scopes that policies of a service may name; nothing for a service nobody knows. */
export function actionsOf(manifests: readonly Manifest[], service: string): readonly string[] | undefined {
  const manifest = manifests.find(({ id }) => id === service);
  return manifest && catalogActions(manifest).map(({ scope }) => scope);
}
