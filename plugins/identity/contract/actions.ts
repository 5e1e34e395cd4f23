import type { Action } from '@platform/sdk/contract';

/** What may be done at the identity service, and by whom. */
export const actions = {
  'auth:membership:read': { title: 'Read roles, groups and live scopes', principals: ['machine'] },
  'auth:membership:write': { title: 'Change roles and groups', principals: ['machine'], bound: true },
  'auth:clients:write': { title: 'Register and manage applications', grants: 'write', bound: 'machine' },
  'auth:keys:admin': { title: 'See and rotate the signing keys' },
  'auth:users:read': { title: 'See people and sessions', grants: 'admin' },
  'auth:users:admin': { title: 'Manage people and sessions' },
  'auth:recoveries:admin': { title: 'Decide on account recoveries', grants: 'admin', principals: ['user', 'delegated'] },
  'auth:realms:admin': { title: 'Say how people sign in', grants: 'admin', principals: ['user', 'delegated'] },
  'scim:read': { title: 'Read the directory of an environment', grants: 'admin' },
  'scim:write': { title: 'Change the directory of an environment', grants: 'admin' },
} as const satisfies Readonly<Record<string, Action>>;
