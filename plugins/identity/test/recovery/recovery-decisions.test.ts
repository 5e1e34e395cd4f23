import { as, newId } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NEXT, Recoverer } from '../fixtures/recoverer.ts';
import { World } from '../fixtures/world.ts';

let world: World;
let envId: string;
let both: string;
const HOST = 'auth.prod.judged.localhost';
const BOTH = 'auth.prod.slow.localhost';
beforeAll(async () => {
  world = await World.start();
  const realm = async (host: string, account_recovery: 'approval' | 'wait_and_approval') => {
    const id = await world.environment(host);
    await world.registry.putRealm({ params: { env_id: id }, body: { host, org_id: world.org, account_recovery } });
    return id;
  };
  envId = await realm(HOST, 'approval');
  both = await realm(BOTH, 'wait_and_approval');
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const admin = (env = envId) => world.host.by(as.userIn(env, 'auth:recoveries:admin', 'auth:users:read'));
const body = { reason: 'She called, and her manager knows her voice.' };
const begun = async () => {
  const person = await Recoverer.open(world, { host: HOST, envId });
  const confirmed = await person.begin();
  const { recovery_id } = await person.row();
  return Object.assign(person, { params: { recovery_id }, confirmed });
};

describe('an administrator decides on a recovery', () => {
  test('sees what was confirmed, with what there is to know, page by page; approves with a reason, and the person goes on', async () => {
    const asked = await Recoverer.open(world, { host: HOST, envId });
    await asked.ask();
    await asked.token('confirm');
    const people = [await begun(), await begun(), await begun()];
    const [person] = people as [Awaited<ReturnType<typeof begun>>];
    expect(person.confirmed.json['needs_approval']).toBe(true);
    await person.waited();
    expect([await person.token('finish'), (await person.subjects()).at(-1)]).toEqual([undefined, 'Your account is being recovered']);
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await admin().listRecoveries({ query: { limit: 2, ...(cursor ? { cursor } : {}) } });
      seen.push(...page.items.map(({ email }) => email));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(people.map(({ email }) => email).reverse());
    const approved = await admin().approveRecovery({ params: person.params, body });
    expect(approved).toMatchObject({
      ...person.params,
      email: person.email,
      status: 'offered',
      decision_reason: body.reason,
      can_approve: false,
      can_refuse: true,
    });
    const audited = await world.audited('auth.recovery.approved', person.userId);
    expect(audited['details']).toMatchObject({ recovery_id: person.params.recovery_id, reason: body.reason });
    expect(await world.audited('auth.recovery.offered', person.userId)).toBeDefined();
    const token = (await person.token('finish')) as string;
    // What the administrator wrote is not for the person.
    expect(JSON.stringify(await world.mails(person.email))).not.toContain('manager');
    expect((await person.finish(token)).status).toBe(200);
    expect((await person.signIn(NEXT)).json['status']).toBe('ok');
    const [row] = (await admin().listRecoveries({})).items.filter(({ recovery_id }) => recovery_id === person.params.recovery_id);
    expect(row).toMatchObject({ status: 'completed', can_approve: false, can_refuse: false });
  });

  test('nobody approves the recovery of the own account, nor of the same address elsewhere', async () => {
    const person = await begun();
    const self = { ...as.userIn(envId, 'auth:recoveries:admin', 'auth:users:read'), id: person.userId };
    await expect(world.host.by(self).approveRecovery({ params: person.params, body })).rejects.toMatchObject({
      code: 'own_account',
      status: 409,
    });
    const twin = { ...as.userIn(envId, 'auth:recoveries:admin', 'auth:users:read'), email: person.email.toUpperCase() };
    await expect(world.host.by(twin).approveRecovery({ params: person.params, body })).rejects.toMatchObject({ code: 'own_account' });
    const rowOf = async (persona: typeof self) =>
      (await world.host.by(persona).listRecoveries({})).items.find(({ recovery_id }) => recovery_id === person.params.recovery_id);
    expect([
      (await rowOf(self))?.can_approve,
      (await rowOf(twin))?.can_approve,
      (await admin().listRecoveries({})).items[0]?.can_approve,
    ]).toEqual([false, false, true]);
    expect((await person.row()).status).toBe('waiting');
  });

  test('only people decide, those who may, where they may', async () => {
    const person = await begun();
    const call = (persona: ReturnType<typeof as.user>) =>
      world.host.fetch(`/v1/recoveries/${person.params.recovery_id}/approve?target_env_id=${envId}`, {
        method: 'POST',
        persona,
        body: JSON.stringify(body),
      });
    expect((await call(as.machine('sys', 'auth:recoveries:admin'))).status).toBe(403);
    expect((await call(as.userIn(envId, 'auth:users:read'))).status).toBe(403);
    await expect(admin(both).approveRecovery({ params: person.params, body })).rejects.toMatchObject({
      code: 'recovery_not_found',
      status: 404,
    });
    await expect(admin().approveRecovery({ params: { recovery_id: newId() }, body })).rejects.toMatchObject({ code: 'recovery_not_found' });
    await expect(admin().approveRecovery({ params: { recovery_id: 'x' }, body })).rejects.toMatchObject({ status: 400 });
    await expect(admin().refuseRecovery({ params: person.params, body: { reason: '  ' } })).rejects.toMatchObject({ status: 400 });
    expect((await person.row()).status).toBe('waiting');
  });

  test('[H-13] of twelve that decide at once, one does', async () => {
    const person = await begun();
    const decisions = Array.from({ length: 12 }, (_, index) =>
      index % 2 ? admin().approveRecovery({ params: person.params, body }) : admin().refuseRecovery({ params: person.params, body }),
    );
    const settled = await Promise.allSettled(decisions);
    const refused = settled.filter(({ status }, index) => index % 2 === 0 && status === 'fulfilled').length;
    const approved = settled.filter(({ status }, index) => index % 2 === 1 && status === 'fulfilled').length;
    // An approval that nobody used may still be taken back: a refusal has the last word.
    expect([refused, approved <= 1]).toEqual([1, true]);
    expect((await person.row()).status).toBe('refused');
    for (const outcome of settled)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'recovery_decided', status: 409 });
  });

  test('refuses: the person is told, no link is good any more, and asking again begins anew', async () => {
    const person = await begun();
    const refused = await admin().refuseRecovery({ params: person.params, body: { reason: 'Nobody knows who called.' } });
    expect(refused).toMatchObject({ status: 'refused', can_refuse: false, decision_reason: 'Nobody knows who called.' });
    expect((await person.subjects()).at(-1)).toBe('The recovery of your account was refused');
    expect((await person.cancel((await person.token('cancel')) as string)).status).toBe(410);
    await expect(admin().approveRecovery({ params: person.params, body })).rejects.toMatchObject({ code: 'recovery_decided' });
    await world.audited('auth.recovery.refused', person.userId);
    await world.forgetTries();
    expect((await person.begin()).status).toBe(200);
    expect((await person.row()).recovery_id).not.toBe(person.params.recovery_id);
  });

  test('where time and a decision are asked for, neither alone is enough', async () => {
    const early = await Recoverer.open(world, { host: BOTH, envId: both });
    await early.begin();
    const params = { recovery_id: (await early.row()).recovery_id };
    expect(await admin(both).approveRecovery({ params, body })).toMatchObject({ status: 'approved' });
    await world.host.clock.advance('1m');
    expect([await early.token('finish'), (await early.subjects()).at(-1)]).toEqual([
      undefined,
      'The recovery of your account was approved',
    ]);
    await early.waited();
    expect((await early.finish((await early.token('finish')) as string)).status).toBe(200);
    const late = await Recoverer.open(world, { host: BOTH, envId: both });
    await late.begin();
    await late.waited();
    expect(await late.token('finish')).toBeUndefined();
  });

  test('nobody decides in two weeks: it ends, and the person is told', async () => {
    const person = await begun();
    const [row] = await world.sql<
      { days: number }[]
    >`select extract(epoch from expires_at - now())::float / 86400 as days from account_recoveries
      where recovery_id = ${person.params.recovery_id}`;
    expect(Math.round(row?.days ?? 0)).toBe(14);
    await world.sql`update account_recoveries set expires_at = now() where recovery_id = ${person.params.recovery_id}`;
    await expect(admin().approveRecovery({ params: person.params, body })).rejects.toMatchObject({ code: 'recovery_decided' });
    await world.host.clock.advance('1m');
    expect([(await person.row()).status, (await person.subjects()).at(-1)]).toEqual([
      'expired',
      'The recovery of your account has expired',
    ]);
  });

  test('where recovery was turned off meanwhile nobody approves one, and anybody may refuse it', async () => {
    const host = 'auth.prod.stopped.localhost';
    const env = await world.environment(host);
    const rule = (account_recovery: 'approval' | 'off') =>
      world.registry.putRealm({ params: { env_id: env }, body: { host, org_id: world.org, account_recovery } });
    await rule('approval');
    const person = await Recoverer.open(world, { host, envId: env });
    await person.begin();
    const params = { recovery_id: (await person.row()).recovery_id };
    await rule('off');
    await expect(admin(env).approveRecovery({ params, body })).rejects.toMatchObject({ code: 'recovery_off' });
    expect(await admin(env).refuseRecovery({ params, body })).toMatchObject({ status: 'refused' });
  });

  test('an account that is closed meanwhile is not recovered', async () => {
    const person = await begun();
    await world.host.by(as.userIn(envId, 'auth:users:admin')).disableUser({ params: { user_id: person.userId } });
    expect((await world.audited('auth.recovery.cancelled', person.userId))['details']).toMatchObject({ cause: 'account_closed' });
    await expect(admin().approveRecovery({ params: person.params, body })).rejects.toMatchObject({ code: 'recovery_decided' });
  });
});
