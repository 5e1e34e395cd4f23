import { SYSTEM } from '@platform/sdk';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { statistics } from '../contract/index.ts';
import plugin from '../src/plugin.ts';

let host: BootedHost<typeof statistics>;
beforeAll(async () => {
  host = await boot(plugin);
});
afterAll(() => host?.[Symbol.asyncDispose]());

const ENV = SYSTEM.envId;
const store = as.machine('app', 'stat:properties:write', 'stat:measure');
const reader = as.user('stat:read', 'stat:traffic:read');
let references = 0;
const provision = (more: object = {}) =>
  host.fetch('/v1/m/properties', {
    method: 'POST',
    persona: store,
    body: JSON.stringify({ env_id: ENV, kind: 'instance', ref_id: `ref-${++references}`, name: 'Shop', ...more }),
  });
const measure = (property_id: string, more: object = {}) =>
  host.fetch('/v1/m/metric', {
    method: 'POST',
    persona: store,
    body: JSON.stringify({ property_id, metric: 'orders', value: 2, ...more }),
  });
const iso = (ms: number) => new Date(host.clock.now().getTime() + ms).toISOString();

describe('properties', () => {
  test('STA-001 a property is provisioned once: the same again answers the one there is, and its number', async () => {
    const first = await provision({ ref_id: 'once' });
    const again = await provision({ ref_id: 'once', name: 'Other' });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(first.json['property_id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(again.json['property_id']).toBe(first.json['property_id']);
    const remove = () => host.fetch(`/v1/m/properties/${first.json['property_id']}`, { method: 'DELETE', persona: store });
    expect([(await remove()).status, (await remove()).status]).toEqual([204, 204]);
  });

  test('nobody reads what another environment measures', async () => {
    const { json } = await provision();
    const stranger = as.userIn('01900000-0000-7000-8000-0000000000aa', 'stat:read');
    expect((await host.fetch(`/v1/m/properties/${json['property_id']}`, { persona: reader })).status).toBe(200);
    expect((await host.fetch(`/v1/m/properties/${json['property_id']}`, { persona: stranger })).status).toBe(404);
    expect((await host.fetch(`/v1/m/properties/${json['property_id']}/aggregates`, { persona: stranger })).status).toBe(404);
  });
});

describe('measurements', () => {
  test('STA-003 a workload with the scope records, and nobody else', async () => {
    const { json } = await provision();
    const id = json['property_id'] as string;
    expect(await measure(id)).toMatchObject({ status: 202, json: { accepted: true } });
    const body = JSON.stringify({ property_id: id, metric: 'orders', value: 1 });
    expect((await host.fetch('/v1/m/metric', { method: 'POST', persona: as.user('stat:measure'), body })).status).toBe(403);
    expect((await host.fetch('/v1/m/metric', { method: 'POST', persona: as.machine('app'), body })).status).toBe(403);
    expect(await measure('01900000-0000-7000-8000-0000000000ff')).toMatchObject({ status: 404, json: { code: 'property_not_found' } });
    for (const at of [iso(10 * 60_000), iso(-8 * 24 * 3_600_000)])
      expect(await measure(id, { at })).toMatchObject({ status: 400, json: { code: 'measured_in_future' } });
  });

  test('STA-002 a minute that is over is summed up once and told with its property; what comes late moves its sum', async () => {
    const { json } = await provision();
    const id = json['property_id'] as string;
    const minute = new Date(Math.floor(host.clock.now().getTime() / 60_000) * 60_000).toISOString();
    await measure(id, { at: minute, value: 2 });
    await measure(id, { at: minute, value: 3, idempotency_key: 'k' });
    await measure(id, { at: minute, value: 3, idempotency_key: 'k' });
    await measure(id, { at: minute, metric: 'visits', value: 7 });
    await host.clock.advance('70s');
    const told = (count: number) => host.events('platform:stat.aggregate.updated', count, ({ payload }) => payload['property_id'] === id);
    const [first] = await told(1);
    expect(first).toMatchObject({
      stream_family: 'stat-pipeline',
      env_id: ENV,
      payload: { property_id: id, window: { from: minute }, metrics: { orders: 5, visits: 7 } },
    });
    await measure(id, { at: minute, value: 10 });
    await host.clock.advance('20s');
    expect((await told(2)).at(-1)?.payload['metrics']).toEqual({ orders: 15, visits: 7 });
    const listed = (await host.fetch(`/v1/m/properties/${id}/aggregates?limit=1`, { persona: reader })).json as {
      items: object[];
      next_cursor: string;
    };
    expect(listed.items).toMatchObject([{ metric: 'visits', value: 7, count: 1 }]);
    const next = (await host.fetch(`/v1/m/properties/${id}/aggregates?limit=1&cursor=${listed.next_cursor}`, { persona: reader })).json as {
      items: object[];
    };
    expect(next.items).toMatchObject([{ metric: 'orders', value: 15, count: 3 }]);
  });
});

describe('traffic', () => {
  const flush = (service: string, requests: number, statuses: Record<string, number>, p50: number, more = {}) =>
    JSON.stringify({
      service,
      at: host.clock.now().toISOString(),
      counts: { requests, ...more },
      statuses,
      latency_ms: { p50, p95: p50 * 2, p99: p50 * 3 },
    });
  /** What a channel carries of two services, in the order of its coming; this service tells of its own traffic beside them. */
  const heard = async (channel: string) => {
    const messages: Record<string, unknown>[] = [];
    const subscription = await host.process.kv.subscribe(channel, message => {
      const told = JSON.parse(message) as Record<string, unknown>;
      if (told['service'] !== 'stat') messages.push(told);
    });
    return { messages, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() };
  };

  test('STA-007 STA-005 STA-004 flushes of services become a rollup of their minute and a snapshot for the console, once', async () => {
    await using rollups = await heard('stat:rollups:minute');
    const publish = (channel: string, message: string) => host.process.kv.call('PUBLISH', channel, message);
    await publish('stat:metrics', flush('sys', 30, { '2xx': 28, '5xx': 2 }, 10));
    await publish('stat:metrics', flush('sys', 10, { '2xx': 10 }, 50));
    // Answers that waited on purpose weigh nothing: the median of the others stays what it is.
    await publish('stat:metrics', flush('sys', 100, { '2xx': 100 }, 0, { waited: 100 }));
    await publish('stat:metrics:tls', flush('proxy', 60, { '2xx': 60 }, 4));
    for (const nonsense of [
      '{',
      '{"service":"../x"}',
      flush('sys', -1, {}, 1),
      JSON.stringify({ service: 'sys', at: '2001-01-01T00:00:00Z', counts: {}, statuses: {}, latency_ms: { p50: 1, p95: 1, p99: 1 } }),
    ])
      await publish('stat:metrics', nonsense);
    await expect
      .poll(async () => {
        await host.clock.advance('40s');
        return rollups.messages.toSorted((left, right) => String(left['service']).localeCompare(String(right['service'])));
      })
      .toEqual([
        {
          at: expect.any(String),
          service: 'proxy',
          counts: { requests: 60 },
          statuses: { '2xx': 60 },
          latency_ms: { p50: 4, p95: 8, p99: 12 },
        },
        {
          at: expect.any(String),
          service: 'sys',
          counts: { requests: 140, waited: 100 },
          statuses: { '2xx': 138, '5xx': 2 },
          latency_ms: { p50: 20, p95: 100, p99: 150 },
        },
      ]);
    const mine = await host.events('platform:stat:traffic:snapshot', 1, ({ payload }) => 'sys' in (payload['by_service'] as object));
    expect(mine).toMatchObject([
      {
        env_id: ENV,
        payload: {
          errors: 2,
          p50_ms: expect.closeTo(10.4, 0),
          p95_ms: 100,
          by_service: { sys: { requests: 140, errors: 2 }, proxy: { requests: 60, errors: 0 } },
        },
      },
    ]);
    expect(
      ((await host.fetch('/v1/traffic', { persona: reader })).json['items'] as { requests: number; errors: number }[]).filter(
        ({ errors }) => errors > 0,
      ),
    ).toEqual([{ at: expect.any(String), requests: expect.any(Number), errors: 2 }]);
    const { errors, errors_by_minute, items } = (await host.fetch('/v1/traffic', { persona: reader })).json as Record<string, number[]>;
    expect([errors_by_minute?.length, errors_by_minute?.at(-1), errors_by_minute?.includes(2)]).toEqual([items?.length, errors, true]);
    const services = (await host.fetch('/v1/traffic/services', { persona: reader })).json['items'] as { service: string }[];
    expect(services.filter(({ service }) => service !== 'stat')).toMatchObject([
      { service: 'proxy', requests: 60, p50_ms: 4 },
      { service: 'sys', requests: 140, errors: 2, p50_ms: 20 },
    ]);
    expect((await host.fetch('/v1/traffic', { persona: as.user('stat:read') })).status).toBe(403);
  });

  test('STA-006 a day that is over is rolled up from its minutes, once', async () => {
    await using days = await heard('stat:rollups:day');
    await host.clock.leap('1d');
    await expect
      .poll(
        async () => {
          await host.clock.advance('20s');
          return days.messages
            .map(({ service, counts, statuses }) => ({ service, counts, statuses }))
            .toSorted((left, right) => String(left.service).localeCompare(String(right.service)));
        },
        { timeout: 20_000 },
      )
      .toEqual([
        { service: 'proxy', counts: { requests: 60 }, statuses: { '2xx': 60 } },
        { service: 'sys', counts: { requests: 140, waited: 100 }, statuses: { '2xx': 138, '5xx': 2 } },
      ]);
    await host.clock.advance('1m');
    expect(days.messages).toHaveLength(2);
  });
});
