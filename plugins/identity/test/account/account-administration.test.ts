import { PostOffice } from '../../../registry/test/fixtures/post-office.ts';
import { SYSTEM } from '@platform/sdk';
import { as, eventually } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { identity } from '../../contract/index.ts';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const admin = () => world.host.by(as.user('auth:users:admin', 'auth:users:read'));
const somebody = async () => {
  const email = `member-${(count += 1)}@example.org`;
  return { email, user_id: await world.person(email) };
};
const signIn = (email: string, password = CHOSEN) => world.browser().post('/v1/sign-in', { email, password, oauth: {} });
const statusOf = async (userId: string) => (await admin().getUser({ params: { user_id: userId } })).status;

describe('an administrator', () => {
  test('closes an account: its sessions end at once, nobody signs in, and it can be opened again', async () => {
    const { email, user_id } = await somebody();
    const tokens = await world.tokens(world.browser(), email);
    const params = { user_id };
    expect((await admin().disableUser({ params })).status).toBe('disabled');
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    const { payload } = (await world.host.events('platform:auth:session:revoked')).find(event => event.payload['user_id'] === user_id) ?? {
      payload: {},
    };
    expect(payload).toMatchObject({ reason: 'admin' });
    expect((await signIn(email)).json['code']).toBe('invalid_credentials');
    await world.audited('auth.user.disabled', user_id);
    await admin().disableUser({ params });
    expect(world.host.audits.filter(entry => entry['action'] === 'auth.user.disabled')).toHaveLength(1);
    expect((await admin().enableUser({ params })).status).toBe('active');
    await world.audited('auth.user.enabled', user_id);
    expect((await signIn(email)).status).toBe(200);
  });

  test('a link of a mail is worth nothing in a closed account', async () => {
    const { email, user_id } = await somebody();
    await world.browser().post('/v1/password/reset-request', { email });
    const token = await world.token(email);
    await admin().disableUser({ params: { user_id } });
    await admin().enableUser({ params: { user_id } });
    expect((await world.browser().post('/v1/password/reset', { token, password: 'one more good sentence' })).status).toBe(410);
  });

  test('does not close the own account', async () => {
    const { user_id } = await somebody();
    const self = world.host.by({ ...as.user('auth:users:admin'), id: user_id });
    await expect(self.disableUser({ params: { user_id } })).rejects.toMatchObject({ code: 'own_account' });
  });

  test('does not take the own second factor away: the page of the own account asks for the password', async () => {
    const { email, user_id } = await somebody();
    const browser = world.browser();
    await world.tokens(browser, email);
    await AuthenticatorApp.enrol(world, browser, CHOSEN);
    const self = world.host.by({ ...as.user('auth:users:admin'), id: user_id });
    await expect(self.resetUserMfa({ params: { user_id } })).rejects.toMatchObject({ code: 'own_account', status: 409 });
    expect((await signIn(email)).json['status']).toBe('mfa_required');
  });

  test('sees that failed attempts locked an account, in the list too, and unlocks it; the lock is in the trail once', async () => {
    const { email, user_id } = await somebody();
    for (let run = 0; run < 10; run++) await signIn(email, 'a wrong password');
    await world.kv('DEL', ...((await world.kv('KEYS', 'auth:rate:sign-in:*')) as string[]));
    expect((await signIn(email)).json['code']).toBe('account_locked');
    expect(await statusOf(user_id)).toBe('locked');
    const { items } = await admin().listUsers({ query: { limit: 200 } });
    expect(items.filter(({ status }) => status === 'locked').map(row => row.user_id)).toEqual([user_id]);
    expect(await world.audited('auth.sign_in.locked', user_id)).toMatchObject({ outcome: 'denied', details: { failures: 10 } });
    expect((await admin().unlockUser({ params: { user_id } })).status).toBe('active');
    await world.audited('auth.user.unlocked', user_id);
    expect((await signIn(email)).status).toBe(200);
    expect(world.host.audits.filter(entry => entry['action'] === 'auth.sign_in.locked')).toHaveLength(1);
  });

  test('takes a lost second factor away: sessions end, the owner is told', async () => {
    const { email, user_id } = await somebody();
    const browser = world.browser();
    const tokens = await world.tokens(browser, email);
    await expect(admin().resetUserMfa({ params: { user_id } })).rejects.toMatchObject({ code: 'mfa_not_enrolled' });
    await AuthenticatorApp.enrol(world, browser, CHOSEN);
    expect((await signIn(email)).json['status']).toBe('mfa_required');
    const before = (await admin().listUsers({ query: { limit: 200 } })).items.find(row => row.user_id === user_id);
    expect(before?.mfa_enrolled).toBe(true);
    expect((await admin().resetUserMfa({ params: { user_id } })).mfa_enrolled).toBe(false);
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await signIn(email)).json['status']).toBe('ok');
    await world.audited('auth.mfa.reset', user_id);
    expect((await world.mails(email)).map(({ subject }) => subject)).toContain('The authenticator app was removed');
  });

  test('of another environment reaches nobody here', async () => {
    const { user_id } = await somebody();
    const elsewhere = world.host.by(as.userIn('018f0000-0000-7000-8000-00000000e009', 'auth:users:admin'));
    for (const verb of ['disableUser', 'enableUser', 'unlockUser', 'resetUserMfa'] as const)
      await expect(elsewhere[verb]({ params: { user_id } })).rejects.toMatchObject({ code: 'user_not_found' });
    for (const verb of ['disableUser', 'unlockUser'] as const)
      await expect(admin()[verb]({ params: { user_id: 'no-id' } })).rejects.toMatchObject({ code: 'validation_failed' });
  });
});

describe('mail of accounts', () => {
  const waiting = async () => [
    ...(await world.sql<{ state: string; attempts: number }[]>`select state, attempts from work_tasks where name = 'mail'`),
  ];

  test('NTF-056 waits while the notification service is away, reaches it from the workload auth-post as a template that stays confidential, and is erased', async () => {
    const { email, user_id } = await somebody();
    await world.sql`delete from work_tasks where name = 'mail'`;
    await world.browser().post('/v1/password/reset-request', { email });
    const token = await world.token(email);
    await eventually(waiting).toEqual([{ state: 'waiting', attempts: 1 }]);
    await using office = await PostOffice.open(world.stores, identity);
    await world.host.clock.advance('10s');
    await eventually(() => office.received.length).toBe(1);
    const [mail] = office.received;
    expect(mail?.caller).toMatchObject({ kind: 'machine', subject: 'auth-post', bound: true });
    const link = `${world.issuer}/password-reset/confirm#token=${token}`;
    expect(mail?.body).toMatchObject({
      env_id: SYSTEM.envId,
      category: 'security',
      recipient: { user_id, email },
      subject: 'Reset your password',
      channels: ['email'],
      confidential: true,
      template: { key: 'auth.reset_password', locale: 'en', vars: { link } },
    });
    expect(mail?.body.body).toContain(`\n${link}\n`);
    await eventually(waiting).toEqual([]);
  });

  test('a link that expired while it waited is not sent any more', async () => {
    const { email } = await somebody();
    await world.sql`delete from work_tasks where name = 'mail'`;
    await world.browser().post('/v1/password/reset-request', { email });
    await world.token(email);
    await eventually(waiting).toEqual([{ state: 'waiting', attempts: 1 }]);
    await world.sql`update work_tasks set due_at = ${new Date(world.host.clock.now().getTime() + 31 * 60_000).toISOString()}
      where name = 'mail'`;
    await using office = await PostOffice.open(world.stores, identity);
    await world.host.clock.advance('31m');
    await eventually(waiting).toEqual([]);
    expect(office.received.filter(({ body }) => body.recipient.email === email)).toEqual([]);
  });
});
