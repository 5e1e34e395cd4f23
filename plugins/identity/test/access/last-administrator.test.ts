import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Directory, USER } from '../fixtures/directory.ts';
import { type Answer, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
const email = () => `administrator-${(count += 1)}@example.org`;
const refused = ({ status, headers, json }: Answer) => [status, headers['content-type'], json['schemas'], json['status'], json['detail']];
const LAST = [
  409,
  'application/scim+json; charset=utf-8',
  ['urn:ietf:params:scim:api:messages:2.0:Error'],
  '409',
  'Make somebody else an administrator of this environment first.',
];

describe('the last administrator of the platform', () => {
  let directory: Directory;
  const administrator = async (): Promise<string> => {
    const id = await world.person(email());
    await world.registry.putUserRole({ params: { user_id: id, role: 'platform:sys:admin' }, targetEnvId: SYSTEM.envId });
    return id;
  };
  beforeAll(async () => {
    directory = await Directory.open(world, 'scim:read', 'scim:write');
    await world.sql`update users set status = 'disabled' where user_id = ${SYSTEM.bootstrapUserId}`;
  });
  beforeEach(() => world.sql`delete from user_roles where role = 'platform:sys:admin' and user_id <> ${SYSTEM.bootstrapUserId}`);

  test('stays whatever a directory sends, and goes once there is another', async () => {
    const id = await administrator();
    expect(refused(await directory.patch(id, { op: 'replace', path: 'active', value: false }))).toEqual(LAST);
    expect(refused(await directory.send('PUT', `/Users/${id}`, { schemas: [USER], userName: email(), active: false }))).toEqual(LAST);
    expect(refused(await directory.send('DELETE', `/Users/${id}`))).toEqual(LAST);
    const { json } = await directory.bulk([{ method: 'DELETE', path: `/Users/${id}` }]);
    expect(json['Operations']).toMatchObject([{ status: '409', response: { status: '409', detail: LAST[4] } }]);
    expect((await directory.read(id))['active']).toBe(true);
    await administrator();
    expect((await directory.send('DELETE', `/Users/${id}`)).status).toBe(204);
  });

  test('is not closed or removed by administration either', async () => {
    const id = await administrator();
    const keeper = world.host.by(as.userIn(SYSTEM.envId, 'auth:users:admin'));
    await expect(keeper.disableUser({ params: { user_id: id } })).rejects.toMatchObject({ code: 'last_administrator' });
    await expect(keeper.deleteUser({ params: { user_id: id } })).rejects.toMatchObject({ code: 'last_administrator' });
    await administrator();
    expect((await keeper.disableUser({ params: { user_id: id } })).status).toBe('disabled');
    expect((await keeper.disableUser({ params: { user_id: id } })).status).toBe('disabled');
  });

  test('is left by twelve requests at once that close and remove two', async () => {
    for (let round = 0; round < 3; round += 1) {
      await world.sql`delete from user_roles where role = 'platform:sys:admin' and user_id <> ${SYSTEM.bootstrapUserId}`;
      const both = [await administrator(), await administrator()];
      const keeper = world.host.by(as.userIn(SYSTEM.envId, 'auth:users:admin'));
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, async (_, index) => {
          const id = both[index % 2] as string;
          if (index % 3 === 0) return (await directory.send('DELETE', `/Users/${id}`)).status;
          if (index % 3 === 1) return (await directory.patch(id, { op: 'replace', path: 'active', value: false })).status;
          return keeper.disableUser({ params: { user_id: id } }).then(
            () => 200,
            (error: { status: number }) => error.status,
          );
        }),
      );
      expect(outcomes.filter(status => ![200, 204, 404, 409].includes(status))).toEqual([]);
      const left = await world.sql<object[]>`select 1 from users where user_id = any(${both}::uuid[]) and status = 'active'`;
      expect(left).toHaveLength(1);
    }
  });
});

test('the last owner of an environment stays, and one of the organization counts', async () => {
  const envId = await world.environment(`auth.prod.${(count += 1)}.localhost`);
  const id = await world.person(email(), { envId });
  await world.registry.provisionAccess({ body: { template: 'org', org_id: world.org } });
  await world.registry.provisionAccess({ body: { template: 'env', org_id: world.org, env_id: envId, owner: id } });
  const directory = new Directory(world, { persona: as.machine('bff-delegator', 'scim:read', 'scim:write'), envId });
  expect(refused(await directory.patch(id, { op: 'replace', path: 'active', value: false }))).toEqual(LAST);
  const above = await world.person(email());
  await world.registry.putGroupMember({ params: { group: `platform:org:${world.org}:owners`, user_id: above }, targetEnvId: SYSTEM.envId });
  expect((await directory.patch(id, { op: 'replace', path: 'active', value: false })).status).toBe(200);
});
