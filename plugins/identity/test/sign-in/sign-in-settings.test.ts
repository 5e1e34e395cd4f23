import { SYSTEM } from '@platform/sdk';
import { as, newId } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const FRESH = { verify_email: true, passkeys: false, wallet_sign_in: 'off', account_recovery: 'off', recovery_wait_hours: 72 } as const;
/** The realm of an environment, and its administrator. */
async function realm() {
  const host = `auth.settings-${(count += 1)}.localhost`;
  const envId = await world.environment(host);
  return { host, envId, admin: world.host.by(as.userIn(envId, 'auth:realms:admin', 'auth:users:read')) };
}
const page = async (host: string, at = world.host) => (await world.reach('/sign-in', { host, at })).text;

describe('the sign-in settings of an environment', () => {
  test('H-31 hold from the next request on, in the process that took them and in any other', async () => {
    const { host, admin } = await realm();
    await using other = await world.another();
    const offered = async () => [await page(host), await page(host, other)].map(text => text.includes('data-passkey'));
    expect([await admin.signInSettings(), await offered()]).toEqual([FRESH, [false, false]]);
    const wanted = { ...FRESH, passkeys: true, account_recovery: 'wait_and_approval', recovery_wait_hours: 48 } as const;
    expect(await admin.putSignInSettings({ body: wanted })).toEqual(wanted);
    expect([await admin.signInSettings(), await offered()]).toEqual([wanted, [true, true]]);
    await admin.putSignInSettings({ body: FRESH });
    expect(await offered()).toEqual([false, false]);
  });

  test('are known within half a minute where nobody was told of a change', async () => {
    const { host, envId } = await realm();
    expect(await page(host)).not.toContain('data-passkey');
    await world.sql`update realms set passkeys = true where env_id = ${envId}`;
    expect(await page(host)).not.toContain('data-passkey');
    await world.host.clock.advance('31s');
    expect(await page(host)).toContain('data-passkey');
  });

  test('are in the trail with what they were before, once for each change', async () => {
    const { envId, admin } = await realm();
    const wanted = { ...FRESH, verify_email: false };
    for (const body of [wanted, wanted, FRESH]) await admin.putSignInSettings({ body });
    await world.host.clock.advance('2s');
    const told = () =>
      world.host.audits
        .filter(entry => entry['action'] === 'auth.realm.updated' && (entry['resource'] as { id: string }).id === envId)
        .map(({ details }) => details);
    // An environment's events come in their order: when the last change is there, no second word of the first is on its way.
    await expect.poll(told, { timeout: 10_000 }).toContainEqual({ changes: { verify_email: { from: false, to: true } } });
    expect(told()).toEqual([
      { changes: { verify_email: { from: true, to: false } } },
      { changes: { verify_email: { from: false, to: true } } },
    ]);
  });

  test('are changed whole, within their bounds, by its own administrators', async () => {
    const { envId, admin } = await realm();
    const stranger = world.host.by(as.userIn('018f0000-0000-7000-8000-00000000e009', 'auth:realms:admin'));
    const reader = world.host.by(as.userIn(envId, 'auth:users:read'));
    await expect(stranger.putSignInSettings({ body: FRESH, targetEnvId: envId })).rejects.toMatchObject({ code: 'target_denied' });
    await expect(reader.putSignInSettings({ body: FRESH })).rejects.toMatchObject({ code: 'policy_denied' });
    for (const body of [
      { ...FRESH, recovery_wait_hours: 1 },
      { ...FRESH, account_recovery: 'never' },
      { passkeys: true },
      { ...FRESH, host: 'auth.mine.localhost' },
    ])
      await expect(admin.putSignInSettings({ body: body as typeof FRESH })).rejects.toMatchObject({ code: 'validation_failed' });
    expect(await reader.signInSettings()).toEqual(FRESH);
  });

  test("of the platform's own people are read, and say where they are set", async () => {
    const admin = world.host.by(as.userIn(SYSTEM.envId, 'auth:realms:admin'));
    expect(await admin.signInSettings()).toEqual(FRESH);
    await expect(admin.putSignInSettings({ body: FRESH })).rejects.toMatchObject({
      code: 'realm_configured',
      detail: expect.stringContaining('PLATFORM_AUTH_PASSKEYS'),
    });
  });
});

describe('sign-in hosts', () => {
  test("are each one environment's, and the platform's own is nobody else's", async () => {
    const host = `auth.${newId()}.localhost`;
    const first = await world.environment(host);
    await expect(world.environment(host)).rejects.toMatchObject({ code: 'host_taken', status: 409 });
    await expect(world.environment('auth.ops.sys.localhost')).rejects.toMatchObject({ code: 'host_taken' });
    await expect(world.environment('console.ops.sys.localhost')).rejects.toMatchObject({ code: 'host_taken' });
    await expect(
      world.registry.putRealm({ params: { env_id: SYSTEM.envId }, body: { host: 'evil.example', org_id: SYSTEM.orgId } }),
    ).rejects.toMatchObject({ code: 'host_taken' });
    expect(await world.registry.putRealm({ params: { env_id: first }, body: { host, org_id: world.org } })).toEqual({
      env_id: first,
      host,
      ...FRESH,
    });
  });
});
