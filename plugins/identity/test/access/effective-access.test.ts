import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Access } from '../fixtures/access.ts';

let access: Access;
beforeAll(async () => {
  access = await Access.start();
});
afterAll(() => access[Symbol.asyncDispose]());

describe('what a person may do', () => {
  test("IDN-011 an organization's owner is listed in its groups, live", async () => {
    const owner = await access.person();
    const org = await access.organization(owner);
    expect(await access.groups(owner)).toEqual(
      [SYSTEM.consoleGroup, `platform:org:${org}:owners`].map(name => ({ name, env_id: SYSTEM.envId })),
    );
    expect(await access.scopes(owner, SYSTEM.envId)).toEqual(
      expect.arrayContaining(['sys:read', 'audit:read', 'sys:env:admin', 'sys:org:admin']),
    );
    await access.registry.deleteGroupMember({ params: { group: `platform:org:${org}:owners`, user_id: owner }, targetEnvId: SYSTEM.envId });
    expect([await access.groups(owner), await access.scopes(owner, SYSTEM.envId)]).toEqual([[], []]);
    await expect(access.registry.userGroups({ params: { user_id: ' ' } })).rejects.toMatchObject({ status: 400 });
  });

  test("owning a tenant's environment gives nothing over the platform's", async () => {
    const owner = await access.person();
    await access.tenant(await access.organization(owner), owner);
    const there = await access.scopes(owner, SYSTEM.envId);
    for (const scope of ['auth:users:read', 'auth:users:admin', 'bus:admin', 'bus:read', 'sys:sys:admin'])
      expect(there).not.toContain(scope);
  });

  test("the platform's administrator holds every action a person may hold, everywhere", async () => {
    const admin = await access.person();
    await access.registry.putUserRole({ params: { user_id: admin, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    for (const envId of [SYSTEM.envId, access.env]) {
      const held = await access.scopes(admin, envId);
      expect(held).toEqual(expect.arrayContaining(['sys:sys:admin', 'sys:org:admin', 'auth:users:admin', 'bus:admin', 'sys:policy:admin']));
      expect(held).not.toContain('auth:membership:write');
    }
  });

  test('who is not active may do nothing', async () => {
    const admin = await access.person();
    await access.registry.putUserRole({ params: { user_id: admin, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    await access.world.sql`update users set status = 'locked' where user_id = ${admin}`;
    expect(await access.scopes(admin, SYSTEM.envId)).toEqual([]);
  });
});

describe('who holds a scope', () => {
  const holders = async (scope: string, envId: string) => {
    const found: { user_id: string; via: string[] }[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await access.registry.scopeHolders({
        params: { scope },
        query: { env_id: envId, limit: 2, ...(cursor ? { cursor } : {}) },
      });
      found.push(...page.items);
      if (!page.next_cursor) return found;
      cursor = page.next_cursor;
    }
  };

  test('is the same question as what each person holds, asked from the other end', async () => {
    const people = await Promise.all(Array.from({ length: 6 }, () => access.person()));
    const tenant = await access.tenant(await access.organization(people[0]), people[1]);
    const at = { targetEnvId: tenant };
    await access.registry.putRole({ params: { role: 'held:low' }, body: { scopes: ['platform:held:read'] }, ...at });
    await access.registry.putRole({ params: { role: 'held:high' }, body: { scopes: ['held:write'] }, ...at });
    await access.registry.nestRole({ params: { role: 'held:high', child: 'held:low' }, ...at });
    await access.registry.putGroup({ params: { group: 'held:office' }, body: {}, ...at });
    await access.registry.putGroupRole({ params: { group: 'held:office', role: 'held:high' }, ...at });
    await access.registry.putGroupMember({ params: { group: 'held:office', user_id: people[2] as string }, ...at });
    await access.registry.putUserRole({ params: { user_id: people[3] as string, role: 'held:low' }, ...at });
    await access.registry.putGroupMember({ params: { group: `platform:env:${tenant}:viewers`, user_id: people[4] as string }, ...at });
    const everybody = (await access.world.sql<{ user_id: string }[]>`select user_id from users`).map(({ user_id }) => user_id);
    for (const scope of [
      'held:read',
      'held:write',
      'sys:read',
      'sys:env:admin',
      'sys:org:admin',
      'auth:users:read',
      'bus:admin',
      'sys:sys:admin',
      'nobody:has',
    ]) {
      for (const envId of [tenant, SYSTEM.envId]) {
        const expected: string[] = [];
        for (const userId of everybody) if ((await access.scopes(userId, envId)).includes(scope)) expected.push(userId);
        expect([scope, envId, (await holders(scope, envId)).map(({ user_id }) => user_id)]).toEqual([scope, envId, expected.sort()]);
      }
    }
    const held = new Map((await holders('held:read', tenant)).map(({ user_id, via }) => [user_id, via]));
    expect([held.get(people[2] as string), held.get(people[3] as string)]).toEqual([['group:held:office'], ['role:held:low']]);
  });
});
