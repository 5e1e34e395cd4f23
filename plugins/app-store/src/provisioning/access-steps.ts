import type { Ctx } from '../context.ts';
import { groupsOf, roleGroup, roleName, rolesOf, usersGroup } from './access-names.ts';
import type { ProvisioningStep } from './provisioning-step.ts';

/** What an install makes at the identity service, by its verbs alone (APP-010, APP-011): roles, groups, their roles, a sign-up role. */
export function accessSteps({ services: { identity } }: Ctx): ProvisioningStep[] {
  return [
    {
      name: 'roles',
      async do(instance, signal) {
        for (const { name, scopes } of instance.manifest.roles)
          await identity.putRole({
            params: { role: roleName(instance, name) },
            body: { scopes: [...scopes], description: `${name} of ${instance.name}`.slice(0, 500) },
            targetEnvId: instance.env_id,
            signal,
          });
        return undefined;
      },
      async undo(instance, signal) {
        for (const role of rolesOf(instance)) await identity.deleteRole({ params: { role }, targetEnvId: instance.env_id, signal });
      },
    },
    {
      name: 'groups',
      async do(instance, signal) {
        for (const group of groupsOf(instance))
          await identity.putGroup({
            params: { group },
            body: { description: `People of ${instance.name}`.slice(0, 500) },
            targetEnvId: instance.env_id,
            signal,
          });
        return undefined;
      },
      async undo(instance, signal) {
        for (const group of groupsOf(instance)) await identity.deleteGroup({ params: { group }, targetEnvId: instance.env_id, signal });
      },
    },
    {
      name: 'group_roles',
      async do(instance, signal) {
        for (const { name } of instance.manifest.roles)
          await identity.putGroupRole({
            params: { group: roleGroup(instance, name), role: roleName(instance, name) },
            targetEnvId: instance.env_id,
            signal,
          });
        return undefined;
      },
      // They go with the groups and the roles.
      undo: async () => undefined,
    },
    {
      name: 'signup_wiring',
      async do(instance, signal) {
        const { default_signup_role: role } = instance.manifest;
        if (role !== null)
          await identity.putSignUpRole({
            params: { group: usersGroup(instance), role: roleName(instance, role) },
            targetEnvId: instance.env_id,
            signal,
          });
        return undefined;
      },
      async undo(instance, signal) {
        const { default_signup_role: role } = instance.manifest;
        if (role !== null)
          await identity.deleteSignUpRole({
            params: { group: usersGroup(instance), role: roleName(instance, role) },
            targetEnvId: instance.env_id,
            signal,
          });
      },
    },
  ];
}
