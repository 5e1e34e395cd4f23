import type { accessRoutes } from '../../contract/routes/access-routes.ts';
import type { tenantRoutes } from '../../contract/routes/tenant-routes.ts';
import type { Handlers } from '../context.ts';
import type { AccessModel } from './access-model.ts';
import type { AccessTemplates } from './access-templates.ts';
import type { EffectiveAccess } from './effective-access.ts';
import type { ScopeHolders } from './scope-holders.ts';

interface Parts {
  readonly access: EffectiveAccess;
  readonly holders: ScopeHolders;
  readonly model: AccessModel;
  readonly templates: AccessTemplates;
}

/** Routes of roles, groups and what they give to who answers them. */
export const accessHandlers = ({
  access,
  holders,
  model,
  templates,
}: Parts): Handlers<keyof typeof accessRoutes | keyof typeof tenantRoutes> => ({
  putRole: request => model.putRole(request),
  nestRole: request => model.nestRole(request),
  putGroup: request => model.putGroup(request),
  deleteRole: request => model.deleteRole(request),
  deleteGroup: request => model.deleteGroup(request),
  putGroupRole: request => model.putGroupRole(request),
  putGroupMember: request => model.putGroupMember(request),
  deleteGroupMember: request => model.deleteGroupMember(request),
  putUserRole: request => model.putUserRole(request),
  deleteUserRole: request => model.deleteUserRole(request),
  userGroups: request => access.groups(request),
  tenantsOf: request => access.tenants(request),
  groupMembers: request => access.members(request),
  membersOf: request => access.membersOf(request),
  leaveGroups: request => model.leaveGroups(request),
  userScopes: request => access.scopes(request),
  scopeHolders: request => holders.list(request),
  provisionAccess: request => templates.provision(request),
  describeAccess: request => templates.describe(request),
  removeAccess: request => templates.remove(request),
});
