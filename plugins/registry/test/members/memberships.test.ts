import { SYSTEM } from '@platform/sdk';
import { as, newId, type Persona } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => {
  world.directory.down.clear();
  world.directory.missing.clear();
});

const group = (orgId: string, name: string) => `platform:org:${orgId}:${name}`;
const member = (orgId: string, ...names: string[]): Persona => {
  const person = world.stranger();
  world.directory.groups(person.id, ...names.map(name => group(orgId, name)));
  return person;
};
const remove = (by: Persona, org_id: string, user_id: string) => world.host.by(by).removeMembership({ params: { org_id, user_id } });
const change = (by: Persona, org_id: string, user_id: string, access: 'owner' | 'admin' | 'viewer') =>
  world.host.by(by).changeMembership({ params: { org_id, user_id }, body: { access } });
const removed = async (orgId: string) =>
  (await world.written('platform:sys:membership:removed', orgId)).map(({ payload, env_id }) => [payload, env_id]);

describe('the list', () => {
  test('REG-087 is complete, however many there are: every member once with the highest level, page after page', async () => {
    const { org, owner } = await world.org();
    const expected = new Map([[owner.id, 'owner']]);
    for (let index = 0; index < 230; index++) expected.set(member(org.org_id, 'viewers').id, 'viewer');
    expected.set(member(org.org_id, 'viewers', 'admins').id, 'admin');
    const seen: [string, string][] = [];
    let cursor: string | null = null;
    do {
      const page = (await world.host
        .by(owner)
        .listMemberships({ params: { org_id: org.org_id }, query: { limit: 100, ...(cursor ? { cursor } : {}) } })) as {
        items: { user_id: string; access: string }[];
        next_cursor: string | null;
      };
      seen.push(...page.items.map(({ user_id, access }): [string, string] => [user_id, access]));
      cursor = page.next_cursor;
    } while (cursor);
    expect(seen).toHaveLength(232);
    expect(new Map(seen)).toEqual(expected);
  });

  test('REG-087 identity away is 503, never an empty list', async () => {
    const { org, owner } = await world.org();
    world.directory.down.add('membersOf');
    expect(await refusal(world.host.by(owner).listMemberships({ params: { org_id: org.org_id } }))).toEqual([503, 'identity_unavailable']);
  });
});

describe('removing', () => {
  test('REG-002 REG-088 REG-135 REG-143 takes every group of the organization and of its environments; 204, an event with ids, an audit row; again is 204 and says nothing', async () => {
    const { org, owner } = await world.org();
    const [env, other] = [await world.env(owner, org.org_id), await world.org()];
    const person = member(org.org_id, 'viewers', 'admins');
    world.directory.groups(person.id, `platform:env:${env.env_id}:owners`, group(other.org.org_id, 'viewers'));
    for (let time = 0; time < 2; time++) {
      const answer = await world.host.fetch(`/v1/org/${org.org_id}/memberships/${person.id}`, { method: 'DELETE', persona: owner });
      expect([answer.status, answer.text]).toEqual([204, '']);
    }
    expect(world.directory.of(person.id)).toEqual([group(other.org.org_id, 'viewers')]);
    expect(await removed(org.org_id)).toEqual([[{ org_id: org.org_id, user_id: person.id }, SYSTEM.envId]]);
    const trail = await world.sql<
      object[]
    >`select actor, details from audit where action = 'membership.removed' and resource->>'id' = ${person.id}`;
    expect([...trail]).toEqual([{ actor: { kind: 'user', id: owner.id }, details: { org_id: org.org_id } }]);
  });

  test('REG-088 the collection knows the same by ?user_id=, and wants it', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    const path = `/v1/org/${org.org_id}/memberships`;
    expect((await world.host.fetch(path, { method: 'DELETE', persona: owner })).status).toBe(400);
    expect((await world.host.fetch(`${path}?user_id=${person.id}`, { method: 'DELETE', persona: owner })).status).toBe(204);
    expect(world.directory.of(person.id)).toEqual([]);
  });

  test('who is nobody is removed already', async () => {
    const { org, owner } = await world.org();
    for (const id of [newId(), 'no-id']) expect(await refusal(remove(owner, org.org_id, id))).toEqual([200, 'answered']);
    expect(await removed(org.org_id)).toEqual([]);
  });

  test('REG-088 the gate, and who may: administrators remove others but no owner; oneself is allowed', async () => {
    const { org, owner } = await world.org();
    const [admin, viewer, second] = [member(org.org_id, 'admins'), member(org.org_id, 'viewers'), member(org.org_id, 'owners')];
    expect(await refusal(remove(as.user('sys:read', 'sys:org:admin'), org.org_id, viewer.id))).toEqual([403, 'policy_denied']);
    for (const persona of [viewer, world.stranger()])
      expect(await refusal(remove(persona, org.org_id, admin.id))).toEqual([403, 'not_org_member']);
    expect(await refusal(remove(admin, org.org_id, owner.id))).toEqual([403, 'owner_required']);
    expect(await refusal(remove(admin, org.org_id, viewer.id))).toEqual([200, 'answered']);
    expect(await refusal(remove(admin, org.org_id, admin.id))).toEqual([200, 'answered']);
    expect(await refusal(remove(second, org.org_id, second.id))).toEqual([200, 'answered']);
    expect(await refusal(remove(world.admin(), org.org_id, owner.id))).toEqual([409, 'last_owner']);
  });

  test('G-SYS-06 of two owners who leave at once, one stays', async () => {
    const { org, owner } = await world.org();
    const second = member(org.org_id, 'owners');
    const answers = await Promise.all([refusal(remove(owner, org.org_id, second.id)), refusal(remove(second, org.org_id, owner.id))]);
    expect(answers.map(([status]) => status).sort()).not.toEqual([200, 200]);
    expect([owner, second].filter(({ id }) => world.directory.of(id).includes(group(org.org_id, 'owners')))).toHaveLength(1);
    const third = member(org.org_id, 'owners');
    const last = [owner, second].find(({ id }) => world.directory.of(id).includes(group(org.org_id, 'owners'))) as Persona;
    const both = await Promise.all([
      refusal(remove(world.admin(), org.org_id, third.id)),
      refusal(remove(world.admin(), org.org_id, last.id)),
    ]);
    expect(both.map(([status, code]) => `${status} ${code}`).sort()).toEqual(['200 answered', '409 last_owner']);
  });

  test('identity fails: 502, nobody is told anything, and a repeat does it', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    world.directory.down.add('leaveGroups');
    expect(await refusal(remove(owner, org.org_id, person.id))).toEqual([502, 'identity_unavailable']);
    expect(await removed(org.org_id)).toEqual([]);
    world.directory.down.clear();
    await remove(owner, org.org_id, person.id);
    expect(await removed(org.org_id)).toHaveLength(1);
  });

  test('a removal that waited for its turn until it was taken for broken is 503 and did nothing; a repeat does it', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    let outcome: Promise<[number, string]> | undefined;
    await world.tx(async sql => {
      // Another change of the organization's members holds the turn meanwhile.
      await sql`select pg_advisory_xact_lock(hashtextextended(${`platform:sys:members:${org.org_id}`}, 0))`;
      outcome = refusal(remove(owner, org.org_id, person.id));
      const settling = () => sql<object[]>`
        delete from work_tasks where name = 'settleRemoval' and payload->>'org_id' = ${org.org_id} returning 1`;
      await expect.poll(async () => (await settling()).length, { timeout: 20_000, interval: 10 }).toBe(1);
    });
    expect(await outcome).toEqual([503, 'members_busy']);
    expect([await removed(org.org_id), world.directory.of(person.id)]).toEqual([[], [group(org.org_id, 'viewers')]]);
    await remove(owner, org.org_id, person.id);
    expect(await removed(org.org_id)).toHaveLength(1);
  });

  test('REG-135 a commit lost after the verb: the removal is told later, once, as what it was', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    const left = async () =>
      (await world.sql<object[]>`select 1 from work_tasks where name = 'settleRemoval' and payload->>'org_id' = ${org.org_id}`).length;
    expect(await world.losingCommits('audit', () => remove(owner, org.org_id, person.id))).toBe('lost');
    expect([world.directory.of(person.id), await removed(org.org_id), await left()]).toEqual([[], [], 1]);
    await world.host.clock.advance('2m');
    await world.settled(['settleRemoval']);
    expect([await removed(org.org_id), await left()]).toEqual([[[{ org_id: org.org_id, user_id: person.id }, SYSTEM.envId]], 0]);
    const trail = await world.sql<
      object[]
    >`select actor, details from audit where action = 'membership.removed' and resource->>'id' = ${person.id}`;
    expect([...trail]).toEqual([{ actor: { kind: 'user', id: owner.id }, details: { org_id: org.org_id } }]);
  });

  test('a removal that identity did not do is forgotten, and told by nobody', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    world.directory.down.add('leaveGroups');
    expect(await refusal(remove(owner, org.org_id, person.id))).toEqual([502, 'identity_unavailable']);
    world.directory.down.clear();
    await world.host.clock.advance('2m');
    await world.settled(['settleRemoval']);
    expect([await removed(org.org_id), world.directory.of(person.id)]).toEqual([[], [group(org.org_id, 'viewers')]]);
    expect([
      ...(await world.sql<object[]>`select 1 from work_tasks where name = 'settleRemoval' and payload->>'org_id' = ${org.org_id}`),
    ]).toEqual([]);
  });

  test('G-SYS-02 nobody is removed from, or changed in, a suspended organization', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    expect(await refusal(remove(owner, org.org_id, person.id))).toEqual([409, 'org_suspended']);
    expect(await refusal(change(owner, org.org_id, person.id, 'admin'))).toEqual([409, 'org_suspended']);
  });
});

describe('changing a level', () => {
  test('moves the person into exactly that group, in before out, and says what it was', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    expect(await change(owner, org.org_id, person.id, 'admin')).toMatchObject({
      user_id: person.id,
      access: 'admin',
      groups: [group(org.org_id, 'admins')],
    });
    expect(world.directory.of(person.id)).toEqual([group(org.org_id, 'admins')]);
    const [put, out] = world.directory.calls
      .filter(({ operation }) => ['putGroupMember', 'deleteGroupMember'].includes(operation))
      .slice(-2);
    expect([put?.operation, out?.operation]).toEqual(['putGroupMember', 'deleteGroupMember']);
    const trail = await world.sql<
      object[]
    >`select details from audit where action = 'membership.changed' and resource->>'id' = ${person.id}`;
    expect([...trail]).toEqual([{ details: { org_id: org.org_id, from: 'viewer', to: 'admin' } }]);
    const before = world.directory.calls.length;
    await change(owner, org.org_id, person.id, 'admin');
    expect(world.directory.calls.slice(before).map(({ operation }) => operation)).not.toContain('putGroupMember');
  });

  test('owners alone make and unmake owners, and the last stays one', async () => {
    const { org, owner } = await world.org();
    const [admin, viewer] = [member(org.org_id, 'admins'), member(org.org_id, 'viewers')];
    expect(await refusal(change(admin, org.org_id, viewer.id, 'owner'))).toEqual([403, 'owner_required']);
    expect(await refusal(change(admin, org.org_id, owner.id, 'viewer'))).toEqual([403, 'owner_required']);
    expect(await refusal(change(owner, org.org_id, owner.id, 'admin'))).toEqual([409, 'last_owner']);
    await change(owner, org.org_id, viewer.id, 'owner');
    const both = await Promise.all([
      refusal(change(world.admin(), org.org_id, owner.id, 'admin')),
      refusal(remove(world.admin(), org.org_id, viewer.id)),
    ]);
    expect(both.map(([status, code]) => `${status} ${code}`).sort()).toEqual(['200 answered', '409 last_owner']);
  });

  test('who is no member is 404, a lost access model 409, an unknown level 400, identity away 502', async () => {
    const { org, owner } = await world.org();
    const person = member(org.org_id, 'viewers');
    expect(await refusal(change(owner, org.org_id, newId(), 'admin'))).toEqual([404, 'member_not_found']);
    expect(await refusal(change(owner, org.org_id, 'no-id', 'admin'))).toEqual([400, 'validation_failed']);
    expect(await refusal(change(owner, org.org_id, person.id, 'king' as never))).toEqual([400, 'validation_failed']);
    world.directory.missing.add(group(org.org_id, 'admins'));
    expect(await refusal(change(owner, org.org_id, person.id, 'admin'))).toEqual([409, 'access_model_missing']);
    world.directory.missing.clear();
    world.directory.down.add('putGroupMember');
    expect(await refusal(change(owner, org.org_id, person.id, 'admin'))).toEqual([502, 'identity_unavailable']);
    expect(world.directory.of(person.id)).toEqual([group(org.org_id, 'viewers')]);
  });
});
