import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { EventSource } from './fixtures/event-source.ts';
import { clusterMissing, RedisCluster } from './fixtures/redis-cluster.ts';
import { newEnv, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });

const missing = clusterMissing();
if (missing) process.stdout.write(`the bus on a cluster is not tested here: ${missing}\n`);
const shop = workload('shop');
const mail = workload('mail');
const acme = workload('m2m-acme', 'acme');

describe.skipIf(missing !== undefined)('on three servers that share the slots', () => {
  let stores: TestStores;
  let cluster: RedisCluster;
  let bus: RunningBus;
  let other: RunningBus;
  const envs = Array.from({ length: 30 }, newEnv);
  beforeAll(async () => {
    [stores, cluster] = await Promise.all([openTestStores(), RedisCluster.start()]);
    bus = await RunningBus.start(stores, { keyValueUrl: cluster.url, streamEntries: 1_000 });
    other = await RunningBus.start(stores, { keyValueUrl: cluster.url });
  });
  afterAll(async () => {
    await other?.[Symbol.asyncDispose]();
    await bus?.[Symbol.asyncDispose]();
    const logged = bus?.host.logged ?? [];
    await cluster?.[Symbol.asyncDispose]();
    await stores?.[Symbol.asyncDispose]();
    // Nothing the bus asked of the store crossed slots; a server that was killed is asked for until the client gives up.
    const messages = logged.map(line => JSON.stringify(line, (name, value) => (name === 'stack' ? undefined : value)));
    expect(
      messages.filter(message => /CROSSSLOT|MOVED|same slot/i.test(message) && !message.includes('Too many Cluster redirections')),
    ).toEqual([]);
  });

  test('events of many environments are published in one batch, lie on all servers, and are read by one group of all environments', async () => {
    const events = envs.flatMap(env =>
      [1, 2].map(n => ({ event_type: 'platform:shop:order:created', env_id: env, stream_family: 'app', payload: { n } })),
    );
    const { value } = await bus.call('produceBatch', shop, { body: { events } });
    expect((value as { results: object[] }).results.filter(result => 'message_id' in result)).toHaveLength(60);
    for (const size of await cluster.sizes()) expect(size).toBeGreaterThan(5);
    const entries = await other.drain(mail, { env_id: '*' });
    for (const env of envs) expect(entries.filter(({ env_id }) => env_id === env).map(({ payload }) => payload.n)).toEqual([1, 2]);
  });

  test('a waiting consumer of the other process is woken, and an event stream delivers', async () => {
    const waiting = other.consume(mail, { env_id: '*', block_ms: 10_000 });
    await bus.produce(shop, envs[3] as string, 9);
    expect((await waiting).map(({ payload }) => payload.n)).toEqual([9]);
    const env = newEnv();
    using source = await EventSource.open(other.host, `/v1/consume/sse?env_id=${env}&stream_family=app&consumer_group=tab`, {
      persona: mail,
    });
    await eventually(async () => ((await bus.store.client.xinfo('GROUPS', `bus:{${env}}:app`).catch(() => [])) as unknown[]).length).toBe(
      1,
    );
    await bus.produce(shop, env, 5);
    expect((await source.next()).data).toMatchObject({ payload: { n: 5 } });
  });

  test('refusals, dead letters, replays, delayed events, leases, rates and pages work in every slot', async () => {
    for (const env of envs.slice(0, 10)) {
      const at = { env_id: env, stream_family: 'app', consumer_group: 'g' };
      await bus.produce(acme, env, 1);
      const [entry] = await bus.consume(mail, at);
      expect((await bus.call('extend', mail, { body: { ...at, message_id: entry?.message_id } })).value).toMatchObject({ extended: 1 });
      expect((await bus.call('nack', mail, { body: { ...at, message_id: entry?.message_id, retry_after_secs: 0 } })).value).toMatchObject({
        queued: 1,
      });
      await bus.call('schedule', shop, {
        body: {
          event_type: 'platform:shop:order:created',
          env_id: env,
          stream_family: 'app',
          payload: { n: 2 },
          deliver_at: new Date(bus.clock.now().getTime()).toISOString(),
        },
      });
      await bus.clock.advance('10s');
      const again = await bus.consume(mail, at);
      expect(again.map(({ payload }) => payload.n).sort()).toEqual([1, 2]);
      await bus.call('nack', mail, { body: { ...at, message_ids: again.map(({ message_id }) => message_id), dead_letter: true } });
      expect((await bus.call('replayDeadLetters', shop, { body: { env_id: env, filter: {} } })).value).toMatchObject({ replayed: 2 });
      expect(await bus.drain(mail, at)).toHaveLength(2);
      expect((await bus.call('listStreams', shop, { query: { env_id: env } })).value).toMatchObject({
        items: expect.arrayContaining([expect.objectContaining({ stream_family: 'app' })]),
      });
      expect((await bus.call('listGroups', shop, { query: { env_id: env } })).value).toMatchObject({
        items: expect.arrayContaining([expect.objectContaining({ group: 'mail.g' })]),
      });
    }
    expect((await bus.call('metrics', shop)).value).toMatchObject({ retry_depth: 0, delayed_depth: 0 });
  });

  test('streams are cut in every slot, and groups close in all of them', async () => {
    const long = envs.slice(0, 6);
    for (const env of long)
      await Promise.all(Array.from({ length: 1_500 }, (_, n) => bus.produce(shop, env, n, { stream_family: 'long' })));
    await bus.clock.advance('60s');
    for (const env of long) expect(await bus.store.client.xlen(`bus:{${env}}:long`)).toBeLessThan(1_200);
    await bus.consume(mail, { env_id: '*', stream_family: 'long' });
    expect(
      Number(
        ((await bus.call('closeGroup', mail, { body: { stream_family: 'long', consumer_group: 'g' } })).value as { closed: number }).closed,
      ),
    ).toBeGreaterThanOrEqual(1);
  });

  test('BUS-020 whichever server is killed and comes back empty, what was acknowledged is appended again', async () => {
    for (const n of [0, 1, 2]) {
      await bus.clock.advance('2s');
      const keys = await Promise.all(
        envs.map(async env => {
          const key = `kept-${n}-${env}`;
          await bus.produce(shop, env, n, { idempotency_key: key, stream_family: 'kept' });
          return key;
        }),
      );
      await eventually(async () => (await bus.pool.raw`select 1 from event_inbox where message_id is null`).length).toBe(0);
      await cluster.restart(n);
      await eventually(async () => {
        await bus.clock.advance('2s');
        const seen = await bus.drain(mail, { env_id: '*', stream_family: 'kept', consumer_group: `after-${n}` }).catch(() => []);
        for (const { idempotency_key } of seen) found.add(idempotency_key);
        return keys.filter(key => !found.has(key)).length;
      }).toBe(0);
    }
  });
  const found = new Set<string>();
});
