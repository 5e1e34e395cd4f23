import { createHash } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { as, type Persona } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { delivered, guest, invited, newEmail } from '../fixtures/invited.ts';
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
afterEach(() => {
  world.directory.down.clear();
  world.directory.missing.clear();
});

const accept = (persona: Persona, orgId: string, token: string) =>
  world.host.by(persona).acceptInvitation({ params: { org_id: orgId }, body: { token } });
const statusOf = async (id: string) =>
  (await world.sql<[{ status: string }]>`select status from invitations where invitation_id = ${id}`)[0].status;
const adminsOf = (orgId: string) => `platform:org:${orgId}:admins`;
const onRecord = async (orgId: string) => (await world.sql<object[]>`select 1 from acceptances where org_id = ${orgId}`).length;

describe('an invitation of somebody without an account', () => {
  const identity = as.machine('auth', 'sys:invitations:join');
  const referenceOf = (token: string) => createHash('sha256').update(token).digest('base64url');
  const join = (reference: string, person: Persona, email = person.email) =>
    world.host.by(identity).joinInvited({ params: { reference }, body: { user_id: person.id, email } });

  test('F-51 says by the hash of its token who invites where to, to anybody who knows it, and how it stands', async () => {
    const { org, owner, email, invitation, token } = await invited(world, office);
    const shown = await world.host.fetch(`/v1/invitations/${referenceOf(token)}`);
    expect([shown.status, shown.json]).toEqual([
      200,
      {
        org_id: org.org_id,
        org_name: org.display_name,
        email,
        access: 'admin',
        status: 'pending',
        open: true,
        expires_at: invitation.expires_at,
        invited_by: owner.id,
        inviter: expect.anything(),
      },
    ]);
    await world.host.by(owner).revokeInvitation({ params: { org_id: org.org_id, invitation_id: invitation.invitation_id } });
    expect((await world.host.fetch(`/v1/invitations/${referenceOf(token)}`)).json).toMatchObject({ status: 'revoked', open: false });
    for (const reference of [token, referenceOf('x'), 'x', '%00']) {
      const answer = await world.host.fetch(`/v1/invitations/${reference}`);
      expect([reference, answer.status]).toEqual([reference, reference === '%00' ? 400 : 404]);
    }
  });

  test('F-51 takes the person in when the identity service says that the address is proved', async () => {
    const { org, invitation, email, token } = await invited(world, office);
    const person = guest(email);
    const group = adminsOf(org.org_id);
    expect(await join(referenceOf(token), person, ` ${email.toUpperCase()} `)).toEqual({
      org_id: org.org_id,
      invitation_id: invitation.invitation_id,
      status: 'accepted',
      group,
    });
    expect(world.directory.of(person.id)).toEqual([group]);
    const [row] = await world.sql<
      object[]
    >`select actor, details from audit where action = 'invitation.accepted' and resource->>'id' = ${invitation.invitation_id}`;
    expect(row).toEqual({ actor: { kind: 'workload', id: 'auth' }, details: { org_id: org.org_id, user_id: person.id } });
    expect(await refusal(join(referenceOf(token), person))).toEqual([409, 'invitation_already_accepted']);
  });

  test('F-51 takes in nobody else: another address, another workload, a person', async () => {
    const { invitation, email, token } = await invited(world, office);
    const person = guest(email);
    expect(await refusal(join(referenceOf(token), person, newEmail()))).toEqual([403, 'invitation_email_mismatch']);
    expect(await refusal(join(referenceOf('x'), person))).toEqual([404, 'invitation_unknown']);
    const path = `/v1/invitations/${referenceOf(token)}/join`;
    const body = JSON.stringify({ user_id: person.id, email });
    for (const persona of [person, as.user('sys:invitations:join'), as.machine('func', 'sys:memberships:admin')]) {
      expect((await world.host.fetch(path, { method: 'POST', body, persona })).status).toBe(403);
    }
    expect(await statusOf(invitation.invitation_id)).toBe('pending');
  });
});

describe('accepting an invitation', () => {
  test('REG-066 REG-067 REG-068 REG-138 REG-143 puts the person among the administrators; status, event, audit row and group together', async () => {
    const { org, invitation, email, token } = await invited(world, office);
    const person = guest(email);
    const [params, group] = [{ org_id: org.org_id, invitation_id: invitation.invitation_id }, adminsOf(org.org_id)];
    expect(await accept(person, org.org_id, token)).toEqual({ ...params, status: 'accepted', group });
    expect(world.directory.of(person.id)).toEqual([group]);
    expect(world.directory.asked('putGroupMember').at(-1)?.input).toMatchObject({
      params: { group, user_id: person.id },
      headers: { 'x-platform-target-env-id': SYSTEM.envId },
    });
    expect((await world.written('platform:sys:invitation:accepted', org.org_id)).map(({ payload, env_id }) => [payload, env_id])).toEqual([
      [params, SYSTEM.envId],
    ]);
    const [row] = await world.sql<
      object[]
    >`select actor, details from audit where action = 'invitation.accepted' and resource->>'id' = ${invitation.invitation_id}`;
    expect(row).toEqual({ actor: { kind: 'user', id: person.id }, details: { org_id: org.org_id } });
    expect([
      ...(await world.sql<object[]>`select status, accepted_by from invitations where invitation_id = ${invitation.invitation_id}`),
    ]).toEqual([{ status: 'accepted', accepted_by: person.id }]);
    expect(await onRecord(org.org_id)).toBe(0);
    // REG-017: nothing cached stands in the way of the very next request.
    expect(await world.host.by({ ...person, scopes: ['sys:read'] }).getOrg({ params: { id: org.org_id } })).toMatchObject({
      org_id: org.org_id,
    });
  });

  test('F-14 an invitation carries the level that accepting it gives, and only an owner gives the highest', async () => {
    const { org, owner } = await world.org();
    const admin = world.stranger();
    world.directory.groups(admin.id, adminsOf(org.org_id));
    const invite = (by: Persona, email: string, access: 'owner' | 'viewer') =>
      world.host.by(by).createInvitation({ params: { org_id: org.org_id }, body: { email, access } });
    expect(await refusal(invite(admin, newEmail(), 'owner'))).toEqual([403, 'owner_required']);
    for (const [by, access] of [
      [admin, 'viewer'],
      [owner, 'owner'],
    ] as const) {
      const email = newEmail();
      const { invitation_id } = (await invite(by, email, access)) as { invitation_id: string };
      const person = guest(email);
      await accept(person, org.org_id, await delivered(world, office, invitation_id));
      expect(world.directory.of(person.id)).toEqual([`platform:org:${org.org_id}:${access}s`]);
    }
  });

  test('C6 over the wire: a verified person without a single scope; a workload is refused, and nobody is asked to sign in', async () => {
    const { org, email, token } = await invited(world, office);
    const path = `/v1/org/${org.org_id}/invitations/accept`;
    const body = JSON.stringify({ token });
    expect((await world.host.fetch(path, { method: 'POST', body })).status).toBe(401);
    expect(
      (await world.host.fetch(path, { method: 'POST', body, persona: as.machine('func', 'sys:memberships:admin') })).json['code'],
    ).toBe('user_required');
    const person = guest(email);
    const answer = await world.host.fetch(path, { method: 'POST', body, persona: person });
    expect([answer.status, answer.json['status']]).toEqual([200, 'accepted']);
  });

  test('REG-148 the e-mail must be the invited one, verified; case and space around it are not part of it', async () => {
    const { org, email, invitation, token } = await invited(world, office, '  Mixed.Case@Example.ORG ');
    const refused = [403, 'invitation_email_mismatch'];
    expect(email).not.toBe(invitation.email);
    expect(await refusal(accept(guest('other@example.org'), org.org_id, token))).toEqual(refused);
    const person = guest('x@example.org');
    const path = `/v1/org/${org.org_id}/invitations/accept`;
    for (const claims of [{ email: 'mixed.case@example.org', email_verified: false }, { email: undefined }]) {
      const answer = await world.host.fetch(path, {
        method: 'POST',
        token: world.host.mint.token(person, 'sys', claims),
        body: JSON.stringify({ token }),
      });
      expect([answer.status, answer.json['code']]).toEqual(refused);
    }
    expect(await statusOf(invitation.invitation_id)).toBe('pending');
    expect(await accept(guest(' mixed.case@example.org'), org.org_id, token)).toMatchObject({ status: 'accepted' });
  });

  test('C6 REG-148 an account of a tenant’s own realm is somebody else, whatever e-mail that tenant has verified', async () => {
    const { org, email, invitation, token } = await invited(world, office);
    const elsewhere = { ...as.userIn((await world.tenant()).env.env_id), email };
    expect(await refusal(accept(elsewhere, org.org_id, token))).toEqual([403, 'invitation_email_mismatch']);
    expect([await statusOf(invitation.invitation_id), world.directory.of(elsewhere.id)]).toEqual(['pending', []]);
  });

  test('H-13 twelve accepts of one token at once: one succeeds, the others are told that it was accepted', async () => {
    const { org, email, token } = await invited(world, office);
    const person = guest(email);
    const answers = await Promise.all(Array.from({ length: 12 }, () => refusal(accept(person, org.org_id, token))));
    expect(answers.map(([status, code]) => `${status} ${code}`).sort()).toEqual([
      '200 answered',
      ...Array<string>(11).fill('409 invitation_already_accepted'),
    ]);
    expect(await world.written('platform:sys:invitation:accepted', org.org_id)).toHaveLength(1);
    expect(await onRecord(org.org_id)).toBe(0);
  });

  test('REG-151 whoever cannot be resolved is no member', async () => {
    const { org, email, token } = await invited(world, office);
    const nobody = { ...guest(email), id: '' };
    expect(
      await accept(nobody, org.org_id, token).catch((error: { status: number; detail: string }) => [error.status, error.detail]),
    ).toEqual([403, 'caller is not a member of the org']);
  });
});

describe('the order of checks (G-SYS-07)', () => {
  const past = (id: string) => world.sql`update invitations set expires_at = now() - interval '1 day' where invitation_id = ${id}`;

  test('404 before everything: an unknown token, and a known one of another organization', async () => {
    const [{ org, email }, other] = [await invited(world, office), await invited(world, office)];
    for (const token of ['x', other.token])
      expect(await refusal(accept(guest(email), org.org_id, token))).toEqual([404, 'invitation_unknown']);
    expect(await refusal(accept(guest(other.email), 'no-id', other.token))).toEqual([400, 'validation_failed']);
  });

  test('REG-053 410 revoked before 410 expired, 410 expired before 403', async () => {
    const { org, owner, invitation, token } = await invited(world, office);
    await past(invitation.invitation_id);
    expect(await refusal(accept(guest('other@example.org'), org.org_id, token))).toEqual([410, 'invitation_expired']);
    await world.host.by(owner).revokeInvitation({ params: { org_id: org.org_id, invitation_id: invitation.invitation_id } });
    expect(await refusal(accept(guest('other@example.org'), org.org_id, token))).toEqual([410, 'invitation_revoked']);
  });

  test('REG-053 409 accepted before 403, and however late: a token is good for one time', async () => {
    const { org, email, invitation, token } = await invited(world, office);
    await accept(guest(email), org.org_id, token);
    expect(await refusal(accept(guest('other@example.org'), org.org_id, token))).toEqual([409, 'invitation_already_accepted']);
    await past(invitation.invitation_id);
    expect(await refusal(accept(guest(email), org.org_id, token))).toEqual([409, 'invitation_already_accepted']);
  });

  test('REG-149 REG-150 403 before 409: a missing access model is told to the invited alone, and nothing is made up', async () => {
    const { org, email, invitation, token } = await invited(world, office);
    world.directory.missing.add(adminsOf(org.org_id));
    const before = world.directory.asked('provisionAccess').length;
    expect(await refusal(accept(guest('other@example.org'), org.org_id, token))).toEqual([403, 'invitation_email_mismatch']);
    expect(await refusal(accept(guest(email), org.org_id, token))).toEqual([409, 'access_model_missing']);
    expect([world.directory.asked('provisionAccess').length, world.directory.asked('putGroup')]).toEqual([before, []]);
    expect([await statusOf(invitation.invitation_id), await onRecord(org.org_id)]).toEqual(['pending', 0]);
  });

  test('G-SYS-02 a suspended or archived organization takes nobody in', async () => {
    const { org, owner, email, token } = await invited(world, office);
    await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    expect(await refusal(accept(guest(email), org.org_id, token))).toEqual([409, 'org_suspended']);
    await world.host.by(owner).archiveOrg({ params: { id: org.org_id } });
    expect(await refusal(accept(guest(email), org.org_id, token))).toEqual([409, 'record_archived']);
  });
});

describe('when something fails on the way (C7)', () => {
  test.each(['userGroups', 'putGroupMember'])('REG-068 %s fails: 502, nothing is written, and the same link works later', async verb => {
    const { org, email, invitation, token } = await invited(world, office);
    const person = guest(email);
    world.directory.down.add(verb);
    expect(await refusal(accept(person, org.org_id, token))).toEqual([502, 'identity_unavailable']);
    expect(await statusOf(invitation.invitation_id)).toBe('pending');
    expect(await world.written('platform:sys:invitation:accepted', org.org_id)).toEqual([]);
    expect([
      ...(await world.sql<
        object[]
      >`select 1 from audit where action = 'invitation.accepted' and resource->>'id' = ${invitation.invitation_id}`),
    ]).toEqual([]);
    world.directory.down.clear();
    expect(await accept(person, org.org_id, token)).toMatchObject({ status: 'accepted' });
    // What the first try left on record must not take the member out again.
    await world.host.clock.advance('2m');
    await world.settled(['settleAcceptance']);
    expect([world.directory.of(person.id), await onRecord(org.org_id)]).toEqual([[adminsOf(org.org_id)], 0]);
  });

  test('REG-068 the commit is lost after the verb: the member is taken out again, and the invitation can still be accepted', async () => {
    const { org, email, invitation, token } = await invited(world, office);
    const person = guest(email);
    expect(await world.losingCommits('invitations', () => accept(person, org.org_id, token))).toBe('lost');
    expect([await statusOf(invitation.invitation_id), world.directory.of(person.id), await onRecord(org.org_id)]).toEqual([
      'pending',
      [adminsOf(org.org_id)],
      1,
    ]);
    // Not while it may still be under way.
    await world.host.clock.advance('30s');
    await world.settled(['settleAcceptance']);
    expect(world.directory.of(person.id)).toEqual([adminsOf(org.org_id)]);
    // An identity service that is away does not end it either.
    world.directory.down.add('deleteGroupMember');
    await world.host.clock.advance('60s');
    await world.settled(['settleAcceptance']);
    expect([world.directory.of(person.id), await onRecord(org.org_id)]).toEqual([[adminsOf(org.org_id)], 1]);
    world.directory.down.clear();
    await world.host.clock.advance('30s');
    await world.settled(['settleAcceptance']);
    expect([world.directory.of(person.id), await onRecord(org.org_id)]).toEqual([[], 0]);
    expect(await accept(person, org.org_id, token)).toMatchObject({ status: 'accepted' });
    expect(world.directory.of(person.id)).toEqual([adminsOf(org.org_id)]);
  });

  test('REG-068 whoever was an administrator before stays one when the commit is lost', async () => {
    const { org, email, token } = await invited(world, office);
    const person = guest(email);
    world.directory.groups(person.id, adminsOf(org.org_id));
    expect(await world.losingCommits('invitations', () => accept(person, org.org_id, token))).toBe('lost');
    await world.host.clock.advance('2m');
    await world.settled(['settleAcceptance']);
    expect(world.directory.of(person.id)).toEqual([adminsOf(org.org_id)]);
  });
});
