import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { Access } from '../fixtures/access.ts';

let access: Access;
beforeAll(async () => {
  access = await Access.start();
});
afterAll(() => access[Symbol.asyncDispose]());

describe('an access model', () => {
  test("REG-012 REG-013 IDN-003 IDN-011 provisioning is whole, the same when repeated, and gives the organization's owners its environments", async () => {
    const [owner, creator] = [await access.person(), await access.person()];
    const [org, tenant] = [newId(), await access.environment()];
    await access.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner: creator } });
    const state = await access.snapshot();
    await access.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner: creator } });
    expect(await access.snapshot()).toBe(state);
    const groups = await access.world.sql<{ name: string; role: string; members: string[] }[]>`
      select name, role, array(select user_id::text from group_members m where m.env_id = g.env_id and m.group_name = g.name) as members
      from user_groups g join group_roles r on r.env_id = g.env_id and r.group_name = g.name
      where name like ${`platform:org:${org}:%`} order by name`;
    expect(groups.map(({ name, role, members }) => [name.split(':').at(-1), role, members])).toEqual([
      ['admins', 'platform:org:admin', []],
      ['owners', 'platform:org:owner', [owner]],
      ['viewers', 'platform:org:viewer', []],
    ]);
    for (const user of [owner, creator])
      expect(await access.scopes(user, tenant)).toEqual(
        expect.arrayContaining(['sys:read', 'sys:env:admin', 'auth:users:read', 'bus:admin', 'bus:read']),
      );
    expect((await access.groups(owner)).map(({ name }) => name)).toContain(`platform:env:${tenant}:owners`);
    // A member who joins the organization's owners later owns the environment at once, under a version that moved.
    const late = await access.person();
    const before = await access.version(tenant);
    await access.registry.putGroupMember({ params: { group: `platform:org:${org}:owners`, user_id: late }, targetEnvId: SYSTEM.envId });
    expect(await access.scopes(late, tenant)).toContain('sys:env:admin');
    expect(await access.version(tenant)).toBeGreaterThan(before);
    await expect(access.registry.provisionAccess({ body: { template: 'org', org_id: newId(), owner: newId() } })).rejects.toMatchObject({
      code: 'user_not_found',
    });
    expect(await access.snapshot()).not.toContain(newId());
  });

  test("F-14 an organization's administrators and viewers have that level in its environments, made before they joined or after", async () => {
    const org = await access.organization();
    const before = await access.tenant(org);
    const [admin, viewer] = [await access.person(), await access.person()];
    for (const [user, group] of [
      [admin, 'admins'],
      [viewer, 'viewers'],
    ] as const)
      await access.registry.putGroupMember({ params: { group: `platform:org:${org}:${group}`, user_id: user }, targetEnvId: SYSTEM.envId });
    const known = await access.scopes(admin, before);
    const after = await access.environment();
    // Asked before it is provisioned: what was told then stands no longer.
    expect(await access.scopes(viewer, after)).not.toContain('sys:read');
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: after } });
    for (const env of [before, after]) {
      expect(await access.scopes(admin, env)).toEqual(expect.arrayContaining(['sys:read', 'sys:env:admin']));
      expect(await access.scopes(viewer, env)).toContain('sys:read');
      expect(await access.scopes(viewer, env)).not.toContain('sys:env:admin');
    }
    expect(known).not.toContain('sys:org:admin');
  });

  test("D-02 whoever joins an organization or environment is in the console's group, until that is left or gone", async () => {
    const org = await access.organization();
    const tenant = await access.tenant(org);
    const inConsole = async (user: string) =>
      (await access.groups(user)).some(({ name, env_id }) => name === SYSTEM.consoleGroup && env_id === SYSTEM.envId);
    const [member, guest, stranger] = [await access.person(), await access.person(), await access.person()];
    const join = (group: string, user_id: string) =>
      access.registry.putGroupMember({ params: { group, user_id }, targetEnvId: SYSTEM.envId });
    await join(`platform:org:${org}:viewers`, member);
    await join(`platform:env:${tenant}:viewers`, guest);
    expect([await inConsole(member), await inConsole(guest), await inConsole(stranger)]).toEqual([true, true, false]);
    await access.registry.deleteGroupMember({
      params: { group: `platform:org:${org}:viewers`, user_id: member },
      targetEnvId: SYSTEM.envId,
    });
    await access.registry.removeAccess({ params: { template: 'env', id: tenant } });
    expect([await inConsole(member), await inConsole(guest)]).toEqual([false, false]);
  });

  test('REG-016 H-31 what anybody was told of an environment before it was provisioned stands no longer, also of somebody who held the role already', async () => {
    const owner = await access.person();
    const [org, first, second] = [newId(), await access.environment(), await access.environment()];
    const [system, own] = [() => access.version(SYSTEM.envId), () => access.versionOf(owner)];
    await access.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: first, owner } });
    const before = [await system(), await own(), await access.version(second)] as const;
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: second, owner } });
    expect(await access.version(second)).toBeGreaterThan(before[2]);
    // Nobody else has to ask again, and of the system's realm not even the owner.
    expect([await system(), await own()]).toEqual(before.slice(0, 2));
  });

  test('built-in levels follow the grants of actions: read to viewers, write to admins, admin to owners', async () => {
    const [viewer, admin, owner] = [await access.person(), await access.person(), await access.person()];
    const tenant = await access.tenant(await access.organization());
    for (const [user, group] of [
      [viewer, 'viewers'],
      [admin, 'admins'],
      [owner, 'owners'],
    ] as const)
      await access.registry.putGroupMember({ params: { group: `platform:env:${tenant}:${group}`, user_id: user }, targetEnvId: tenant });
    await access.registry.putGrants({
      params: { vertical: 'acme' },
      body: {
        scopes: [
          { scope: 'acme:lending:read', grants: 'read' },
          { scope: 'acme:lending:change', grants: 'write' },
          { scope: 'acme:lending:admin', grants: 'admin' },
        ],
      },
    });
    const acme = async (user: string) => (await access.scopes(user, tenant)).filter(scope => scope.startsWith('acme:'));
    expect(await acme(viewer)).toEqual(['acme:lending:read']);
    expect(await acme(admin)).toEqual(['acme:lending:change', 'acme:lending:read']);
    expect(await acme(owner)).toEqual(['acme:lending:admin', 'acme:lending:change', 'acme:lending:read']);
    expect(await access.scopes(viewer, tenant)).not.toContain('bus:admin');
    expect(await access.scopes(owner, tenant)).not.toContain('auth:membership:write');
    // What is not granted any more is gone.
    await access.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [] } });
    expect(await acme(owner)).toEqual([]);
    await expect(
      access.registry.putGrants({ params: { vertical: 'acme' }, body: { scopes: [{ scope: 'sys:sys:admin', grants: 'read' }] } }),
    ).rejects.toMatchObject({ code: 'scope_foreign' });
  });
});

describe('taking an access model away', () => {
  test('leaves nothing of it, tells the realms it reached, and may be repeated', async () => {
    const [owner, stranger] = [await access.person(), await access.person()];
    const [org, other, tenant] = [newId(), newId(), await access.environment()];
    const before = await access.snapshot();
    await access.registry.provisionAccess({ body: { template: 'org', org_id: org, owner } });
    await access.registry.provisionAccess({ body: { template: 'env', org_id: org, env_id: tenant, owner } });
    expect((await access.registry.describeAccess({ params: { template: 'org', id: org } })).groups).toHaveLength(3);
    const version0 = await access.version(tenant);
    for (let time = 0; time < 2; time++) {
      await access.registry.removeAccess({ params: { template: 'env', id: tenant } });
      await access.registry.removeAccess({ params: { template: 'org', id: org } });
    }
    expect(await access.snapshot()).toBe(before);
    expect(await access.world.sql`select 1 from realms where env_id = ${tenant}`).toHaveLength(0);
    expect(await access.version(tenant)).toBeGreaterThan(version0);
    expect(await access.registry.describeAccess({ params: { template: 'org', id: org } })).toEqual({ groups: [] });
    expect([await access.groups(owner), await access.groups(stranger)]).toEqual([[], []]);
    await access.registry.provisionAccess({ body: { template: 'org', org_id: other, owner } });
    await access.registry.removeAccess({ params: { template: 'org', id: org } });
    expect((await access.groups(owner)).map(({ name }) => name)).toEqual([SYSTEM.consoleGroup, `platform:org:${other}:owners`]);
  });

  test('is refused for the platform itself', async () => {
    for (const [template, id] of [
      ['org', SYSTEM.orgId],
      ['env', SYSTEM.envId],
    ] as const)
      await expect(access.registry.removeAccess({ params: { template, id } })).rejects.toMatchObject({ code: 'name_invalid', status: 400 });
  });
});
