import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { Access } from '../fixtures/access.ts';

let access: Access;
beforeAll(async () => {
  access = await Access.start();
});
afterAll(() => access[Symbol.asyncDispose]());

describe('members of an organization', () => {
  test('IDN-002 leaving takes a person out of every group below a name, in every realm, at once; once or twice, the same state', async () => {
    const [ada, lin] = [await access.person(), await access.person()];
    const [orgId, other] = [await access.organization(ada), await access.organization(ada)];
    await access.registry.provisionAccess({ body: { template: 'env', org_id: orgId, env_id: access.env, owner: ada } });
    await access.registry.putGroupMember({ params: { group: `platform:org:${orgId}:owners`, user_id: lin }, targetEnvId: SYSTEM.envId });
    const before = [await access.version(SYSTEM.envId), await access.version(access.env)];
    const prefixes = [`platform:org:${orgId}:`, `platform:env:${access.env}:`];
    const { left } = await access.registry.leaveGroups({ params: { user_id: ada }, body: { prefixes } });
    expect(left.map(({ name, env_id }) => `${name} ${env_id}`).sort()).toEqual(
      [
        `platform:env:${access.env}:owners ${SYSTEM.envId}`,
        `platform:env:${access.env}:owners ${access.env}`,
        `platform:org:${orgId}:owners ${SYSTEM.envId}`,
      ].sort(),
    );
    expect((await access.groups(ada)).map(({ name }) => name)).toEqual([SYSTEM.consoleGroup, `platform:org:${other}:owners`]);
    expect((await access.groups(lin)).length).toBeGreaterThan(0);
    expect(await access.scopes(ada, access.env)).toEqual([]);
    // The next request of everybody there sees it.
    expect([
      (await access.version(SYSTEM.envId)) > (before[0] as number),
      (await access.version(access.env)) > (before[1] as number),
    ]).toEqual([true, true]);
    const state = await access.members();
    expect(await access.registry.leaveGroups({ params: { user_id: ada }, body: { prefixes } })).toEqual({ left: [] });
    await expect(access.registry.leaveGroups({ params: { user_id: 'nobody' }, body: { prefixes } })).rejects.toMatchObject({
      code: 'validation_failed',
    });
    expect(await access.members()).toEqual(state);
  });

  test('members of several groups come once each, with the groups they are in, page after page', async () => {
    const people = [await access.person(), await access.person(), await access.person()];
    const orgId = await access.organization(people[0]);
    const names = ['owners', 'admins', 'viewers'].map(level => `platform:org:${orgId}:${level}`);
    for (const user_id of people)
      await access.registry.putGroupMember({ params: { group: names[2] as string, user_id }, targetEnvId: SYSTEM.envId });
    const seen: { user_id: string; groups: string[] }[] = [];
    let cursor: string | null = null;
    do {
      const page: { items: { user_id: string; groups: string[] }[]; next_cursor: string | null } = await access.registry.membersOf({
        query: { groups: names.join(','), limit: 2, ...(cursor ? { cursor } : {}) },
        targetEnvId: SYSTEM.envId,
      });
      seen.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    expect(seen.map(({ user_id, groups: held }) => [user_id, held])).toEqual(
      [...people].sort().map(id => [id, id === people[0] ? [names[0], names[2]] : [names[2]]]),
    );
    const one = await access.registry.membersOf({
      query: { groups: names.join(','), user_id: people[1] as string },
      targetEnvId: SYSTEM.envId,
    });
    expect(one.items.map(({ user_id }) => user_id)).toEqual([people[1]]);
    expect((await access.registry.membersOf({ query: { groups: names.join(',') }, targetEnvId: access.env })).items).toEqual([]);
    await expect(access.registry.membersOf({ query: { groups: names.join(',') } })).rejects.toMatchObject({ code: 'target_env_missing' });
    await expect(
      access.registry.membersOf({ query: { groups: names.join(','), cursor: 'x' }, targetEnvId: access.env }),
    ).rejects.toMatchObject({ code: 'invalid_cursor' });
  });
});

describe('tenants of a person', () => {
  const tenants = (userId: string, ...named: string[]) =>
    access.registry.tenantsOf({ params: { user_id: userId }, query: named.length > 0 ? { tenants: named.join() } : {} });
  const none = { owners: [], admins: [], viewers: [] };

  test('by level, each once whatever realms its groups are in; all of them, or those that are named', async () => {
    const [ada, envId] = [await access.person(), newId()];
    const [orgId, other] = [await access.organization(ada), await access.organization(ada)];
    await access.registry.provisionAccess({
      body: { template: 'env', org_id: orgId, env_id: envId, owner: ada, host: `auth.${envId}.localhost` },
    });
    await access.registry.putGroupMember({ params: { group: `platform:env:${envId}:viewers`, user_id: ada }, targetEnvId: envId });
    const all = await tenants(ada);
    expect({ org: { ...all.org, owners: [...all.org.owners].sort() }, env: all.env }).toEqual({
      org: { ...none, owners: [orgId, other].sort() },
      env: { owners: [envId], admins: [], viewers: [envId] },
    });
    expect(await tenants(ada, other, newId())).toEqual({ org: { ...none, owners: [other] }, env: none });
    expect(await tenants(newId())).toEqual({ org: none, env: none });
  });

  test('REG-016 REG-019 what is known of a person stands when a new tenant adds nothing to it, and no longer when it may', async () => {
    const [ada, lin, orgId] = [await access.person(), await access.person(), newId()];
    const moved = (userId: string, work: () => Promise<unknown>) => movedKey(`authz:person:{${userId}}`, work);
    const movedKey = async (key: string, work: () => Promise<unknown>) => {
      const read = async () => Number(await access.world.kv('GET', key));
      const before = await read();
      await work();
      return (await read()) > before;
    };
    const org = (owner: string, org_id = newId()) => access.registry.provisionAccess({ body: { template: 'org', org_id, owner } });
    const newEnv = (owner: string, env_id = newId()) =>
      access.registry.provisionAccess({ body: { template: 'env', org_id: orgId, env_id, owner, host: `auth.${env_id}.localhost` } });
    expect(await moved(ada, () => org(ada, orgId))).toBe(true);
    expect(await moved(ada, () => org(ada))).toBe(false);
    const first = newId();
    expect(await moved(ada, () => newEnv(ada, first))).toBe(true);
    expect(await moved(ada, () => newEnv(ada))).toBe(false);
    await newEnv(lin);
    // The realm was there: somebody may have asked what this person may do in it, and nowhere else does it matter.
    expect(await movedKey(`authz:{${first}}`, () => newEnv(lin, first))).toBe(true);
    expect(await access.scopes(lin, first)).toContain('sys:org:admin');
  });
});
