import { eventBus } from '@platform/event-bus/contract';
import { SYSTEM } from '@platform/sdk';
import { scheduler } from '@platform/scheduler/contract';
import { statistics } from '@platform/statistics/contract';
import { as } from '@platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Instance } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

const meter = as.machine('captain', 'stat:measure', 'stat:properties:write');

/** What is measured of applications, through the real statistics service and the real bus. */
export function describeUsage(given: () => World): void {
  describe('usage of listings', () => {
    let world: World;
    let acme: Tenant;
    let listing: Listing;
    let instance: Instance;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      listing = await world.listing(acme);
      ({ instance } = await world.setup(acme, { listing_id: listing.listing_id }));
    });
    const measure = (property_id: string, value: number, metric = 'visits', at?: string) =>
      world.at(statistics, meter).measure({ body: { property_id, metric, value, ...(at ? { at } : {}) } });
    const sums = async (propertyId: string) => {
      await world.clock('20s');
      const rows = await (await world.sql('stat'))<
        { metric: string; value: number }[]
      >`select metric, sum(value) as value from aggregates where property_id = ${propertyId} group by 1 order by 1`;
      return Object.fromEntries(rows.map(({ metric, value }) => [metric, value]));
    };
    const measured = async (propertyId: string) => {
      await world.clock('20s');
      const rows = await (await world.sql('stat'))<{ metric: string; value: number; count: number }[]>`
        select metric, sum(value) as value, count(*)::int as count from measurements
        where property_id = ${propertyId} and metric like 'usage.%' group by 1 order by 1`;
      return rows.map(({ metric, value, count }) => `${metric}=${value} in ${count}`);
    };

    test('APP-018 APP-019 APP-020 APP-021 APP-030 what is measured of a listing is recorded as its usage, once; its own record is told again and recorded no more', async () => {
      const property = instance.statistics_property_id as string;
      const at = world.host.clock.now().toISOString();
      await measure(property, 3, 'visits', at);
      await measure(property, 4, 'visits', at);
      await expect.poll(() => measured(property), { timeout: 20_000 }).toEqual(['usage.visits=7 in 1']);
      // A late measurement of the same minute: its sum comes again, and only what was added counts.
      await measure(property, 10, 'visits', at);
      await measure(property, 2, 'orders', at);
      await expect.poll(() => measured(property), { timeout: 20_000 }).toEqual(['usage.orders=2 in 1', 'usage.visits=17 in 2']);
      // Round and round: usage itself is summed up and told, for as many turns as one likes.
      for (let turn = 0; turn < 6; turn++) await world.clock('30s');
      expect(await measured(property)).toEqual(['usage.orders=2 in 1', 'usage.visits=17 in 2']);
      await expect
        .poll(() => sums(property), { timeout: 20_000 })
        .toEqual({ orders: 2, visits: 17, 'usage.orders': 2, 'usage.visits': 17 });
      // Usage is counted, and nothing has a price (APP-030).
      const columns = await (await world.sql('app'))<
        object[]
      >`select 1 from information_schema.columns where table_schema = current_schema() and column_name ~ 'price|amount|bill|invoice|currency'`;
      expect(columns).toEqual([]);
    });

    test('APP-022 while the statistics service fails the event is not acknowledged, and counts once when it is back', async () => {
      const other = await world.listing(acme);
      const { instance: mine } = await world.setup(acme, { listing_id: other.listing_id });
      const property = mine.statistics_property_id as string;
      let refused = 0;
      {
        using _ = world.failing('stat', operation => {
          const ours = operation === 'measure' && armed;
          if (ours) refused += 1;
          return ours;
        });
        await measure(property, 5);
        armed = true;
        await expect.poll(async () => (await world.clock('20s'), refused), { timeout: 20_000 }).toBeGreaterThan(0);
        expect(await measured(property)).toEqual([]);
        armed = false;
      }
      await expect.poll(() => measured(property), { timeout: 30_000 }).toEqual(['usage.visits=5 in 1']);
    });
    let armed = false;

    test('a sum that could not be recorded at once does not undo the later one of its minute', async () => {
      const globex = await world.tenant();
      const other = await world.listing(globex);
      const { instance: mine } = await world.setup(globex, { listing_id: other.listing_id });
      const property_id = mine.statistics_property_id as string;
      const from = world.host.clock.now().toISOString();
      const tell = (...sums: number[]) =>
        world.at(eventBus, as.machine('stat', 'bus:produce')).produceBatch({
          body: {
            events: sums.map(visits => ({
              ...{ event_type: 'platform:stat.aggregate.updated', stream_family: 'stat-pipeline', env_id: globex.env_id },
              idempotency_key: `${property_id}:${visits}`,
              payload: { property_id, window: { from, to: from }, metrics: { visits } },
            })),
          },
        });
      let asked = 0;
      {
        // The first sum is refused once, with the second one right behind it.
        using _ = world.failing('stat', operation => operation === 'measure' && asked++ === 0);
        await tell(5, 15);
        await expect.poll(() => measured(property_id), { timeout: 20_000 }).toEqual(['usage.visits=15 in 2']);
      }
      for (let turn = 0; turn < 6; turn++) await world.clock('30s');
      await tell(16);
      await expect.poll(() => measured(property_id), { timeout: 20_000 }).toEqual(['usage.visits=16 in 3']);
    });

    test('APP-020 a sum of a property that is of no listing is acknowledged and left alone', async () => {
      const { property_id } = await world
        .at(statistics, meter)
        .provision({ body: { env_id: acme.env_id, kind: 'instance', ref_id: world.slug(), name: 'Somebody else’s' } });
      await measure(property_id, 1);
      await expect.poll(() => sums(property_id), { timeout: 20_000 }).toEqual({ visits: 1 });
      for (let turn = 0; turn < 3; turn++) await world.clock('30s');
      expect(await measured(property_id)).toEqual([]);
      const [pending] = await (await world.sql('app'))<
        { count: number }[]
      >`select count(*)::int as count from usage_taken where property_id = ${property_id}`;
      expect(pending?.count).toBe(0);
    });

    test('APP-025 APP-026 APP-027 SCH-001 the scheduler asks for the counters of a day, which count once however often it asks, and fail alone', async () => {
      const [schedule] = (await world.at(scheduler, as.machine('app', 'cron:schedules:write')).listSchedules({})).items.filter(
        ({ name }) => name === 'app-daily-counters',
      );
      expect(schedule).toMatchObject({
        cron: '5 0 * * *',
        timezone: 'UTC',
        target: { service: 'app', path: '/v1/internal/jobs/daily-counters' },
      });
      // An environment of its own: the schedule may have fired for the others when the clock passed five minutes behind midnight.
      const initech = await world.tenant();
      const sold = await world.listing(initech);
      await world.listing(initech);
      for (let installs = 0; installs < 2; installs++) await world.setup(initech, { listing_id: sold.listing_id });
      const counted = async () => {
        await world.clock('10s');
        return (await world.sql('stat'))<{ metric: string; value: number; key: string; dimensions: object }[]>`
          select metric, value, idempotency_key as key, dimensions from measurements
          join properties using (property_id) where ref_id = ${`app-store:${initech.env_id}`} order by metric`;
      };
      const cron = as.user('sys:sys:admin', 'cron:schedules:admin');
      const today = () => world.host.clock.now().toISOString().slice(0, 10);
      const earliest = today();
      // One of the two was installed at noon of the day before: that day's number is what the schedule counts.
      const noon = new Date(Date.parse(`${earliest}T12:00:00.000Z`) - 86_400_000);
      const app = await world.sql('app');
      await app`update instances set created_at = ${world.host.clock.now()} where env_id = ${initech.env_id}`;
      await app`update instances set created_at = ${noon}
        where instance_id = (select instance_id from instances where env_id = ${initech.env_id} limit 1)`;
      await world.at(scheduler, cron).runSchedule({ params: { name: 'app-daily-counters' } });
      const latest = today();
      await expect.poll(async () => (await counted()).length, { timeout: 20_000 }).toBe(3);
      // The suite may run across midnight: the day is that of the firing, whatever the clock says later.
      const day = (await counted())[0]?.key.slice(-latest.length) ?? '';
      expect([earliest, latest]).toContain(day);
      const key = (metric: string) => `${metric}:${initech.env_id}:${day}`;
      const dimensions = { env: initech.env_id };
      expect(await counted()).toEqual([
        { metric: 'installs.daily', value: 1, key: key('installs.daily'), dimensions },
        { metric: 'instances.count', value: 2, key: key('instances.count'), dimensions },
        { metric: 'listings.count', value: 2, key: key('listings.count'), dimensions },
      ]);
      await world.setup(initech, { listing_id: sold.listing_id });
      const caller = world.host.by(as.machine('cron', 'app:jobs:run'));
      const firing = {
        schedule: 'app-daily-counters',
        fire_id: '01900000-0000-7000-8000-0000000000f1',
        fire_at: `${day}T00:05:00.000Z`,
      };
      await caller.dailyCounters({ body: firing });
      for (let turn = 0; turn < 3; turn++) await world.clock('10s');
      expect((await counted()).find(({ metric }) => metric === 'instances.count')).toMatchObject({ value: 2 });
      {
        using _ = world.failing('stat', operation => operation === 'measure');
        // The answer waits for nobody, and nothing else of the store minds.
        await caller.dailyCounters({ body: { ...firing, fire_at: new Date(Date.parse(firing.fire_at) + 172_800_000).toISOString() } });
        await world.clock('10s');
        expect(await world.setup(initech, { listing_id: sold.listing_id })).toMatchObject({ instance: { status: 'active' } });
      }
      expect(await refusal(world.host.by(as.user('app:jobs:run')).dailyCounters({ body: firing }))).toEqual([403, 'm2m_required']);
    });

    test('KRN-006 the relay takes the store’s events from its outbox to the bus, under the environment they are about', async () => {
      const reader = as.machine('captain', 'bus:consume');
      const group = world.slug('reader');
      const seen = new Set<string>();
      const read = async () => {
        await world.clock('2s');
        const { entries } = await world.at(eventBus, reader).consume({
          body: {
            env_id: acme.env_id,
            stream_family: 'app',
            consumer_group: group,
            consumer: 'one',
            count: 100,
            block_ms: 0,
            start: 'earliest',
          },
        } as never);
        for (const { event_type, payload } of entries as { event_type: string; payload: Record<string, string> }[])
          if (payload['instance_id'] === instance.instance_id) seen.add(event_type);
        return [...seen];
      };
      await expect.poll(read, { timeout: 20_000 }).toEqual(['platform:app:instance:created', 'platform:app:instance:activated']);
      expect(SYSTEM.envId).not.toBe(acme.env_id);
    });
  });
}
