import { connectKeyValue, eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keyValuePort, directoryStore } from '@platform/kernel/host/service/key-value-port';
import { Directory } from '@platform/kernel/routing/directory';
import { CuttingProxy } from '../../../sdk/testing/servers/cutting-proxy.ts';
import type { UpgradeProgress } from '../contract/schema/instance.ts';
import { type BoxedProcess, service } from './fixtures/machine-box.ts';
import { refusal, World } from './fixtures/world.ts';

const SERVICES = [service('auth', 10), service('web', 50)];
/** One in the fleet, and not before it is asked for. */
const ONE = service('one', 60, { singleton: true, wanted: false });
/** A kit on each of them: whoever comes first leads. */
const environment = { PLATFORM_CAPTAIN_MACHINE_KIT: 'local' };
const LEAD = 'captain:lock:machines';

let stores: TestStores;
let links: readonly CuttingProxy[];
let router: () => Directory;
let [whole, killed, parted] = [] as unknown as [World, World, World];
let close: () => Promise<void>;

beforeAll(async () => {
  stores = await openTestStores();
  const { keyValueUrl, database } = stores.stores;
  const url = new URL(keyValueUrl);
  const [keyValue, postgres] = await Promise.all([Number(url.port), database.port].map(port => CuttingProxy.start(() => port)));
  links = [keyValue as CuttingProxy, postgres as CuttingProxy];
  url.port = String(keyValue?.port);
  const through = { keyValueUrl: url.href, database: { ...database, port: (postgres as CuttingProxy).port } };
  whole = await World.open(stores, [...SERVICES, ONE], { ip: '127.0.0.1', environment });
  killed = await World.open(stores, [...SERVICES, ONE], { ip: '127.0.0.2', environment, joins: true });
  parted = await World.open(stores, [...SERVICES, ONE], { ip: '127.0.0.3', environment, joins: true, through });
  const store = await connectKeyValue(keyValueUrl);
  const kv = await keyValuePort(store);
  // A new one for each look: what it remembers for two seconds, it would remember for ever where time stands still.
  router = () => new Directory(directoryStore(kv), { debug: () => undefined } as never, () => whole.host.clock.now().getTime());
  close = async () => {
    await kv[Symbol.asyncDispose]();
    await store.close();
  };
});
afterAll(async () => {
  for (const link of links ?? []) link.part(false);
  await close?.();
  for (const world of [parted, killed, whole]) await world?.[Symbol.asyncDispose]();
  for (const link of links ?? []) await link[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

/** Time goes on for those that live. */
async function pass(seconds: number, worlds: readonly World[] = [whole, parted]): Promise<void> {
  for (const world of worlds) await world.pass(`${seconds}s`);
}
const routed = async (name: string) => (await router().instances(name)).map(({ ip }) => ip).sort();
const listed = async (name: string) =>
  Object.fromEntries(
    (await whole.by.services({ query: { service_type: name } })).items.map(({ instance_key, status }) => [instance_key, status]),
  );
const leader = () => whole.kv.get(LEAD);
const upgrade = async (world: World, instance_key: string): Promise<UpgradeProgress | undefined> =>
  (await world.by.upgradeStatus({ query: { instance_key } })).items[0];

describe('three machines, of which one dies and one is cut off from the stores', () => {
  let kept: BoxedProcess;
  let next: BoxedProcess;
  let key: string;

  test('all of them are in turn, and the first one that came leads', async () => {
    for (const world of [parted, whole, killed]) {
      await world.box.boot();
      await world.pass('3s');
    }
    await pass(3, [parted, whole, killed]);
    for (const { service_type } of SERVICES) await eventually(() => routed(service_type)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    expect(await leader()).toBe('127.0.0.3');
    await killed.by.startServices({ body: { service_types: ['one'] } });
    await eventually(() => routed('one')).toEqual(['127.0.0.2']);
    [kept] = parted.box.of('web') as [BoxedProcess];
    key = `127.0.0.3:${kept.port}`;
    await parted.by.upgrade({ params: { instance_key: key }, body: {} });
    await eventually(() => parted.box.of('web').length).toBe(2);
    next = parted.box.of('web')[1] as BoxedProcess;
    await eventually(async () => (await upgrade(whole, key))?.phase).toBe('active');
    await eventually(() => listed('web')).toMatchObject({ [`127.0.0.3:${next.port}`]: 'Active' });
  });

  test('after its lifetime nothing is sent to either, and neither is said to be in turn', async () => {
    for (const link of links) link.part(true);
    parted.box.away = true;
    await pass(33);
    for (const { service_type } of SERVICES) expect(await routed(service_type)).toEqual(['127.0.0.1']);
    const { [`127.0.0.1:${whole.box.of('web')[0]?.port}`]: here, ...others } = await listed('web');
    expect([here, new Set(Object.values(others))]).toEqual(['Active', new Set(['Inactive'])]);
    // It may be alive yet: what is one in the fleet stays one.
    expect(await refusal(whole.by.startServices({ body: { service_types: ['one'] } }))).toMatchObject({
      status: 409,
      extra: { reason: 'singleton_violation' },
    });
  });

  test('what is cut off ends nothing for it: its processes serve on, an upgrade that nobody can hear of is taken back, what dies waits', async () => {
    await pass(63, [parted]);
    await pass(63, [parted]);
    const [auth] = parted.box.of('auth') as [BoxedProcess];
    parted.box.kill(auth);
    await pass(6, [parted]);
    expect([kept.alive, kept.signals, next.alive, parted.box.of('auth')]).toEqual([true, [], false, []]);
    expect(parted.box.processes.filter(({ service: name }) => name === 'web')).toEqual([kept, next]);
  });

  test('SUP-049 the lead passes on once its thirty seconds are over, and stays when the machine is back', async () => {
    // What the store does by itself when they are over.
    await whole.kv.del(LEAD);
    await pass(6);
    expect(await leader()).toBe('127.0.0.1');
    for (const link of links) link.part(false);
    parted.box.away = false;
    await eventually(async () => {
      await pass(3);
      return routed('web');
    }).toEqual(['127.0.0.1', '127.0.0.3']);
    await pass(12);
    expect(await leader()).toBe('127.0.0.1');
  });

  test('once it is back everything of it is in turn again, by the processes that it had; only what had died is new', async () => {
    await eventually(async () => {
      await pass(3);
      return routed('auth');
    }).toEqual(['127.0.0.1', '127.0.0.3']);
    expect([parted.box.of('web'), kept.signals, parted.box.of('auth').length]).toEqual([[kept], [], 1]);
    expect((await listed('web'))[key]).toBe('Active');
    // The next instance is gone, and its row with it, though nobody could be told when it went.
    await eventually(() => listed('web')).not.toHaveProperty(`127.0.0.3:${next.port}`);
    expect((await whole.by.alerts()).items).toEqual([]);
    await pass(120);
    // Nobody has heard of the dead machine for two minutes: what was one there may be somewhere else.
    await whole.by.startServices({ body: { service_types: ['one'] } });
    await eventually(() => routed('one')).toEqual(['127.0.0.1']);
    await parted.by.upgrade({ params: { instance_key: key }, body: {} });
    await eventually(() => parted.box.of('web').length).toBe(2);
  });
});
