import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import type { Invitation } from '../../contract/schema/member.ts';
import { newEmail } from '../fixtures/invited.ts';
import { PostOffice, tokenIn } from '../fixtures/post-office.ts';
import { World } from '../fixtures/world.ts';

let world: World;
let office: PostOffice | undefined;
const open = async () => (office = await PostOffice.open(world.stores));
const close = async () => {
  await office?.[Symbol.asyncDispose]();
  office = undefined;
};
beforeAll(async () => {
  world = await World.start();
});
afterAll(async () => {
  await close();
  await world[Symbol.asyncDispose]();
});
afterEach(async () => {
  await close();
  // Nothing is on its way any more that the next test would find.
  await eventually(async () => (await rows()).filter(({ state, attempts }) => state !== 'waiting' || attempts === 0)).toEqual([]);
  await world.sql`delete from work_tasks where name = 'inviteByMail'`;
});

const invite = async (email = newEmail(), name?: string) => {
  const { org, owner } = await world.org();
  if (name) await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: name } });
  const invitation = (await world.host.by(owner).createInvitation({ params: { org_id: org.org_id }, body: { email } })) as Invitation;
  return { org, owner, invitation };
};
type Row = { task_id: string; attempts: number; failures: { reason: string }[]; due_at: string; ended_at: string; state: string };
const rows = async () => [
  ...(await world.sql<
    Row[]
  >`select task_id, attempts, failures, due_at, ended_at, state from work_tasks where name = 'inviteByMail' order by created_at, task_id`),
];
const tried = async () =>
  (await rows()).filter(({ state }) => state === 'waiting').map(({ attempts, failures }) => [attempts, failures.at(-1)?.reason]);
const order = () => (office as PostOffice).received.map(({ body }) => body.recipient.email);

describe('mail of an invitation', () => {
  test('REG-037 NTF-007 NTF-008 is queued in the transaction of the invitation: neither is there without the other', async () => {
    await world.sql`alter table work_tasks add constraint full_up check (name <> 'inviteByMail')`;
    const before = (await world.sql<object[]>`select 1 from invitations`).length;
    await expect(invite()).rejects.toThrow();
    expect([(await world.sql<object[]>`select 1 from invitations`).length, (await rows()).length]).toEqual([before, 0]);
    await world.sql`alter table work_tasks drop constraint full_up`;
    const { invitation } = await invite();
    expect([...(await world.sql<object[]>`select key from work_tasks where name = 'inviteByMail'`)]).toEqual([
      { key: invitation.invitation_id },
    ]);
  });

  test('REG-038 REG-041 REG-118 H-08 NTF-007 NTF-056 arrives at the send API at once, from the workload sys-post, as a template with a link that only shows', async () => {
    await open();
    const { org, invitation } = await invite(newEmail(), 'Åkerö\n& Sons');
    await eventually(() => office?.received.length).toBe(1);
    const [mail] = (office as PostOffice).received;
    expect(mail?.caller).toMatchObject({ kind: 'machine', subject: 'sys-post', bound: true });
    const token = tokenIn(mail as NonNullable<typeof mail>);
    const link = `https://console.ops.sys.localhost:8443/#/bootstrap?org=${org.org_id}&invitation=${token}`;
    expect(mail?.body).toMatchObject({
      env_id: '00000000-0000-7000-8000-000000000002',
      category: 'system',
      recipient: { user_id: `email:${invitation.email}`, email: invitation.email },
      template: {
        key: 'sys.invitation',
        vars: { org_name: 'Åkerö & Sons', email: invitation.email, link, ends_on: invitation.expires_at.slice(0, 10) },
      },
      subject: 'Invitation to Åkerö & Sons',
      channels: ['email'],
      confidential: true,
      resource_refs: [{ type: 'invitation', id: invitation.invitation_id }],
      idempotency_key: expect.any(String),
    });
    expect(mail?.body.body).toContain(`\n${link}\n`);
    // Delivered, it is erased: the token is nowhere any more.
    await eventually(rows).toEqual([]);
    await world.host.clock.advance('10s');
    expect(office?.received).toHaveLength(1);
  });

  test('REG-039 REG-040 an outage drops nothing: after ten seconds it is tried again, and what waited arrives once, without a word of it in the log', async () => {
    const emails = [newEmail(), newEmail(), newEmail()];
    for (const email of emails) await invite(email);

    await eventually(async () => (await tried()).map(([attempts]) => attempts)).toEqual([1, 1, 1]);
    await world.host.clock.advance('9s');
    expect((await tried()).map(([attempts]) => attempts)).toEqual([1, 1, 1]);
    await world.host.clock.advance('1s');
    await eventually(async () => (await tried()).map(([attempts]) => attempts)).toEqual([2, 2, 2]);
    for (const [, reason] of await tried()) expect(reason).toContain('backend_unresolved');
    world.host.process.telemetry.flush();
    const log = readFileSync(join(world.stores.dataDir, 'logs', 'test-sys.log'), 'utf8');
    for (const email of emails) expect(log).not.toContain(email);
    expect((await world.host.fetch('/v1/readiness')).status).toBe(200);
    await open();
    await world.host.clock.advance('20s');
    await eventually(() => order().toSorted()).toEqual(emails.toSorted());
    await eventually(rows).toEqual([]);
  });

  test('REG-042 C29 a refused mail stays and is tried for ever, ten minutes apart at most, without holding up the others or telling what it says', async () => {
    const desk = await open();
    const [refused, fine] = [newEmail(), newEmail()];
    desk.refuse = ({ recipient }) => {
      if (recipient.email === refused) throw new Error('no');
    };
    await invite(refused);
    await invite(fine);
    await eventually(order).toEqual([fine]);
    await eventually(tried).toEqual([[1, '500 post/category_unsupported']]);
    await world.sql`update work_tasks set attempts = 1000, due_at = ${world.host.clock.now().toISOString()} where name = 'inviteByMail'`;
    await world.host.clock.advance('5s');
    await eventually(tried).toEqual([[1_001, '500 post/category_unsupported']]);
    const [row] = await rows();
    expect(Date.parse(row?.due_at as string) - Date.parse(row?.ended_at as string)).toBe(600_000);
    desk.refuse = () => undefined;
    await world.host.clock.advance('10m');
    await eventually(order).toEqual([fine, refused]);
  });

  test('of one that was withdrawn while it waited is not sent any more', async () => {
    const { invitation } = await invite();
    await eventually(async () => (await tried()).map(([attempts]) => attempts)).toEqual([1]);
    await world.sql`update invitations set status = 'revoked' where invitation_id = ${invitation.invitation_id}`;
    await open();
    await world.host.clock.advance('10s');
    await eventually(rows).toEqual([]);
    expect(office?.received).toEqual([]);
  });

  test('what was sealed under another key stays, and says so', async () => {
    const { invitation } = await invite();
    await eventually(async () => (await tried()).map(([attempts]) => attempts)).toEqual([1]);
    expect(JSON.stringify([...(await world.sql<object[]>`select payload from work_tasks`)])).not.toContain(invitation.email);
    await open();
    await world.sql`update work_tasks set payload = jsonb_set(payload, '{sealed,kid}', '"00000000"')`;
    await world.host.clock.advance('10s');
    await eventually(tried).toEqual([[2, 'sealed_under_another_key']]);
    expect(office?.received).toEqual([]);
  });
});
