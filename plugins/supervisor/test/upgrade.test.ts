import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { UpgradeProgress } from '../contract/schema/instance.ts';
import { type BoxedProcess, HEALTHY, service } from './fixtures/machine-box.ts';
import { refusal, World } from './fixtures/world.ts';

let stores: TestStores;
let world: World;
beforeAll(async () => {
  stores = await openTestStores();
});
afterEach(() => world?.[Symbol.asyncDispose]());
afterAll(() => stores?.[Symbol.asyncDispose]());

const statuses = async (name: string) => Object.fromEntries((await world.rows(name)).map(({ port, status }) => [String(port), status]));
const progress = async (instance_key: string): Promise<UpgradeProgress | undefined> =>
  (await world.by.upgradeStatus({ query: { instance_key } })).items[0];

/** A world whose service is being upgraded, up to its next instance. */
async function begun(version?: string): Promise<{ old: BoxedProcess; next: BoxedProcess; oldKey: string; newKey: string }> {
  world = await World.open(stores, [service('auth', 10)]);
  await world.box.boot();
  const [old] = world.box.of('auth') as [BoxedProcess];
  const oldKey = `127.0.0.1:${old.port}`;
  await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Active' });
  await world.by.upgrade({ params: { instance_key: oldKey }, body: version === undefined ? {} : { version } });
  await eventually(() => world.box.of('auth').length).toBe(2);
  const next = world.box.of('auth')[1] as BoxedProcess;
  await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Active', [next.port]: 'Active' });
  return { old, next, oldKey, newKey: `127.0.0.1:${next.port}` };
}

describe('a rolling upgrade', () => {
  test('SUP-005 SUP-038 SUP-041 SUP-045 SUP-079 SUP-088 ends the old instance when nothing is under way on it, and is told under both keys for ten minutes', async () => {
    const { old, next, oldKey, newKey } = await begun('r1');
    expect(next.release).toBe('r1');
    const reserved = await world.kv.ttl(`captain:port:127.0.0.1:${next.port}`);
    expect([reserved > 50, reserved <= 60]).toEqual([true, true]);
    expect(await progress(oldKey)).toMatchObject({ phase: 'active', service_type: 'auth', old_key: oldKey, new_key: newKey, percent: 25 });
    const lives = await world.kv.ttl(`captain:upgrade:${newKey}`);
    expect([lives > 590, lives <= 600]).toEqual([true, true]);
    expect(await world.kv.get(`captain:upgrade:${newKey}`)).toBe(await world.kv.get(`captain:upgrade:${oldKey}`));
    expect(await refusal(world.by.upgrade({ params: { instance_key: oldKey }, body: {} }))).toMatchObject({
      status: 409,
      code: 'upgrade_in_progress',
    });
    old.health = { ...HEALTHY, active_connections: 2 };
    await world.pass('60s');
    await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Inactive', [next.port]: 'Active' });
    await world.pass('6s');
    expect([old.alive, (await progress(newKey))?.phase]).toEqual([true, 'draining']);
    old.health = HEALTHY;
    await world.pass('6s');
    await eventually(() => old.signals).toEqual(['SIGTERM']);
    await eventually(() => statuses('auth')).toEqual({ [next.port]: 'Active' });
    await world.pass('61s');
    await eventually(async () => (await progress(newKey))?.phase).toBe('complete');
  });

  test('SUP-041 waits thirty seconds at most for what is under way', async () => {
    const { old } = await begun();
    old.health = { ...HEALTHY, active_connections: 1 };
    await world.pass('63s');
    await world.pass('29s');
    expect(old.signals).toEqual([]);
    await world.pass('2s');
    await eventually(() => old.signals).toEqual(['SIGTERM']);
  });

  test('SUP-043 SUP-046 an abort takes the next instance and its row away, and the old one serves on, and is healed again', async () => {
    const { old, next, oldKey, newKey } = await begun();
    await world.by.abortUpgrade({ params: { instance_key: newKey } });
    await eventually(() => next.alive).toBe(false);
    await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Active' });
    expect(await progress(oldKey)).toMatchObject({ phase: 'aborted', reason: 'an operator aborted it' });
    expect(await refusal(world.by.abortUpgrade({ params: { instance_key: oldKey } }))).toMatchObject({ status: 409, code: 'no_upgrade' });
    world.box.kill(old);
    await world.pass('2s');
    await eventually(() => world.box.of('auth').length).toBe(1);
  });

  test('SUP-044 a rollback while the old one is drained marks it Active again', async () => {
    const { old, next, oldKey } = await begun();
    old.health = { ...HEALTHY, active_connections: 1 };
    await world.pass('61s');
    await eventually(() => statuses('auth')).toMatchObject({ [old.port]: 'Inactive' });
    await world.by.rollback({ params: { instance_key: oldKey } });
    await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Active' });
    expect([next.alive, (await progress(oldKey))?.phase]).toEqual([false, 'rolled_back']);
  });

  test('G-CAP-10 a next instance that answers too much with errors is taken back', async () => {
    const { old, next, oldKey } = await begun();
    next.health = { ...HEALTHY, api_calls: 200, errors: 9 };
    await world.pass('6s');
    expect((await progress(oldKey))?.phase).toBe('active');
    next.health = { ...HEALTHY, api_calls: 200, errors: 11 };
    await world.pass('6s');
    await eventually(async () => (await progress(oldKey))?.phase).toBe('aborted');
    await eventually(() => statuses('auth')).toEqual({ [old.port]: 'Active' });
  });

  test('H-30 the port of the next instance is held as long as the upgrade lasts', async () => {
    const { old, next } = await begun();
    old.health = { ...HEALTHY, active_connections: 1 };
    await world.kv.expire(`captain:port:127.0.0.1:${next.port}`, 5);
    await world.pass('61s');
    await eventually(() => world.kv.ttl(`captain:port:127.0.0.1:${next.port}`)).toBeGreaterThan(50);
  });

  test('an unknown release is refused, and the one before comes back when it is asked for', async () => {
    const { oldKey } = await begun('r2');
    expect(await refusal(world.by.upgrade({ params: { instance_key: oldKey }, body: { version: 'r9' } }))).toMatchObject({ status: 409 });
    await world.pass('130s');
    await world.pass('6s');
    const [only] = world.box.of('auth') as [BoxedProcess];
    const instance_key = `127.0.0.1:${only.port}`;
    expect(await refusal(world.by.upgrade({ params: { instance_key }, body: { version: 'r9' } }))).toMatchObject({
      status: 400,
      code: 'unknown_release',
    });
    await eventually(async () => (await progress(instance_key))?.phase).toBe('complete');
    await world.by.rollback({ params: { instance_key } });
    await eventually(() => world.box.of('auth').map(({ release }) => release)).toEqual(['r2', '']);
  });
});
