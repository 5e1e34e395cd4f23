import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newEnv, RunningBus, workload } from '../fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const sys = workload('sys');
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores);
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const change = (env: string, status: string, key: string) =>
  bus.produce(sys, env, 0, {
    event_type: 'platform:sys:env:updated',
    stream_family: 'sys',
    payload: { env_id: env, status },
    idempotency_key: key,
  });
const effect = async (env: string) => (await bus.pool.raw`select 1 from suspended_environments where env_id = ${env}`).length;
const marks = async (key: string) =>
  (await bus.pool.raw`select 1 from inbox where consumer = 'environmentChanged' and idempotency_key = ${key}`).length;
const pending = async (env: string) => Number((await bus.store.client.xpending(`bus:{${env}}:sys`, 'bus.environmentChanged'))[0]);

test('BUS-021 the effect of a handler and the mark that it was handled commit together: both, or neither and then again', async () => {
  const env = newEnv();
  await bus.pool.raw.unsafe(`alter table suspended_environments add constraint not_yet check (env_id <> '${env}')`);
  try {
    await change(env, 'suspended', 'both');
    await eventually(async () => Number(await bus.store.client.zcard(`busq:{${env}}:retry`))).toBe(1);
    expect([await effect(env), await marks('both')]).toEqual([0, 0]);
  } finally {
    await bus.pool.raw`alter table suspended_environments drop constraint not_yet`;
  }
  await bus.clock.advance('10s');
  await eventually(() => effect(env)).toBe(1);
  expect(await marks('both')).toBe(1);
});

test('BUS-014 BUS-021 the second copy of an event under its key is acknowledged and has no effect', async () => {
  const env = newEnv();
  await change(env, 'suspended', 'twice');
  await eventually(() => effect(env)).toBe(1);
  const [[, fields]] = (await bus.store.client.xrange(`bus:{${env}}:sys`, '-', '+')) as [[string, string[]]];
  const copy = fields.map(value => (value.startsWith('{') ? JSON.stringify({ env_id: env, status: 'active' }) : value));
  await bus.store.client.xadd(`bus:{${env}}:sys`, '*', ...copy);
  // A later event of the same stream is handled after the copy.
  await change(env, 'suspended', 'after');
  await eventually(() => marks('after')).toBe(1);
  await eventually(() => pending(env)).toBe(0);
  expect(await effect(env)).toBe(1);
});
