import { newId } from '@platform/kernel/base/ids';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from './fixtures/world.ts';

let world: World;
let env: string;
beforeAll(async () => {
  world = await World.start();
  env = await world.environment('auth.prod.acme.localhost');
});
afterAll(() => world[Symbol.asyncDispose]());
const version = async (envId: string) => Number(await world.kv('GET', `authz:{${envId}}`));
const scopes = async (userId: string, envId: string) => (await world.registry.userScopes({ params: { user_id: userId }, query: { env_id: envId } })).scopes;
const groups = async (userId: string) => (await world.registry.userGroups({ params: { user_id: userId } })).groups;
const person = () => world.person(`${newId()}@example.org`);
const snapshot = async () =>
  JSON.stringify(
    await Promise.all([
      world.sql`select env_id, name from roles order by 1, 2`,
      world.sql`select * from role_scopes order by 1, 2, 3`,
      world.sql`select * from role_nesting order by 1, 2, 3`,
      world.sql`select group_id, env_id, name from user_groups order by 2, 3`,
      world.sql`select * from group_roles order by 1, 2, 3`,
      world.sql`select env_id, group_name, user_id from group_members order by 1, 2, 3`,
      world.sql`select * from group_nesting order by 1, 2, 3, 4`,
      world.sql`select * from user_roles order by 1, 2, 3`,
    ]),
  );

test('REG-035 REG-036 the console of a fresh platform has its group, role and bootstrap administrator under the fixed ids', async () => {
  const at = { env_id: '00000000-0000-7000-8000-000000000002', name: 'platform:console:users' };
  const [group] = await world.sql`select group_id from user_groups where env_id = ${at.env_id} and name = ${at.name}`;
  expect(group).toEqual({ group_id: '00000000-0000-7000-8000-000000000004' });
  const [role] =
    await world.sql`select role_id from roles join group_roles on group_roles.role = roles.name and group_roles.env_id = roles.env_id where group_name = ${at.name} and roles.env_id = ${at.env_id}`;
  expect(role).toEqual({ role_id: '00000000-0000-7000-8000-000000000005' });
  const members = await world.sql`select membership_id, user_id from group_members where env_id = ${at.env_id} and group_name = ${at.name}`;
  expect([...members]).toEqual([{ membership_id: '00000000-0000-7000-8000-000000000006', user_id: '00000000-0000-7000-8000-000000000007' }]);
});

describe('the verbs', () => {
  test('IDN-002 IDN-003 role, nesting, group, group role, member and user role: once or twice, the same state and success', async () => {
    const [ada, lin] = [await person(), await person()];
    const at = { targetEnvId: env };
    const all = async () => [
      await world.registry.putRole({ params: { role: 'acme:clerk' }, body: { scopes: ['acme:lending:read'] }, ...at }),
      await world.registry.putRole({ params: { role: 'acme:chief' }, body: { scopes: ['acme:lending:decide'] }, ...at }),
      await world.registry.nestRole({ params: { role: 'acme:chief', child: 'acme:clerk' }, ...at }),
      await world.registry.putGroup({ params: { group: 'acme:office' }, body: {}, ...at }),
      await world.registry.putGroupRole({ params: { group: 'acme:office', role: 'acme:chief' }, ...at }),
      await world.registry.putGroupMember({ params: { group: 'acme:office', user_id: ada }, ...at }),
      await world.registry.putUserRole({ params: { user_id: lin, role: 'acme:clerk' }, ...at }),
    ];
    const first = await all();
    const state = await snapshot();
    const second = await all();
    expect(await snapshot()).toBe(state);
    expect(first.map(answer => 'created' in answer && answer.created)).toEqual([true, true, false, true, false, false, false]);
    expect(second).toEqual(first.map(answer => ('created' in answer ? { ...answer, created: false } : answer)));
    expect(await scopes(ada, env)).toEqual(['acme:lending:decide', 'acme:lending:read']);
    expect(await scopes(lin, env)).toEqual(['acme:lending:read']);
    // A member taken out twice is out.
    for (let time = 0; time < 2; time++) {
      await world.registry.deleteGroupMember({ params: { group: 'acme:office', user_id: ada }, ...at });
      await world.registry.deleteUserRole({ params: { user_id: lin, role: 'acme:clerk' }, ...at });
    }
    expect([await scopes(ada, env), await scopes(lin, env)]).toEqual([[], []]);
  });

  test('a repeated role has exactly the scopes of the last call', async () => {
    const ada = await person();
    await world.registry.putRole({ params: { role: 'changing' }, body: { scopes: ['a:one', 'a:two'] }, targetEnvId: env });
    await world.registry.putUserRole({ params: { user_id: ada, role: 'changing' }, targetEnvId: env });
    await world.registry.putRole({ params: { role: 'changing' }, body: { scopes: ['platform:a:two', 'a:three'] }, targetEnvId: env });
    expect(await scopes(ada, env)).toEqual(['a:three', 'a:two']);
  });

  test('IDN-013 act in the realm the caller names, and ask for it', async () => {
    const ada = await person();
    await expect(world.registry.putRole({ params: { role: 'nowhere' }, body: { scopes: [] } })).rejects.toMatchObject({ code: 'target_env_missing', status: 400 });
    await world.registry.putRole({ params: { role: 'local' }, body: { scopes: ['a:local'] }, targetEnvId: env });
    await world.registry.putUserRole({ params: { user_id: ada, role: 'local' }, targetEnvId: env });
    expect([await scopes(ada, env), await scopes(ada, SYSTEM.envId)]).toEqual([['a:local'], []]);
    await expect(world.registry.putUserRole({ params: { user_id: ada, role: 'local' }, targetEnvId: SYSTEM.envId })).rejects.toMatchObject({ code: 'role_not_found' });
  });

  test('never fabricate what they refer to', async () => {
    const ada = await person();
    const at = { targetEnvId: env };
    await expect(world.registry.putGroupMember({ params: { group: 'platform:org:gone:admins', user_id: ada }, ...at })).rejects.toMatchObject({ code: 'group_not_found', status: 404 });
    await world.registry.putGroup({ params: { group: 'some' }, body: {}, ...at });
    await expect(world.registry.putGroupMember({ params: { group: 'some', user_id: newId() }, ...at })).rejects.toMatchObject({ code: 'user_not_found' });
    await expect(world.registry.putGroupMember({ params: { group: 'some', user_id: 'not an id' }, ...at })).rejects.toMatchObject({ code: 'user_not_found' });
    await expect(world.registry.putGroupRole({ params: { group: 'some', role: 'none' }, ...at })).rejects.toMatchObject({ code: 'role_not_found' });
    await expect(world.registry.putRole({ params: { role: 'No Such Name' }, body: { scopes: [] }, ...at })).rejects.toMatchObject({ status: 400 });
  });

  test('refuse roles that would contain each other, also when both halves come at once', async () => {
    const at = { targetEnvId: env };
    for (const role of ['c:a', 'c:b', 'c:c']) await world.registry.putRole({ params: { role }, body: { scopes: [] }, ...at });
    await world.registry.nestRole({ params: { role: 'c:a', child: 'c:b' }, ...at });
    await world.registry.nestRole({ params: { role: 'c:b', child: 'c:c' }, ...at });
    await expect(world.registry.nestRole({ params: { role: 'c:c', child: 'c:a' }, ...at })).rejects.toMatchObject({ code: 'role_cycle', status: 409 });
    await expect(world.registry.nestRole({ params: { role: 'c:a', child: 'c:a' }, ...at })).rejects.toMatchObject({ code: 'role_cycle' });
    for (let run = 0; run < 8; run++) {
      for (const role of [`r${run}:a`, `r${run}:b`]) await world.registry.putRole({ params: { role }, body: { scopes: [] }, ...at });
      const both = await Promise.allSettled([
        world.registry.nestRole({ params: { role: `r${run}:a`, child: `r${run}:b` }, ...at }),
        world.registry.nestRole({ params: { role: `r${run}:b`, child: `r${run}:a` }, ...at }),
      ]);
      expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }
  });

  test('IDN-014 each change moves the version that verifiers read, before it answers', async () => {
    const ada = await person();
    const at = { targetEnvId: env };
    await world.registry.putRole({ params: { role: 'v' }, body: { scopes: [] }, ...at });
    await world.registry.putGroup({ params: { group: 'v' }, body: {}, ...at });
    const steps = [
      () => world.registry.putRole({ params: { role: 'v' }, body: { scopes: ['a:b'] }, ...at }),
      () => world.registry.putGroupRole({ params: { group: 'v', role: 'v' }, ...at }),
      () => world.registry.putGroupMember({ params: { group: 'v', user_id: ada }, ...at }),
      () => world.registry.deleteGroupMember({ params: { group: 'v', user_id: ada }, ...at }),
      () => world.registry.putUserRole({ params: { user_id: ada, role: 'v' }, ...at }),
      () => world.registry.deleteUserRole({ params: { user_id: ada, role: 'v' }, ...at }),
      () => world.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [{ scope: 'acme:lending:read', grants: 'read' }] } }),
    ];
    for (const step of steps) {
      const before = await version(env);
      await step();
      expect(await version(env)).toBeGreaterThan(before);
    }
  });
});

describe('what a person may do', () => {
  test("IDN-011 an organization's owner is listed in its groups, live", async () => {
    const owner = await person();
    const org = newId();
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    expect(await groups(owner)).toEqual([{ name: `platform:org:${org}:owners`, env_id: SYSTEM.envId }]);
    expect(await scopes(owner, SYSTEM.envId)).toEqual(expect.arrayContaining(['sys:read', 'audit:read', 'sys:env:admin', 'sys:org:admin']));
    await world.registry.deleteGroupMember({ params: { group: `platform:org:${org}:owners`, user_id: owner }, targetEnvId: SYSTEM.envId });
    expect([await groups(owner), await scopes(owner, SYSTEM.envId)]).toEqual([[], []]);
    await expect(world.registry.userGroups({ params: { user_id: ' ' } })).rejects.toMatchObject({ status: 400 });
  });

  test("IDN-003 IDN-011 provisioning is whole, the same when repeated, and gives the organization's owners its environments", async () => {
    const [owner, creator] = [await person(), await person()];
    const [org, tenant] = [newId(), await world.environment(`auth.${newId()}.localhost`)];
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner: creator } });
    const state = await snapshot();
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner: creator } });
    expect(await snapshot()).toBe(state);
    for (const user of [owner, creator]) expect(await scopes(user, tenant)).toEqual(expect.arrayContaining(['sys:read', 'sys:env:admin', 'auth:users:read', 'bus:admin', 'bus:read']));
    expect((await groups(owner)).map(({ name }) => name)).toContain(`platform:env:${tenant}:owners`);
    // A member who joins the organization's owners later owns the environment at once, under a version that moved.
    const late = await person();
    const before = await version(tenant);
    await world.registry.putGroupMember({ params: { group: `platform:org:${org}:owners`, user_id: late }, targetEnvId: SYSTEM.envId });
    expect(await scopes(late, tenant)).toContain('sys:env:admin');
    expect(await version(tenant)).toBeGreaterThan(before);
    await expect(world.registry.provisionAccess({ body: { template: 'org', org_id: newId(), owner: newId() } })).rejects.toMatchObject({ code: 'user_not_found' });
    expect(await snapshot()).not.toContain(newId());
  });

  test('REG-016 H-31 what anybody was told of an environment before it was provisioned stands no longer, also of somebody who held the role already', async () => {
    const owner = await person();
    const [org, first, second] = [newId(), await world.environment(`auth.${newId()}.localhost`), await world.environment(`auth.${newId()}.localhost`)];
    const [system, own] = [() => version(SYSTEM.envId), async () => Number(await world.kv('GET', `authz:person:{${owner}}`))];
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: first, owner } });
    const before = [await system(), await own(), await version(second)] as const;
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: second, owner } });
    expect(await version(second)).toBeGreaterThan(before[2]);
    // Nobody else has to ask again, and of the system's realm not even the owner.
    expect([await system(), await own()]).toEqual(before.slice(0, 2));
  });

  test('built-in levels follow the grants of actions: read to viewers, write to admins, admin to owners', async () => {
    const [viewer, admin, owner] = [await person(), await person(), await person()];
    const [org, tenant] = [newId(), await world.environment(`auth.${newId()}.localhost`)];
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant } });
    for (const [user, group] of [
      [viewer, 'viewers'],
      [admin, 'admins'],
      [owner, 'owners'],
    ] as const)
      await world.registry.putGroupMember({ params: { group: `platform:env:${tenant}:${group}`, user_id: user }, targetEnvId: tenant });
    await world.registry.putGrants({
      params: { vertical: 'acme' },
      body: {
        scopes: [
          { scope: 'acme:lending:read', grants: 'read' },
          { scope: 'acme:lending:change', grants: 'write' },
          { scope: 'acme:lending:admin', grants: 'admin' },
        ],
      },
    });
    const acme = async (user: string) => (await scopes(user, tenant)).filter(scope => scope.startsWith('acme:'));
    expect(await acme(viewer)).toEqual(['acme:lending:read']);
    expect(await acme(admin)).toEqual(['acme:lending:change', 'acme:lending:read']);
    expect(await acme(owner)).toEqual(['acme:lending:admin', 'acme:lending:change', 'acme:lending:read']);
    expect(await scopes(viewer, tenant)).not.toContain('bus:admin');
    expect(await scopes(owner, tenant)).not.toContain('auth:membership:write');
    // What is not granted any more is gone.
    await world.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [] } });
    expect(await acme(owner)).toEqual([]);
    await expect(world.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [{ scope: 'sys:sys:admin', grants: 'read' }] } })).rejects.toMatchObject({ code: 'scope_foreign' });
  });

  test("owning a tenant's environment gives nothing over the platform's", async () => {
    const owner = await person();
    const [org, tenant] = [newId(), await world.environment(`auth.${newId()}.localhost`)];
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner } });
    const there = await scopes(owner, SYSTEM.envId);
    for (const scope of ['auth:users:read', 'auth:users:admin', 'bus:admin', 'bus:read', 'sys:sys:admin']) expect(there).not.toContain(scope);
  });

  test("the platform's administrator holds every action a person may hold, everywhere", async () => {
    const admin = await person();
    await world.registry.putUserRole({ params: { user_id: admin, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    for (const envId of [SYSTEM.envId, env]) {
      const held = await scopes(admin, envId);
      expect(held).toEqual(expect.arrayContaining(['sys:sys:admin', 'sys:org:admin', 'auth:users:admin', 'bus:admin', 'sys:policy:admin']));
      expect(held).not.toContain('auth:membership:write');
    }
  });

  test('who is not active may do nothing', async () => {
    const admin = await person();
    await world.registry.putUserRole({ params: { user_id: admin, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    await world.sql`update users set status = 'locked' where user_id = ${admin}`;
    expect(await scopes(admin, SYSTEM.envId)).toEqual([]);
  });
});

describe('operators', () => {
  test('IDN-023 read one person of their environment, with the groups', async () => {
    const ada = await world.person('ada@acme.example', { envId: env });
    const reader = world.host.by(as.userIn(env, 'auth:users:read'));
    expect(await reader.getUser({ params: { user_id: ada } })).toEqual({
      user_id: ada,
      email: 'ada@acme.example',
      email_verified: true,
      display_name: 'ada',
      status: 'active',
      groups: [],
      mfa_enrolled: false,
      created_at: expect.any(String),
      last_sign_in_at: null,
    });
    await expect(world.host.by(as.user('auth:users:read')).getUser({ params: { user_id: ada } })).rejects.toMatchObject({ code: 'user_not_found' });
    await expect(reader.getUser({ params: { user_id: 'x' } })).rejects.toMatchObject({ code: 'user_not_found' });
    expect((await reader.listUsers()).items.map(({ user_id }) => user_id)).toEqual([ada]);
  });

  test('page through people without missing one', async () => {
    const reader = world.host.by(as.user('auth:users:read'));
    for (let made = 0; made < 7; made++) await person();
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await reader.listUsers({ query: { limit: 3, ...(cursor ? { cursor } : {}) } });
      seen.push(...page.items.map(({ user_id }) => user_id));
      cursor = page.next_cursor;
    }
    const [{ count } = { count: 0 }] = await world.sql<{ count: number }[]>`select count(*)::int as count from users where env_id = ${SYSTEM.envId}`;
    expect([seen.length, new Set(seen).size]).toEqual([count, count]);
  });
});

describe('sign-in hosts', () => {
  test("are each one environment's, and the platform's own is nobody else's", async () => {
    const host = `auth.${newId()}.localhost`;
    const first = await world.environment(host);
    await expect(world.environment(host)).rejects.toMatchObject({ code: 'host_taken', status: 409 });
    await expect(world.environment('auth.ops.sys.localhost')).rejects.toMatchObject({ code: 'host_taken' });
    await expect(world.environment('console.ops.sys.localhost')).rejects.toMatchObject({ code: 'host_taken' });
    await expect(world.registry.putRealm({ params: { env_id: SYSTEM.envId }, body: { host: 'evil.example', org_id: SYSTEM.orgId } })).rejects.toMatchObject({ code: 'host_taken' });
    expect(await world.registry.putRealm({ params: { env_id: first }, body: { host, org_id: world.org } })).toEqual({
      env_id: first,
      host,
      verify_email: true,
      wallet_sign_in: 'off',
      passkeys: false,
      account_recovery: 'off',
      recovery_wait_hours: 72,
    });
  });
});

describe('who holds a scope', () => {
  const holders = async (scope: string, envId: string) => {
    const found: { user_id: string; via: string[] }[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await world.registry.scopeHolders({ params: { scope }, query: { env_id: envId, limit: 2, ...(cursor ? { cursor } : {}) } });
      found.push(...page.items);
      if (!page.next_cursor) return found;
      cursor = page.next_cursor;
    }
  };

  test('is the same question as what each person holds, asked from the other end', async () => {
    const [org, tenant] = [newId(), await world.environment(`auth.${newId()}.localhost`)];
    const people = await Promise.all(Array.from({ length: 6 }, person));
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner: people[0] as string } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner: people[1] as string } });
    const at = { targetEnvId: tenant };
    await world.registry.putRole({ params: { role: 'held:low' }, body: { scopes: ['platform:held:read'] }, ...at });
    await world.registry.putRole({ params: { role: 'held:high' }, body: { scopes: ['held:write'] }, ...at });
    await world.registry.nestRole({ params: { role: 'held:high', child: 'held:low' }, ...at });
    await world.registry.putGroup({ params: { group: 'held:office' }, body: {}, ...at });
    await world.registry.putGroupRole({ params: { group: 'held:office', role: 'held:high' }, ...at });
    await world.registry.putGroupMember({ params: { group: 'held:office', user_id: people[2] as string }, ...at });
    await world.registry.putUserRole({ params: { user_id: people[3] as string, role: 'held:low' }, ...at });
    await world.registry.putGroupMember({ params: { group: `platform:env:${tenant}:viewers`, user_id: people[4] as string }, ...at });
    const everybody = (await world.sql<{ user_id: string }[]>`select user_id from users`).map(({ user_id }) => user_id);
    for (const scope of ['held:read', 'held:write', 'sys:read', 'sys:env:admin', 'sys:org:admin', 'auth:users:read', 'bus:admin', 'sys:sys:admin', 'nobody:has']) {
      for (const envId of [tenant, SYSTEM.envId]) {
        const expected: string[] = [];
        for (const userId of everybody) if ((await scopes(userId, envId)).includes(scope)) expected.push(userId);
        expect([scope, envId, (await holders(scope, envId)).map(({ user_id }) => user_id)]).toEqual([scope, envId, expected.sort()]);
      }
    }
    const held = new Map((await holders('held:read', tenant)).map(({ user_id, via }) => [user_id, via]));
    expect([held.get(people[2] as string), held.get(people[3] as string)]).toEqual([['group:held:office'], ['role:held:low']]);
  });
});

describe('taking an access model away', () => {
  test('leaves nothing of it, tells the realms it reached, and may be repeated', async () => {
    const [owner, stranger] = [await person(), await person()];
    const [org, other, tenant] = [newId(), newId(), await world.environment(`auth.${newId()}.localhost`)];
    const before = await snapshot();
    await world.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner } });
    expect((await world.registry.describeAccess({ params: { template: 'org', id: org } })).groups).toHaveLength(3);
    const version0 = await version(tenant);
    for (let time = 0; time < 2; time++) {
      await world.registry.removeAccess({ params: { template: 'env', id: tenant } });
      await world.registry.removeAccess({ params: { template: 'org', id: org } });
    }
    expect(await snapshot()).toBe(before);
    expect(await world.sql`select 1 from realms where env_id = ${tenant}`).toHaveLength(0);
    expect(await version(tenant)).toBeGreaterThan(version0);
    expect(await world.registry.describeAccess({ params: { template: 'org', id: org } })).toEqual({ groups: [] });
    expect([await groups(owner), await groups(stranger)]).toEqual([[], []]);
    await world.registry.provisionAccess({ body: { template: 'org', org_id: other, owner } });
    await world.registry.removeAccess({ params: { template: 'org', id: org } });
    expect((await groups(owner)).map(({ name }) => name)).toEqual([`platform:org:${other}:owners`]);
  });

  test('is refused for the platform itself', async () => {
    for (const [template, id] of [
      ['org', SYSTEM.orgId],
      ['env', SYSTEM.envId],
      ['realm', newId()],
      ['env', 'x'],
    ] as const)
      await expect(world.registry.removeAccess({ params: { template, id } })).rejects.toMatchObject({ code: 'name_invalid', status: 400 });
  });
});
