import { SYSTEM } from '@platform/sdk';
import { as, newId } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Access } from '../fixtures/access.ts';

let access: Access;
beforeAll(async () => {
  access = await Access.start();
});
afterAll(() => access[Symbol.asyncDispose]());

test('REG-035 REG-036 the console of a fresh platform has its group, role and bootstrap administrator under the fixed ids', async () => {
  const at = { env_id: '00000000-0000-7000-8000-000000000002', name: 'platform:console:users' };
  const [group] = await access.world.sql`select group_id from user_groups where env_id = ${at.env_id} and name = ${at.name}`;
  expect(group).toEqual({ group_id: '00000000-0000-7000-8000-000000000004' });
  const [role] = await access.world
    .sql`select role_id from roles join group_roles on group_roles.role = roles.name and group_roles.env_id = roles.env_id
      where group_name = ${at.name} and roles.env_id = ${at.env_id}`;
  expect(role).toEqual({ role_id: '00000000-0000-7000-8000-000000000005' });
  const members = await access.world
    .sql`select membership_id, user_id from group_members where env_id = ${at.env_id} and group_name = ${at.name}`;
  expect([...members]).toEqual([
    { membership_id: '00000000-0000-7000-8000-000000000006', user_id: '00000000-0000-7000-8000-000000000007' },
  ]);
});

describe('the verbs', () => {
  test('IDN-002 IDN-003 role, nesting, group, group role, member and user role: once or twice, the same state and success', async () => {
    const [ada, lin] = [await access.person(), await access.person()];
    const at = { targetEnvId: access.env };
    const all = async () => [
      await access.registry.putRole({ params: { role: 'acme:clerk' }, body: { scopes: ['acme:lending:read'] }, ...at }),
      await access.registry.putRole({ params: { role: 'acme:chief' }, body: { scopes: ['acme:lending:decide'] }, ...at }),
      await access.registry.nestRole({ params: { role: 'acme:chief', child: 'acme:clerk' }, ...at }),
      await access.registry.putGroup({ params: { group: 'acme:office' }, body: {}, ...at }),
      await access.registry.putGroupRole({ params: { group: 'acme:office', role: 'acme:chief' }, ...at }),
      await access.registry.putGroupMember({ params: { group: 'acme:office', user_id: ada }, ...at }),
      await access.registry.putUserRole({ params: { user_id: lin, role: 'acme:clerk' }, ...at }),
    ];
    const first = await all();
    const state = await access.snapshot();
    const second = await all();
    expect(await access.snapshot()).toBe(state);
    expect(first.map(answer => 'created' in answer && answer.created)).toEqual([true, true, false, true, false, false, false]);
    expect(second).toEqual(first.map(answer => ('created' in answer ? { ...answer, created: false } : answer)));
    expect(await access.scopes(ada, access.env)).toEqual(['acme:lending:decide', 'acme:lending:read']);
    expect(await access.scopes(lin, access.env)).toEqual(['acme:lending:read']);
    // A member taken out twice is out.
    for (let time = 0; time < 2; time++) {
      await access.registry.deleteGroupMember({ params: { group: 'acme:office', user_id: ada }, ...at });
      await access.registry.deleteUserRole({ params: { user_id: lin, role: 'acme:clerk' }, ...at });
    }
    expect([await access.scopes(ada, access.env), await access.scopes(lin, access.env)]).toEqual([[], []]);
  });

  test('REG-004 every change of who can do what is in the audit trail with who made it, and a repeat is none', async () => {
    const ada = await access.person();
    const at = { targetEnvId: access.env };
    const verbs = access.registry;
    const twice = async (verb: () => Promise<unknown>) => {
      for (let time = 0; time < 2; time++) await verb();
    };
    const role = { role: 'traced:clerk' };
    const group = { group: 'traced:office' };
    await twice(() => verbs.putRole({ params: role, body: { scopes: ['a:one', 'a:two'] }, ...at }));
    await twice(() => verbs.putRole({ params: role, body: { scopes: ['a:two', 'a:three'] }, ...at }));
    await twice(() => verbs.putRole({ params: { role: 'traced:chief' }, body: { scopes: [] }, ...at }));
    await twice(() => verbs.nestRole({ params: { role: 'traced:chief', child: 'traced:clerk' }, ...at }));
    await twice(() => verbs.putGroup({ params: group, body: {}, ...at }));
    await twice(() => verbs.putGroupRole({ params: { ...group, ...role }, ...at }));
    await twice(() => verbs.putSignUpRole({ params: { ...group, ...role }, ...at }));
    await twice(() => verbs.deleteSignUpRole({ params: { ...group, ...role }, ...at }));
    await twice(() => verbs.putGroupMember({ params: { ...group, user_id: ada }, ...at }));
    await twice(() => verbs.deleteGroupMember({ params: { ...group, user_id: ada }, ...at }));
    await verbs.putGroupMember({ params: { ...group, user_id: ada }, ...at });
    await twice(() => verbs.leaveGroups({ params: { user_id: ada }, body: { prefixes: ['traced:'] } }));
    await twice(() => verbs.putUserRole({ params: { user_id: ada, ...role }, ...at }));
    await twice(() => verbs.deleteUserRole({ params: { user_id: ada, ...role }, ...at }));
    await twice(() => verbs.deleteGroup({ params: group, ...at }));
    await twice(() => verbs.deleteRole({ params: role, ...at }));

    const admin = access.world.host.by(as.user('auth:users:read', 'sys:sys:admin'));
    const { items } = await admin.listOwnAudit({ query: { env_id: access.env, limit: 500 } });
    const entries = items.filter(({ resource }) => resource?.id === ada || resource?.id.startsWith('traced:')).reverse();
    for (const entry of entries) expect(entry).toMatchObject({ service: 'auth', actor: { kind: 'workload', id: 'sys' } });
    const member = { user_id: ada };
    expect(entries.map(({ action, resource, details }) => [action, `${resource?.type} ${resource?.id}`, details])).toEqual([
      ['auth.role.created', 'role traced:clerk', { added: ['a:one', 'a:two'], removed: [] }],
      ['auth.role.changed', 'role traced:clerk', { added: ['a:three'], removed: ['a:one'] }],
      ['auth.role.created', 'role traced:chief', { added: [], removed: [] }],
      ['auth.role.nested', 'role traced:chief', { child: 'traced:clerk' }],
      ['auth.group.created', 'group traced:office', undefined],
      ['auth.group.role_given', 'group traced:office', role],
      ['auth.group.sign_up_role_given', 'group traced:office', role],
      ['auth.group.sign_up_role_taken', 'group traced:office', role],
      ['auth.group.member_added', 'group traced:office', member],
      ['auth.group.member_removed', 'group traced:office', member],
      ['auth.group.member_added', 'group traced:office', member],
      ['auth.group.member_removed', 'group traced:office', member],
      ['auth.user.role_given', `user ${ada}`, role],
      ['auth.user.role_taken', `user ${ada}`, role],
      ['auth.group.deleted', 'group traced:office', undefined],
      ['auth.role.deleted', 'role traced:clerk', undefined],
    ]);
  });

  test('REG-004 what workloads may do, what scopes go with and where people sign in is recorded with what it was', async () => {
    const { registry: verbs, env } = access;
    const host = 'auth.traced.acme.localhost';
    for (const scopes of [['acme:lending:read'], ['acme:lending:read'], ['acme:lending:write']])
      await verbs.putWorkload({ params: { name: 'traced' }, body: { vertical: 'acme', scopes } });
    for (const grants of ['read', 'read', 'admin'] as const)
      await verbs.putGrants({ params: { vertical: 'traced' }, body: { scopes: [{ scope: 'traced:x:read', grants }] } });
    for (let time = 0; time < 2; time++) await verbs.putRealm({ params: { env_id: env }, body: { host, org_id: access.world.org } });

    const admin = access.world.host.by(as.user('auth:users:read', 'sys:sys:admin'));
    const recorded = async (env_id: string, action: string) =>
      (await admin.listOwnAudit({ query: { env_id, action } })).items
        .filter(({ resource }) => [env, 'traced'].includes(resource?.id ?? ''))
        .map(({ actor, details }) => [actor.id, details])
        .reverse();
    const [read, write] = ['read', 'write'].map(right => ({ vertical: 'acme', scopes: [`acme:lending:${right}`] }));
    expect(await recorded(SYSTEM.envId, 'auth.workload.registered')).toEqual([
      ['sys', { to: read }],
      ['sys', { from: read, to: write }],
    ]);
    expect(await recorded(SYSTEM.envId, 'auth.grants.replaced')).toEqual([
      ['sys', { from: [], to: ['traced:x:read with read'] }],
      ['sys', { from: ['traced:x:read with read'], to: ['traced:x:read with admin'] }],
    ]);
    expect((await recorded(env, 'auth.realm.updated')).at(-1)).toEqual([
      'sys',
      { changes: { host: { from: 'auth.prod.acme.localhost', to: host } } },
    ]);
  });

  test('a repeated role has exactly the scopes of the last call', async () => {
    const ada = await access.person();
    await access.registry.putRole({ params: { role: 'changing' }, body: { scopes: ['a:one', 'a:two'] }, targetEnvId: access.env });
    await access.registry.putUserRole({ params: { user_id: ada, role: 'changing' }, targetEnvId: access.env });
    await access.registry.putRole({
      params: { role: 'changing' },
      body: { scopes: ['platform:a:two', 'a:three'] },
      targetEnvId: access.env,
    });
    expect(await access.scopes(ada, access.env)).toEqual(['a:three', 'a:two']);
  });

  test('a role and a group are taken away once or twice, with all that hung on them; those of tenants are not', async () => {
    const ada = await access.person();
    const at = { targetEnvId: access.env };
    await access.registry.putRole({ params: { role: 'app:gone:editor' }, body: { scopes: ['gone:write'] }, ...at });
    await access.registry.putGroup({ params: { group: 'app:gone:users' }, body: {}, ...at });
    await access.registry.putGroupRole({ params: { group: 'app:gone:users', role: 'app:gone:editor' }, ...at });
    await access.registry.putSignUpRole({ params: { group: 'app:gone:users', role: 'app:gone:editor' }, ...at });
    await access.registry.putGroupMember({ params: { group: 'app:gone:users', user_id: ada }, ...at });
    expect(await access.scopes(ada, access.env)).toEqual(['gone:write']);
    for (let time = 0; time < 2; time++) await access.registry.deleteGroup({ params: { group: 'app:gone:users' }, ...at });
    expect(await access.scopes(ada, access.env)).toEqual([]);
    for (let time = 0; time < 2; time++) await access.registry.deleteRole({ params: { role: 'app:gone:editor' }, ...at });
    await expect(access.registry.putUserRole({ params: { user_id: ada, role: 'app:gone:editor' }, ...at })).rejects.toMatchObject({
      code: 'role_not_found',
    });
    const system = { targetEnvId: SYSTEM.envId };
    await expect(access.registry.deleteGroup({ params: { group: 'platform:console:users' }, ...system })).rejects.toMatchObject({
      code: 'access_protected',
      status: 409,
    });
    await expect(access.registry.deleteRole({ params: { role: 'platform:org:owner' }, ...system })).rejects.toMatchObject({
      code: 'access_protected',
      status: 409,
    });
  });

  test('IDN-013 act in the realm the caller names, and ask for it', async () => {
    const ada = await access.person();
    await expect(access.registry.putRole({ params: { role: 'nowhere' }, body: { scopes: [] } })).rejects.toMatchObject({
      code: 'target_env_missing',
      status: 400,
    });
    await access.registry.putRole({ params: { role: 'local' }, body: { scopes: ['a:local'] }, targetEnvId: access.env });
    await access.registry.putUserRole({ params: { user_id: ada, role: 'local' }, targetEnvId: access.env });
    expect([await access.scopes(ada, access.env), await access.scopes(ada, SYSTEM.envId)]).toEqual([['a:local'], []]);
    await expect(access.registry.putUserRole({ params: { user_id: ada, role: 'local' }, targetEnvId: SYSTEM.envId })).rejects.toMatchObject(
      { code: 'role_not_found' },
    );
  });

  test('never fabricate what they refer to', async () => {
    const ada = await access.person();
    const at = { targetEnvId: access.env };
    await expect(
      access.registry.putGroupMember({ params: { group: 'platform:org:gone:admins', user_id: ada }, ...at }),
    ).rejects.toMatchObject({ code: 'group_not_found', status: 404 });
    await access.registry.putGroup({ params: { group: 'some' }, body: {}, ...at });
    await expect(access.registry.putGroupMember({ params: { group: 'some', user_id: newId() }, ...at })).rejects.toMatchObject({
      code: 'user_not_found',
    });
    await expect(access.registry.putGroupMember({ params: { group: 'some', user_id: 'not an id' }, ...at })).rejects.toMatchObject({
      code: 'validation_failed',
    });
    await expect(access.registry.putGroupRole({ params: { group: 'some', role: 'none' }, ...at })).rejects.toMatchObject({
      code: 'role_not_found',
    });
    await expect(access.registry.putRole({ params: { role: 'No Such Name' }, body: { scopes: [] }, ...at })).rejects.toMatchObject({
      status: 400,
    });
  });

  test('refuse roles that would contain each other, also when both halves come at once', async () => {
    const at = { targetEnvId: access.env };
    for (const role of ['c:a', 'c:b', 'c:c']) await access.registry.putRole({ params: { role }, body: { scopes: [] }, ...at });
    await access.registry.nestRole({ params: { role: 'c:a', child: 'c:b' }, ...at });
    await access.registry.nestRole({ params: { role: 'c:b', child: 'c:c' }, ...at });
    await expect(access.registry.nestRole({ params: { role: 'c:c', child: 'c:a' }, ...at })).rejects.toMatchObject({
      code: 'role_cycle',
      status: 409,
    });
    await expect(access.registry.nestRole({ params: { role: 'c:a', child: 'c:a' }, ...at })).rejects.toMatchObject({ code: 'role_cycle' });
    for (let run = 0; run < 8; run++) {
      for (const role of [`r${run}:a`, `r${run}:b`]) await access.registry.putRole({ params: { role }, body: { scopes: [] }, ...at });
      const both = await Promise.allSettled([
        access.registry.nestRole({ params: { role: `r${run}:a`, child: `r${run}:b` }, ...at }),
        access.registry.nestRole({ params: { role: `r${run}:b`, child: `r${run}:a` }, ...at }),
      ]);
      expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }
  });

  test('IDN-014 each change moves the version that verifiers read, before it answers', async () => {
    const ada = await access.person();
    const at = { targetEnvId: access.env };
    await access.registry.putRole({ params: { role: 'v' }, body: { scopes: [] }, ...at });
    await access.registry.putGroup({ params: { group: 'v' }, body: {}, ...at });
    const steps = [
      () => access.registry.putRole({ params: { role: 'v' }, body: { scopes: ['a:b'] }, ...at }),
      () => access.registry.putGroupRole({ params: { group: 'v', role: 'v' }, ...at }),
      () => access.registry.putGroupMember({ params: { group: 'v', user_id: ada }, ...at }),
      () => access.registry.deleteGroupMember({ params: { group: 'v', user_id: ada }, ...at }),
      () => access.registry.putUserRole({ params: { user_id: ada, role: 'v' }, ...at }),
      () => access.registry.deleteUserRole({ params: { user_id: ada, role: 'v' }, ...at }),
      () => access.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [{ scope: 'acme:lending:read', grants: 'read' }] } }),
    ];
    const held: string[] = [];
    for (const step of steps) {
      const before = await access.version(access.env);
      await step();
      expect(await access.version(access.env)).toBeGreaterThan(before);
      held.push((await access.scopes(ada, access.env)).join());
    }
    expect(held).toEqual(['', '', 'a:b', '', 'a:b', '', '']);
  });
});
