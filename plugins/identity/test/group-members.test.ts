import { newId } from '@platform/kernel/base/ids';
import { SYSTEM } from '@platform/sdk';
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
const members = () => world.sql<object[]>`select env_id, group_name, user_id from group_members order by 1, 2, 3`;

describe('members of an organization', () => {
  test('IDN-002 leaving takes a person out of every group below a name, in every realm, at once; once or twice, the same state', async () => {
    const [ada, lin] = [await person(), await person()];
    const [orgId, other] = [newId(), newId()];
    for (const org_id of [orgId, other]) await world.registry.provisionAccess({ body: { template: 'org', org_id, owner: ada } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: orgId, env_id: env, owner: ada } });
    await world.registry.putGroupMember({ params: { group: `platform:org:${orgId}:owners`, user_id: lin }, targetEnvId: SYSTEM.envId });
    const before = [await version(SYSTEM.envId), await version(env)];
    const prefixes = [`platform:org:${orgId}:`, `platform:env:${env}:`];
    const { left } = await world.registry.leaveGroups({ params: { user_id: ada }, body: { prefixes } });
    expect(left.map(({ name, env_id }) => `${name} ${env_id}`).sort()).toEqual(
      [`platform:env:${env}:owners ${SYSTEM.envId}`, `platform:env:${env}:owners ${env}`, `platform:org:${orgId}:owners ${SYSTEM.envId}`].sort(),
    );
    expect(await groups(ada)).toEqual([{ name: `platform:org:${other}:owners`, env_id: SYSTEM.envId }]);
    expect((await groups(lin)).length).toBeGreaterThan(0);
    expect(await scopes(ada, env)).toEqual([]);
    // The next request of everybody there sees it.
    expect([(await version(SYSTEM.envId)) > (before[0] as number), (await version(env)) > (before[1] as number)]).toEqual([true, true]);
    const state = await members();
    expect(await world.registry.leaveGroups({ params: { user_id: ada }, body: { prefixes } })).toEqual({ left: [] });
    expect(await world.registry.leaveGroups({ params: { user_id: 'nobody' }, body: { prefixes } })).toEqual({ left: [] });
    expect(await members()).toEqual(state);
  });

  test('members of several groups come once each, with the groups they are in, page after page', async () => {
    const orgId = newId();
    const names = ['owners', 'admins', 'viewers'].map(level => `platform:org:${orgId}:${level}`);
    const people = [await person(), await person(), await person()];
    await world.registry.provisionAccess({ body: { template: 'org', org_id: orgId, owner: people[0] as string } });
    for (const user_id of people) await world.registry.putGroupMember({ params: { group: names[2] as string, user_id }, targetEnvId: SYSTEM.envId });
    const seen: { user_id: string; groups: string[] }[] = [];
    let cursor: string | null = null;
    do {
      const page: { items: { user_id: string; groups: string[] }[]; next_cursor: string | null } = await world.registry.membersOf({
        query: { groups: names.join(','), limit: 2, ...(cursor ? { cursor } : {}) },
        targetEnvId: SYSTEM.envId,
      });
      seen.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    expect(seen.map(({ user_id, groups: held }) => [user_id, held])).toEqual([...people].sort().map(id => [id, id === people[0] ? [names[0], names[2]] : [names[2]]]));
    const one = await world.registry.membersOf({ query: { groups: names.join(','), user_id: people[1] as string }, targetEnvId: SYSTEM.envId });
    expect(one.items.map(({ user_id }) => user_id)).toEqual([people[1]]);
    expect((await world.registry.membersOf({ query: { groups: names.join(',') }, targetEnvId: env })).items).toEqual([]);
    await expect(world.registry.membersOf({ query: { groups: names.join(',') } })).rejects.toMatchObject({ code: 'target_env_missing' });
    await expect(world.registry.membersOf({ query: { groups: names.join(','), cursor: 'x' }, targetEnvId: env })).rejects.toMatchObject({ code: 'invalid_cursor' });
  });
});

describe('tenants of a person', () => {
  const tenants = (userId: string, ...named: string[]) => world.registry.tenantsOf({ params: { user_id: userId }, query: named.length > 0 ? { tenants: named.join() } : {} });
  const none = { owners: [], admins: [], viewers: [] };

  test('by level, each once whatever realms its groups are in; all of them, or those that are named', async () => {
    const [ada, orgId, other, envId] = [await person(), newId(), newId(), newId()];
    for (const org_id of [orgId, other]) await world.registry.provisionAccess({ body: { template: 'org', org_id, owner: ada } });
    await world.registry.provisionAccess({ body: { template: 'env', org_id: orgId, env_id: envId, owner: ada, host: `auth.${envId}.localhost` } });
    await world.registry.putGroupMember({ params: { group: `platform:env:${envId}:viewers`, user_id: ada }, targetEnvId: envId });
    const all = await tenants(ada);
    expect({ org: { ...all.org, owners: [...all.org.owners].sort() }, env: all.env }).toEqual({
      org: { ...none, owners: [orgId, other].sort() },
      env: { owners: [envId], admins: [], viewers: [envId] },
    });
    expect(await tenants(ada, other, newId())).toEqual({ org: { ...none, owners: [other] }, env: none });
    expect(await tenants('nobody')).toEqual({ org: none, env: none });
  });

  test('REG-019 what is known of a person stands when a new tenant adds nothing to it, and no longer when it may', async () => {
    const [ada, lin, orgId] = [await person(), await person(), newId()];
    const moved = (userId: string, work: () => Promise<unknown>) => movedKey(`authz:person:{${userId}}`, work);
    const movedKey = async (key: string, work: () => Promise<unknown>) => {
      const read = async () => Number(await world.kv('GET', key));
      const before = await read();
      await work();
      return (await read()) > before;
    };
    const org = (owner: string, org_id = newId()) => world.registry.provisionAccess({ body: { template: 'org', org_id, owner } });
    const newEnv = (owner: string, env_id = newId()) => world.registry.provisionAccess({ body: { template: 'env', org_id: orgId, env_id, owner, host: `auth.${env_id}.localhost` } });
    expect(await moved(ada, () => org(ada, orgId))).toBe(true);
    expect(await moved(ada, () => org(ada))).toBe(false);
    const first = newId();
    expect(await moved(ada, () => newEnv(ada, first))).toBe(true);
    expect(await moved(ada, () => newEnv(ada))).toBe(false);
    await newEnv(lin);
    // The realm was there: somebody may have asked what this person may do in it, and nowhere else does it matter.
    expect(await movedKey(`authz:{${first}}`, () => newEnv(lin, first))).toBe(true);
    expect(await scopes(lin, first)).toContain('sys:org:admin');
  });
});
