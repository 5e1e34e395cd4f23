import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Invitation } from '../contract/schema/member.ts';
import { newEmail } from './fixtures/invited.ts';
import { PostOffice, tokenIn } from './fixtures/post-office.ts';
import { World } from './fixtures/world.ts';

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
  await world.sql`delete from mail_queue`;
});

const invite = async (email = newEmail(), name?: string) => {
  const { org, owner } = await world.org();
  if (name) await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: name } });
  const invitation = (await world.host.by(owner).createInvitation({ params: { org_id: org.org_id }, body: { email } })) as Invitation;
  return { org, owner, invitation };
};
const rows = async () => [
  ...(await world.sql<
    { mail_id: string; attempts: number; last_error: string | null; next_retry_at: string }[]
  >`select mail_id, attempts, last_error, next_retry_at from mail_queue order by created_at, mail_id`),
];
const queue = () => world.host.by(world.admin()).mailQueue();
const pass = () => world.host.clock.advance('10s');
const order = () => (office as PostOffice).received.map(({ body }) => body.recipient.email);

describe('mail of an invitation', () => {
  test('REG-037 is queued in the transaction of the invitation: neither is there without the other', async () => {
    await world.sql`alter table mail_queue add constraint full_up check (attempts > 0)`;
    const before = (await world.sql<object[]>`select 1 from invitations`).length;
    await expect(invite()).rejects.toThrow();
    expect([(await world.sql<object[]>`select 1 from invitations`).length, (await rows()).length]).toEqual([before, 0]);
    await world.sql`alter table mail_queue drop constraint full_up`;
    const { invitation } = await invite();
    expect([...(await world.sql<object[]>`select invitation_id from mail_queue`)]).toEqual([{ invitation_id: invitation.invitation_id }]);
  });

  test('REG-038 REG-039 REG-041 H-08 NTF-056 arrives within ten seconds at the send API, from the workload sys-post, with a link that only shows', async () => {
    await open();
    const { org, invitation } = await invite(newEmail(), 'Åkerö\n& Sons');
    const mailId = (await rows())[0]?.mail_id;
    await world.host.clock.advance('9s');
    expect(office?.received).toEqual([]);
    await world.host.clock.advance('1s');
    const [mail, ...more] = (office as PostOffice).received;
    expect(more).toEqual([]);
    expect(mail?.caller).toMatchObject({ kind: 'machine', subject: 'sys-post', bound: true });
    expect(mail?.body).toMatchObject({
      env_id: '00000000-0000-7000-8000-000000000002',
      category: 'system',
      recipient: { user_id: `email:${invitation.email}`, email: invitation.email },
      subject: 'Invitation to Åkerö & Sons',
      channels: ['email'],
      resource_refs: [{ type: 'invitation', id: invitation.invitation_id }],
      idempotency_key: mailId,
    });
    const token = tokenIn(mail as NonNullable<typeof mail>);
    expect(mail?.body.body).toContain(`\nhttps://console.ops.sys.localhost:8443/#/bootstrap?org=${org.org_id}&invitation=${token}\n`);
    // Delivered, it is erased: the token is nowhere any more.
    expect(await rows()).toEqual([]);
    await pass();
    expect(office?.received).toHaveLength(1);
  });

  test('REG-040 an outage drops nothing: every pass tries again, and what waited arrives in order, once', async () => {
    const emails = [newEmail(), newEmail(), newEmail()];
    for (const email of emails) await invite(email);
    for (let time = 1; time <= 3; time++) {
      await pass();
      expect((await rows()).map(({ attempts, last_error }) => [attempts, last_error])).toEqual([
        [time, '502 backend_unresolved'],
        [0, null],
        [0, null],
      ]);
    }
    // One warning for the whole outage, with a count and a reason, and nothing of what waits.
    world.host.process.telemetry.flush();
    const log = readFileSync(join(world.stores.dataDir, 'logs', 'test-sys.log'), 'utf8');
    expect(log.match(/the notification service is away; mail waits/g)).toHaveLength(1);
    for (const email of emails) expect(log).not.toContain(email);
    const waiting = await queue();
    expect(waiting).toMatchObject({ queued: 3, refused: 1, last_error: '502 backend_unresolved' });
    expect(waiting.oldest_at).toBeTruthy();
    expect((await world.host.fetch('/v1/readiness')).status).toBe(200);
    await open();
    await pass();
    expect(order()).toEqual(emails);
    expect(await queue()).toEqual({ queued: 0, refused: 0, oldest_at: null, last_error: null });
  });

  test('REG-042 C29 a refused mail stays and is tried for ever, ten minutes apart at most, without holding up the others or telling what it says', async () => {
    const desk = await open();
    const [refused, fine] = [newEmail(), newEmail()];
    desk.refuse = ({ recipient }) => {
      if (recipient.email === refused) throw new Error('no');
    };
    await invite(refused);
    await invite(fine);
    await pass();
    expect(order()).toEqual([fine]);
    // Ten seconds, then twenty: the second pass finds it due, the third does not.
    for (const attempts of [2, 2, 3]) {
      await pass();
      expect((await rows()).map(row => [row.attempts, row.last_error])).toEqual([[attempts, '500 category_unsupported']]);
    }
    const now = world.host.clock.now();
    await world.sql`update mail_queue set attempts = 1000, next_retry_at = ${now.toISOString()}`;
    await pass();
    const [row] = await rows();
    expect([row?.attempts, Date.parse(row?.next_retry_at as string) - world.host.clock.now().getTime()]).toEqual([1_001, 600_000]);
    desk.refuse = () => undefined;
    await world.sql`update mail_queue set next_retry_at = ${now.toISOString()}`;
    await pass();
    expect(order()).toEqual([fine, refused]);
  });

  test('only administrators of the platform see the queue', async () => {
    await expect(world.host.by(world.stranger()).mailQueue()).rejects.toMatchObject({ status: 403 });
  });

  test('what was sealed under another key stays, and says so', async () => {
    await open();
    await invite();
    await world.sql`update mail_queue set sealed = jsonb_set(sealed, '{kid}', '"00000000"')`;
    await pass();
    expect((await rows()).map(({ attempts, last_error }) => [attempts, last_error])).toEqual([[1, 'sealed under another key']]);
    expect(office?.received).toEqual([]);
  });
});
