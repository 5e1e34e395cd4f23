import { createHash } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { as, newId } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Invitation } from '../../contract/schema/member.ts';
import { delivered, newEmail } from '../fixtures/invited.ts';
import { PostOffice } from '../fixtures/post-office.ts';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
let office: PostOffice;
beforeAll(async () => {
  world = await World.start();
  office = await PostOffice.open(world.stores);
});
afterAll(async () => {
  await office?.[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const path = (orgId: string, rest = '') => `/v1/org/${orgId}/invitations${rest}`;
const invite = async (email = newEmail(), at?: Awaited<ReturnType<World['org']>>) => {
  const { org, owner } = at ?? (await world.org());
  const invitation = (await world.host.by(owner).createInvitation({ params: { org_id: org.org_id }, body: { email } })) as Invitation;
  return { org, owner, invitation, params: { org_id: org.org_id, invitation_id: invitation.invitation_id } };
};
const trail = (id: string) =>
  world.sql<
    { action: string; actor: object; details: object }[]
  >`select action, actor, details from audit where resource->>'id' = ${id} order by audit_id`;

describe('the gate of the console', () => {
  const bff = as.machine('bff', 'sys:invitations:check');
  const pending = async (email: string) => (await world.host.by(bff).checkInvitation({ body: { email } })).pending;

  test('D-02 hears of an invitation that is pending, whatever the case of the address, until it is withdrawn, its time is up or its organization is closed', async () => {
    const email = newEmail();
    const { invitation, params, owner } = await invite(email);
    expect([await pending(email.toUpperCase()), await pending(newEmail())]).toEqual([true, false]);
    await world.host.by(owner).revokeInvitation({ params });
    expect([invitation.email, await pending(email)]).toEqual([email, false]);
    const again = newEmail();
    const { org } = await invite(again);
    await world.sql`update orgs set status = 'suspended' where org_id = ${org.org_id}`;
    expect(await pending(again)).toBe(false);
    await world.sql`update orgs set status = 'active' where org_id = ${org.org_id}`;
    await world.sql`update invitations set expires_at = ${world.host.clock.now().toISOString()} where email = ${again}`;
    expect(await pending(again)).toBe(false);
  });

  test('D-02 is asked by workloads alone', async () => {
    await expect(
      world.host.by(as.user('sys:invitations:check', 'sys:sys:admin')).checkInvitation({ body: { email: newEmail() } }),
    ).rejects.toMatchObject({ code: 'm2m_required' });
  });
});

describe('inviting', () => {
  test('REG-002 REG-053 REG-089 REG-136 answers 201 with the invitation and its place; event and audit carry ids only', async () => {
    const { org, owner } = await world.org();
    const answer = await world.host.fetch(path(org.org_id), {
      method: 'POST',
      persona: owner,
      body: JSON.stringify({ email: '  Grace@Example.org ' }),
    });
    const now = world.host.clock.now().getTime();
    const { invitation_id } = answer.json as unknown as Invitation;
    expect([answer.status, answer.headers['location'], answer.json]).toEqual([
      201,
      path(org.org_id, `/${invitation_id}`),
      {
        invitation_id,
        org_id: org.org_id,
        email: 'Grace@Example.org',
        access: 'admin',
        status: 'pending',
        expires_at: new Date(now + 7 * 86_400_000).toISOString(),
        created_at: new Date(now).toISOString(),
        created_by: owner.id,
        accepted_at: null,
      },
    ]);
    expect((await world.written('platform:sys:invitation:sent', org.org_id)).map(({ payload, env_id }) => [payload, env_id])).toEqual([
      [{ org_id: org.org_id, invitation_id }, SYSTEM.envId],
    ]);
    expect([...(await trail(invitation_id))]).toEqual([
      { action: 'invitation.sent', actor: { kind: 'user', id: owner.id }, details: { org_id: org.org_id } },
    ]);
  });

  test('G-SYS-07 the token is 32 bytes, only in the mail: no row, event, audit or answer has it in a readable form', async () => {
    const { invitation, org, owner } = await invite();
    const queued = JSON.stringify([...(await world.sql<object[]>`select * from work_tasks where key = ${invitation.invitation_id}`)]);
    expect(queued).not.toContain(invitation.email);
    const token = await delivered(world, office, invitation.invitation_id);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    const [{ token_hash: hash }] = await world.sql<
      [{ token_hash: Uint8Array }]
    >`select token_hash from invitations where invitation_id = ${invitation.invitation_id}`;
    expect(Buffer.from(hash).toString('hex')).toBe(createHash('sha256').update(token).digest('hex'));
    const everything = JSON.stringify([
      queued,
      ...(await world.sql<object[]>`select payload from outbox`),
      ...(await world.sql<object[]>`select * from audit`),
      await world.host.by(owner).listInvitations({ params: { org_id: org.org_id } }),
    ]);
    expect(everything).not.toContain(token);
  });

  test.each(['', 'nobody', 'a@b c', 'two@at@signs', 'line\r\nbreak@example.org', 7, undefined])(
    'REG-053 an e-mail like %j is 400',
    async email => {
      const { org, owner } = await world.org();
      const answer = await world.host.fetch(path(org.org_id), { method: 'POST', persona: owner, body: JSON.stringify({ email }) });
      expect([answer.status, answer.json['code']]).toEqual([400, 'validation_failed']);
    },
  );

  test('G-SYS-07 a second pending invitation for the same e-mail is 409, in any spelling, also at once; for another organization it is none', async () => {
    const at = await world.org();
    const email = newEmail();
    const both = await Promise.all([email, ` ${email.toUpperCase()} `].map(each => refusal(invite(each, at))));
    expect(both.map(([status]) => status).sort()).toEqual([200, 409]);
    expect(await refusal(invite(email, at))).toEqual([409, 'invitation_pending']);
    await invite(email);
  });

  test('an expired one does not block: the next takes its place, and says so', async () => {
    const at = await world.org();
    const { invitation } = await invite(newEmail(), at);
    await world.sql`update invitations set expires_at = ${world.host.clock.now().toISOString()}
      where invitation_id = ${invitation.invitation_id}`;
    const next = await invite(invitation.email, at);
    const { items } = await world.host.by(at.owner).listInvitations({ params: { org_id: at.org.org_id } });
    expect(items.map(({ invitation_id, status }) => [invitation_id, status])).toEqual([
      [next.invitation.invitation_id, 'pending'],
      [invitation.invitation_id, 'revoked'],
    ]);
    expect((await world.written('platform:sys:invitation:revoked', at.org.org_id)).map(({ payload }) => payload['invitation_id'])).toEqual([
      invitation.invitation_id,
    ]);
  });

  test('G-K-19 fifty in an hour for one organization, then 429 with the time to wait; another organization is not touched', async () => {
    const at = await world.org();
    await Promise.all(Array.from({ length: 50 }, () => invite(newEmail(), at)));
    const answer = await world.host.fetch(path(at.org.org_id), {
      method: 'POST',
      persona: at.owner,
      body: JSON.stringify({ email: newEmail() }),
    });
    expect([answer.status, answer.json['code']]).toEqual([429, 'rate_limited']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3_600);
    expect([answer.headers['ratelimit'], answer.headers['ratelimit-policy']]).toEqual([
      `"invitations";r=0;t=${answer.headers['retry-after']}`,
      '"invitations";q=50;w=3600',
    ]);
    await invite();
    // One leaves the hour: one more goes out, and only one, however many ask at once.
    await world.sql`update invitations set created_at = created_at - interval '61 minutes'
      where invitation_id = (select invitation_id from invitations where org_id = ${at.org.org_id} limit 1)`;
    const tries = await Promise.all([newEmail(), newEmail(), newEmail()].map(email => refusal(invite(email, at))));
    expect(tries.map(([status]) => status).sort()).toEqual([200, 429, 429]);
  });
});

describe('listing and revoking', () => {
  test('REG-089 the list is newest first, pages, and narrows to a status', async () => {
    const at = await world.org();
    const made: string[] = [];
    for (let index = 0; index < 3; index++) made.unshift((await invite(newEmail(), at)).invitation.invitation_id);
    const by = world.host.by(at.owner);
    const params = { org_id: at.org.org_id };
    await by.revokeInvitation({ params: { ...params, invitation_id: made[1] as string } });
    const first = await by.listInvitations({ params, query: { limit: 2 } });
    const second = await by.listInvitations({ params, query: { limit: 2, cursor: first.next_cursor as string } });
    expect([first.items.map(({ invitation_id: id }) => id), second.items.map(({ invitation_id: id }) => id), second.next_cursor]).toEqual([
      made.slice(0, 2),
      made.slice(2),
      null,
    ]);
    expect((await by.listInvitations({ params, query: { status: 'revoked' } })).items.map(({ invitation_id: id }) => id)).toEqual([
      made[1],
    ]);
    expect((await by.listInvitations({ params, query: { status: 'accepted' } })).items).toEqual([]);
    expect(await refusal(by.listInvitations({ params, query: { cursor: 'nonsense' } }))).toEqual([400, 'invalid_cursor']);
    expect(await by.getInvitation({ params: { ...params, invitation_id: made[1] as string } })).toMatchObject({ status: 'revoked' });
  });

  test.each(['revokeInvitation', 'deleteInvitation'] as const)(
    'REG-069 REG-137 %s withdraws a pending one once, with its mail',
    async verb => {
      const { org, owner, invitation, params } = await invite();
      expect(await world.host.by(owner)[verb]({ params })).toEqual({ ...invitation, status: 'revoked' });
      expect(await refusal(world.host.by(owner)[verb]({ params }))).toEqual([409, 'invitation_not_pending']);
      expect((await world.written('platform:sys:invitation:revoked', org.org_id)).map(({ payload }) => payload)).toEqual([
        { org_id: org.org_id, invitation_id: invitation.invitation_id },
      ]);
      expect((await trail(invitation.invitation_id)).map(({ action }) => action)).toEqual(['invitation.sent', 'invitation.revoked']);
      // A try that was under way is not taken back; the next one sees that nobody is to be invited any more.
      const left = () => world.sql<object[]>`select state from work_tasks where key = ${invitation.invitation_id} and state <> 'done'`;
      await world.settled(['inviteByMail']);
      await world.sql`update work_tasks set due_at = '2020-01-01' where key = ${invitation.invitation_id} and state = 'waiting'`;
      await world.settled(['inviteByMail']);
      expect([...(await left())]).toEqual([]);
      // The e-mail is free for a new one.
      await invite(invitation.email, { org, owner });
    },
  );

  test('an invitation of another organization, or none at all, is 404', async () => {
    const { invitation } = await invite();
    const { org, owner } = await world.org();
    for (const id of [invitation.invitation_id, newId()])
      for (const verb of ['getInvitation', 'revokeInvitation', 'deleteInvitation'] as const)
        expect(await refusal(world.host.by(owner)[verb]({ params: { org_id: org.org_id, invitation_id: id } }))).toEqual([
          404,
          'invitation_unknown',
        ]);
  });
});

describe('who may', () => {
  const calls = (persona: ReturnType<World['stranger']>, orgId: string, invitationId: string) => {
    const by = world.host.by(persona);
    const params = { org_id: orgId, invitation_id: invitationId };
    return [
      by.createInvitation({ params, body: { email: newEmail() } }),
      by.listInvitations({ params }),
      by.getInvitation({ params }),
      by.revokeInvitation({ params }),
    ].map(refusal);
  };

  test('REG-089 the gate is sys:memberships:admin for all but accepting', async () => {
    const { org, invitation } = await invite();
    expect(await Promise.all(calls(as.user('sys:read', 'sys:org:admin'), org.org_id, invitation.invitation_id))).toEqual(
      Array(4).fill([403, 'policy_denied']),
    );
  });

  test('REG-089 viewers and strangers are refused, administrators are not; an id that cannot be one is no error of ours', async () => {
    const { org, invitation } = await invite();
    const member = (group: string) => {
      const person = world.stranger();
      world.directory.groups(person.id, `platform:org:${org.org_id}:${group}`);
      return person;
    };
    for (const persona of [world.stranger(), member('viewers')])
      expect(await Promise.all(calls(persona, org.org_id, invitation.invitation_id))).toEqual(Array(4).fill([403, 'not_org_member']));
    expect(await Promise.all(calls(member('admins'), org.org_id, invitation.invitation_id))).toEqual(Array(4).fill([200, 'answered']));
    for (const persona of [world.stranger(), world.admin()])
      expect(await Promise.all(calls(persona, 'no-id', 'no-id'))).toEqual(Array(4).fill([400, 'validation_failed']));
  });

  test('G-SYS-02 a suspended or archived organization invites and revokes nobody, and still shows', async () => {
    const { org, owner, params } = await invite();
    await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    const by = world.host.by(owner);
    expect(await refusal(by.createInvitation({ params, body: { email: newEmail() } }))).toEqual([409, 'org_suspended']);
    expect(await refusal(by.revokeInvitation({ params }))).toEqual([409, 'org_suspended']);
    expect((await by.listInvitations({ params })).items).toHaveLength(1);
    await by.archiveOrg({ params: { id: org.org_id } });
    expect(await refusal(by.createInvitation({ params, body: { email: newEmail() } }))).toEqual([409, 'record_archived']);
    expect(await refusal(by.deleteInvitation({ params }))).toEqual([409, 'record_archived']);
  });
});
