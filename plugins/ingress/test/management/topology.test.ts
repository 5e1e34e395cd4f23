import { expect, test } from 'vitest';
import { ManualClock } from '@platform/testing';
import { EdgeTraffic } from '../../src/management/edge-traffic.ts';
import { Topology } from '../../src/management/topology.ts';

function topologyOf(failures = 0) {
  const clock = new ManualClock();
  const at = { failures, asked: 0, told: (): void => undefined };
  const ctx = {
    clock,
    every: clock.every.bind(clock),
    own: <T>(resource: T) => resource,
    log: { debug: () => undefined },
    kv: {
      subscribe: async (channel: string, listener: () => void) => {
        expect(channel).toBe('captain:changed');
        at.told = listener;
        return { [Symbol.asyncDispose]: async () => undefined };
      },
    },
    catalog: { manifests: () => [{ id: 'sys' }, { id: 'web' }] },
    backends: { addresses: async (service: string) => (service === 'sys' ? [{ suspect_until: 5 }, { suspect_until: undefined }] : []) },
    services: {
      registry: {
        listVerticals: async () => {
          at.asked += 1;
          if (at.failures-- > 0) throw new Error('the registry is away');
          return { items: [{ service: 'till' }] };
        },
      },
    },
  };
  return { topology: new Topology(ctx as never), clock, at };
}
const reloads = (topology: Topology) => topology.figures['topology_reloads_total'];

test('ING-046 word of a change is waited out for a second of quiet, then what there is is read once', async () => {
  const { topology, clock, at } = topologyOf();
  await topology.start();
  const before = reloads(topology) ?? 0;
  at.told();
  await clock.advance('900ms');
  at.told();
  await clock.advance('950ms');
  expect(reloads(topology)).toBe(before);
  await clock.advance('100ms');
  expect(reloads(topology)).toBe(before + 1);
  await clock.advance('10s');
  expect(reloads(topology)).toBe(before + 1);
  expect(topology.services).toEqual({ sys: { active: 2, suspect: 1 }, web: { active: 0, suspect: 0 }, till: { active: 0, suspect: 0 } });
});

test('ING-050 ING-007 the seed is tried ten times, three seconds apart; then the poll of thirty seconds goes on', async () => {
  const { topology, clock, at } = topologyOf(11);
  await topology.start();
  expect([at.asked, topology.ageSeconds()]).toEqual([1, null]);
  await clock.advance('3s');
  expect(at.asked).toBe(2);
  for (let turn = 0; turn < 8; turn++) await clock.advance('3s');
  expect(at.asked).toBe(10);
  // 27 s have passed: the poll at 30 s is the eleventh try, the one at 60 s succeeds.
  await clock.advance('29s');
  expect([at.asked, topology.ageSeconds()]).toEqual([11, null]);
  await clock.advance('4s');
  expect([at.asked, topology.ageSeconds()]).toEqual([12, 0]);
});

test('ING-048 ING-049 every ten seconds counts, statuses and latency go to stat:metrics:tls, and nothing else', async () => {
  const clock = new ManualClock();
  const told: unknown[][] = [];
  const traffic = new EdgeTraffic({
    clock,
    every: clock.every.bind(clock),
    own: (resource: unknown) => resource,
    kv: { call: async (...args: unknown[]) => void told.push(args) },
  } as never);
  for (const status of [200, 200, 301, 404, 502]) traffic.answered(status, 2);
  traffic.count('connections');
  traffic.count('handshakes_post_quantum');
  await clock.advance('9s');
  expect(told).toEqual([]);
  await clock.advance('1s');
  expect(told.map(([command, channel]) => [command, channel])).toEqual([['PUBLISH', 'stat:metrics:tls']]);
  const said = JSON.parse(String(told[0]?.[2])) as Record<string, unknown>;
  expect(said).toEqual({
    service: 'proxy',
    at: clock.now().toISOString(),
    counts: {
      requests: 5,
      connections: 1,
      handshakes: 0,
      handshakes_failed: 0,
      handshakes_post_quantum: 1,
      piped: 0,
      requests_http2: 0,
      not_2xx: 3,
    },
    statuses: { '2xx': 2, '3xx': 1, '4xx': 1, '5xx': 1 },
    latency_ms: { p50: 2, p95: 2, p99: 2 },
  });
  await clock.advance('10s');
  expect(JSON.parse(String(told[1]?.[2]))).toMatchObject({ counts: { requests: 0, connections: 0 } });
});
