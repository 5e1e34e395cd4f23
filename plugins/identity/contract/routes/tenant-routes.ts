import { get, Id, Type } from '@platform/sdk/contract';

const Levels = Type.Object({ owners: Type.Array(Id), admins: Type.Array(Id), viewers: Type.Array(Id) });

/** Where people belong, in the words of the registry (G-SYS-03). */
export const tenantRoutes = {
  tenantsOf: get('/v1/admin/users/{user_id}/tenants', {
    params: { user_id: Id },
    summary: 'Organizations and environments whose groups a person is in, by level, live',
    gate: 'auth:membership:read',
    query: { tenants: Type.Optional(Type.String({ pattern: '^[0-9a-f-]{36}(,[0-9a-f-]{36}){0,9}$' })) },
    returns: Type.Object({ org: Levels, env: Levels }),
    problems: ['user_id_missing'],
    hidden: true,
  }),
};
