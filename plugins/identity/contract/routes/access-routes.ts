import { del, get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Host, Name, nullable, Scopes } from '../schema.ts';

const ofRole = { role: Name };
const ofGroup = { group: Name };
const ofGroupUser = { group: Name, user_id: Id };
const ofUserRole = { user_id: Id, role: Name };
const ofUser = { user_id: Type.String({ maxLength: 330 }) };
// A person who is in nothing is out of it: a removal is 204 always, for a name that is no id as well (G-K-02).
const ofGroupAnybody = { group: Name, ...ofUser };
const ofAnybodyRole = { ...ofUser, role: Name };
const ofTemplateId = { template: Type.Union([Type.Literal('org'), Type.Literal('env')]), id: Id };

const verbs = 'auth:membership:write';

/** Roles, groups and who is in them: the verbs of the access model, for workloads (G-AUTH). */
export const accessRoutes = {
  putRole: put('/v1/admin/roles/{role}', {
    params: ofRole,
    summary: 'Make or change a role',
    gate: verbs,
    body: Type.Object({ scopes: Scopes, description: Type.Optional(Type.String({ maxLength: 500 })) }),
    returns: Type.Object({ name: Name, env_id: Id, scopes: Scopes, created: Type.Boolean() }),
    problems: ['target_env_missing'],
  }),
  nestRole: put('/v1/admin/roles/{role}/nested/{child}', {
    params: { role: Name, child: Name },
    summary: 'Nest a role in another',
    gate: verbs,
    returns: Type.Object({ role: Name, child: Name }),
    problems: ['target_env_missing', 'role_not_found', 'role_cycle'],
  }),
  deleteRole: del('/v1/admin/roles/{role}', {
    params: ofRole,
    summary: 'Take a role away from everybody',
    gate: verbs,
    problems: ['target_env_missing', 'access_protected'],
  }),
  putGroup: put('/v1/admin/groups/{group}', {
    params: ofGroup,
    summary: 'Make a group',
    gate: verbs,
    body: Type.Object({ description: Type.Optional(Type.String({ maxLength: 500 })) }),
    returns: Type.Object({ group_id: Id, name: Name, env_id: Id, created: Type.Boolean() }),
    problems: ['target_env_missing'],
  }),
  deleteGroup: del('/v1/admin/groups/{group}', {
    params: ofGroup,
    summary: 'Take a group away, with who is in it',
    gate: verbs,
    problems: ['target_env_missing', 'access_protected'],
  }),
  putGroupRole: put('/v1/admin/groups/{group}/roles/{role}', {
    params: { group: Name, role: Name },
    summary: 'Give a group a role',
    gate: verbs,
    returns: Type.Object({ group: Name, role: Name }),
    problems: ['target_env_missing', 'group_not_found', 'role_not_found'],
  }),
  putGroupMember: put('/v1/admin/groups/{group}/members/{user_id}', {
    params: ofGroupUser,
    summary: 'Put a person into a group',
    gate: verbs,
    returns: Type.Object({ group: Name, user_id: Id }),
    problems: ['target_env_missing', 'group_not_found', 'user_not_found'],
  }),
  deleteGroupMember: del('/v1/admin/groups/{group}/members/{user_id}', {
    params: ofGroupAnybody,
    summary: 'Take a person out of a group',
    gate: verbs,
    problems: ['target_env_missing'],
  }),
  putUserRole: put('/v1/admin/users/{user_id}/roles/{role}', {
    params: ofUserRole,
    summary: 'Give a person a role',
    gate: verbs,
    returns: Type.Object({ user_id: Id, role: Name }),
    problems: ['target_env_missing', 'user_not_found', 'role_not_found'],
  }),
  deleteUserRole: del('/v1/admin/users/{user_id}/roles/{role}', {
    params: ofAnybodyRole,
    summary: 'Take a role from a person',
    gate: verbs,
    problems: ['target_env_missing'],
  }),
  userGroups: get('/v1/admin/users/{user_id}/groups', {
    params: ofUser,
    summary: 'Groups of a person, live',
    gate: 'auth:membership:read',
    returns: Type.Object({ user_id: Type.String(), groups: Type.Array(Type.Object({ name: Name, env_id: Id })), as_of: Type.String() }),
    problems: ['user_id_missing'],
  }),
  groupMembers: get('/v1/admin/groups/{group}/members', {
    params: ofGroup,
    summary: 'Members of a group',
    gate: 'auth:membership:read',
    query: PageQuery,
    returns: Page(Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, joined_at: Type.String() })),
  }),
  membersOf: get('/v1/admin/members', {
    summary: 'People of several groups of a realm, each once with the groups they are in',
    gate: 'auth:membership:read',
    query: {
      ...PageQuery,
      groups: Type.String({ pattern: '^[a-z0-9:_.-]{1,200}(,[a-z0-9:_.-]{1,200}){0,9}$' }),
      user_id: Type.Optional(Id),
    },
    returns: Page(
      Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, groups: Type.Array(Name), joined_at: Type.String() }),
    ),
    problems: ['target_env_missing', 'invalid_cursor'],
    hidden: true,
  }),
  leaveGroups: post('/v1/admin/users/{user_id}/leave', {
    params: { user_id: Id },
    summary: 'Take a person out of every group, in any realm, whose name starts with one of these',
    gate: verbs,
    body: Type.Object({ prefixes: Type.Array(Type.String({ pattern: '^[a-z0-9:_.-]{1,199}:$' }), { minItems: 1, maxItems: 5_000 }) }),
    returns: Type.Object({ left: Type.Array(Type.Object({ name: Name, env_id: Id })) }),
    hidden: true,
  }),
  userScopes: get('/v1/admin/users/{user_id}/scopes', {
    params: ofUser,
    summary: 'What a person may do in an environment, live',
    gate: 'auth:membership:read',
    query: { env_id: Id },
    returns: Type.Object({ scopes: Scopes, as_of: Type.String() }),
    problems: ['user_id_missing'],
  }),
  provisionAccess: post('/v1/admin/access', {
    summary: 'Make the access model of an organization or environment',
    gate: verbs,
    idempotency: 'own',
    body: Type.Object({
      template: Type.Union([Type.Literal('org'), Type.Literal('env')]),
      org_id: Id,
      env_id: Type.Optional(Id),
      owner: Type.Optional(Id),
      host: Type.Optional(Host),
    }),
    returns: Type.Object({ groups: Type.Array(Name) }),
    problems: ['user_not_found', 'host_taken', 'name_invalid'],
    hidden: true,
  }),
  describeAccess: get('/v1/admin/access/{template}/{id}', {
    params: ofTemplateId,
    summary: 'Whether the access model of an organization or environment is there',
    gate: 'auth:membership:read',
    returns: Type.Object({ groups: Type.Array(Name) }),
    hidden: true,
  }),
  removeAccess: del('/v1/admin/access/{template}/{id}', {
    params: ofTemplateId,
    summary: 'Take an access model away',
    gate: verbs,
    problems: ['name_invalid'],
    hidden: true,
  }),
  scopeHolders: get('/v1/admin/scopes/{scope}/holders', {
    params: { scope: Type.String({ maxLength: 200 }) },
    summary: 'Who holds a scope in an environment, live',
    gate: 'auth:membership:read',
    query: { ...PageQuery, env_id: Id },
    returns: Page(Type.Object({ user_id: Id, email: Type.String(), display_name: nullable, via: Type.Array(Type.String()) })),
    problems: ['name_invalid'],
    hidden: true,
  }),
} as const;
