import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
const admin = () => world.host.by(as.user('auth:users:admin', 'auth:users:read'));
const unlock = async (email: string) => {
  const user_id = await world.person(email);
  await admin().unlockUser({ params: { user_id } });
  return user_id;
};

describe('what this service recorded', () => {
  test('IDN-024 is answered as the registry answers, delivered to it or not', async () => {
    const userId = await unlock('first@example.org');
    const { items } = await admin().listOwnAudit({ query: { action: 'auth.user.unlocked' } });
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({
      service: 'auth',
      env_id: SYSTEM.envId,
      actor: { kind: 'user' },
      resource: { type: 'user', id: userId },
      outcome: 'success',
      correlation_id: expect.any(String),
    });
    expect((await admin().listOwnAudit({ query: { correlation_id: items[0]?.correlation_id as string } })).items).toEqual(items);
    expect((await admin().listOwnAudit({ query: { service: 'sys' } })).items).toEqual([]);
    await world.audited('auth.user.unlocked', userId);
    expect((await admin().listOwnAudit({ query: { action: 'auth.user.unlocked' } })).items).toEqual(items);
  });

  test('IDN-024 pages by the last time and id, and wants both', async () => {
    for (const email of ['a@example.org', 'b@example.org', 'c@example.org']) await unlock(email);
    const seen: string[] = [];
    let after: { after_ts: string; after_id: string } | null | undefined;
    do {
      const page = await admin().listOwnAudit({ query: { action: 'auth.user.unlocked', limit: 2, ...after } });
      seen.push(...page.items.map(({ audit_id }) => audit_id));
      after = page.next;
    } while (after);
    expect(seen).toHaveLength(4);
    expect([...seen].sort().reverse()).toEqual(seen);
    await expect(admin().listOwnAudit({ query: { after_ts: new Date(0).toISOString() } })).rejects.toMatchObject({
      status: 400,
      code: 'keyset_incomplete',
    });
    await expect(admin().listOwnAudit({ query: { after_ts: 'soon', after_id: seen[0] as string } })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_cursor',
    });
  });

  test('IDN-024 is of the own environment, whatever is asked for, but for the platform’s administrators', async () => {
    const envId = '018f0000-0000-7000-8000-00000000e00a';
    const tenant = world.host.by(as.userIn(envId, 'auth:users:read'));
    expect((await tenant.listOwnAudit({ query: { env_id: SYSTEM.envId } })).items).toEqual([]);
    const operator = world.host.by(as.user('auth:users:read', 'sys:sys:admin'));
    expect((await operator.listOwnAudit({ query: { env_id: SYSTEM.envId } })).items.length).toBeGreaterThan(0);
    expect((await operator.listOwnAudit({ query: { env_id: envId } })).items).toEqual([]);
    await expect(world.host.by(as.user('audit:read')).listOwnAudit({})).rejects.toMatchObject({ status: 403 });
  });

  test('is kept for 30 days', async () => {
    await unlock('old@example.org');
    await world.sql`update own_audit set ts = now() - interval '31 days'`;
    await world.host.clock.advance('5m');
    expect((await admin().listOwnAudit({ query: { action: 'auth.user.unlocked' } })).items).toEqual([]);
  });
});
