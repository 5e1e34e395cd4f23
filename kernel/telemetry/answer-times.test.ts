import { definePlugin } from '@platform/sdk';
import { defineContract, get, stream, Type } from '@platform/sdk/contract';
import { as, boot } from '@platform/testing';
import { expect, test } from 'vitest';

const summary = 'x';
const gate = 'probe:read';
const contract = defineContract({
  id: 'probe',
  title: 'Probe',
  family: 'probe',
  placement: { tier: 50 },
  env: 'any',
  actions: { [gate]: { title: 'Read' } },
  problems: {},
  events: {},
  routes: {
    poll: get('/v1/poll', { summary, gate, returns: Type.Object({ ok: Type.Boolean() }), waits: true }),
    read: get('/v1/read', { summary, gate, returns: Type.Object({ ok: Type.Boolean() }) }),
    feed: stream('/v1/feed', { summary, gate, returns: Type.Object({ ok: Type.Boolean() }) }),
  },
});

test('G-STAT-04 long polls and streams are counted, and how long they wait is no answer time', async () => {
  const plugin = definePlugin(contract, {
    setup: () => ({
      routes: {
        poll: async () => ({ ok: true }),
        read: async () => ({ ok: true }),
        feed: async function* () {
          yield { data: { ok: true } };
        },
      },
    }),
  });
  await using host = await boot(plugin);
  const persona = as.user(gate);
  const told: Record<string, unknown>[] = [];
  await using _heard = await host.process.kv.subscribe('stat:metrics', message => void told.push(JSON.parse(message)));
  const said = async (...paths: string[]) => {
    for (const path of paths) expect((await host.fetch(path, { persona })).status).toBe(200);
    await host.clock.advance('10s');
    await expect.poll(() => told.length).toBe(1);
    return told.pop();
  };
  const zero = { p50: 0, p95: 0, p99: 0 };
  expect(await said('/v1/poll', '/v1/feed')).toMatchObject({ service: 'probe', counts: { requests: 2, waited: 2 }, latency_ms: zero });
  const read = await said('/v1/read');
  expect(read).toMatchObject({ service: 'probe' });
  expect(read?.['counts']).toEqual({ requests: 1 });
  expect(read?.['latency_ms']).not.toEqual(zero);
});
