import type { ControlAnswer } from '@platform/sdk';
import { as, eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { supervisor } from '../contract/index.ts';
import { admitsUser } from '../src/control/control-channel.ts';
import { catalogLine, service } from './fixtures/machine-box.ts';
import { refusal, World } from './fixtures/world.ts';

let stores: TestStores;
let world: World;
beforeAll(async () => {
  stores = await openTestStores();
  world = await World.open(stores, [
    service('auth', 10),
    service('stat', 30, { wanted: false }),
    service('lending', 50, { vertical: 'lab', wanted: false }),
  ]);
  await world.box.boot();
  await world.settle();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

const OWNER = 1_000;
const knock = (
  method: string,
  path: string,
  { uid = OWNER, body, query = {} }: { uid?: number | undefined; body?: unknown; query?: Record<string, string> } = {},
): Promise<ControlAnswer> => world.box.handle({ method, path, query, body, uid, ownUid: OWNER, signal: new AbortController().signal });
const keyOf = async () =>
  ((await world.by.services({ query: { service_type: 'auth' } })).items[0] as { instance_key: string }).instance_key;
const audits = async (action: string) => {
  await eventually(() => world.host.audits.some(entry => entry['action'] === action)).toBe(true);
  return world.host.audits.filter(entry => entry['action'] === action);
};

describe('the eight steps of the gate', () => {
  test('SUP-106 1 transport: a request whose sender nobody knows is refused, over the network and on the socket', async () => {
    expect((await world.host.fetch('/v1/captain/services')).status).toBe(401);
    expect(
      await world.box.handle({
        method: 'GET',
        path: '/v1/captain/services',
        query: {},
        body: undefined,
        uid: undefined,
        ownUid: OWNER,
        signal: new AbortController().signal,
      }),
    ).toMatchObject({
      status: 403,
      body: { code: 'peer_not_admitted' },
    });
  });

  test('SUP-103 SUP-106 2 peer: the socket admits root and the owner, and nobody else', async () => {
    expect([
      admitsUser(0, OWNER),
      admitsUser(OWNER, OWNER),
      admitsUser(OWNER + 1, OWNER),
      admitsUser(undefined, OWNER),
      admitsUser(-1, OWNER),
    ]).toEqual([true, true, false, false, false]);
    expect((await knock('GET', '/v1/captain/services', { uid: 0 })).status).toBe(200);
    expect((await knock('GET', '/v1/captain/services', { uid: 65_534 })).status).toBe(403);
  });

  test('SUP-104 SUP-106 3 token: one that does not verify is nobody', async () => {
    expect((await world.host.fetch('/v1/captain/services', { token: 'not.a.token' })).status).toBe(401);
  });

  test('SUP-105 SUP-106 4 channel: what starts instances has that scope alone, by a certificate, and does nothing else', async () => {
    const { remote } = supervisor.base.workloads as unknown as { remote: object };
    expect([remote, world.host.manifest.actions['captain:instances:write']]).toMatchObject([
      { captain: ['captain:instances:write'] },
      { principals: ['machine'], bound: true },
    ]);
    expect([Object.keys(remote), Object.values(remote).flat()]).toEqual([['captain'], ['captain:instances:write']]);
    const mighty = world.host.by(as.machine('captain-remote', 'captain:admin', 'captain:instances:write'));
    const instance_key = await keyOf();
    for (const call of [
      () => mighty.restart({ params: { instance_key } }),
      () => mighty.startServices({ body: { service_types: ['stat'] } }),
      () => mighty.shutdown({ body: {} }),
      () => mighty.mergeCatalog({ body: { entries: [catalogLine('lending')] } }),
    ])
      expect(await refusal(call())).toMatchObject({ status: 403, code: 'channel_restricted' });
    expect(await audits('captain:restart')).toMatchObject([{ outcome: 'denied' }]);
  });

  test('SUP-104 SUP-106 SUP-087 SUP-088 SUP-089 SUP-091 SUP-092 SUP-093 SUP-095 SUP-099 SUP-100 5 policy: who may not, may not', async () => {
    const somebody = world.host.by(as.user('sys:read'));
    for (const call of [
      () => somebody.services(),
      () => somebody.machines(),
      () => somebody.alerts(),
      () => somebody.shutdown({ body: {} }),
      () => somebody.autoscaler(),
    ])
      expect(await refusal(call())).toMatchObject({ status: 403, code: 'policy_denied' });
    const [key, started] = [encodeURIComponent(await keyOf()), { service_types: ['stat'] }];
    for (const [method, path, body] of [
      ['GET', `services/${key}`],
      ['POST', `services/${key}/restart`, {}],
      ['GET', 'upgrade-status'],
      ['GET', 'upgrade-stream'],
      ['GET', 'startup-stream'],
      ['GET', 'shutdown-stream'],
      ['GET', 'catalog'],
      ['POST', 'merge-catalog', { entries: [catalogLine('lending')] }],
      ['POST', 'start-services', started],
      ['POST', 'instances', started],
      ['POST', 'autoscaler/approve', { key: 'provision:next', decision: 'approve' }],
    ] as const) {
      const asked = { method, persona: as.user('sys:read'), ...(body ? { body: JSON.stringify(body) } : {}) };
      const { status, json } = await world.host.fetch(`/v1/captain/${path}`, asked);
      expect([path, status, json['code']]).toEqual([path, 403, 'policy_denied']);
    }
  });

  test('SUP-066 SUP-106 6 target: the supervisor’s own row, over both ways', async () => {
    const [own] = (await world.by.services({ query: { service_type: 'captain' } })).items as { instance_key: string }[];
    expect(await refusal(world.by.restart({ params: { instance_key: own!.instance_key } }))).toMatchObject({
      status: 409,
      code: 'self_target',
    });
    expect(
      await knock('POST', `/v1/captain/services/${encodeURIComponent(own!.instance_key)}/stop`, { body: { force: true } }),
    ).toMatchObject({ status: 409, body: { code: 'self_target' } });
  });

  test('SUP-106 7 state: catalog and last instance are asked about on the socket too', async () => {
    expect(await knock('POST', '/v1/captain/start-services', { body: { service_types: ['nothing'] } })).toMatchObject({
      status: 400,
      body: { code: 'unknown_service_type' },
    });
    expect(await knock('POST', `/v1/captain/services/${encodeURIComponent(await keyOf())}/stop`, { body: {} })).toMatchObject({
      status: 409,
      body: { code: 'last_active_instance' },
    });
  });

  test('SUP-106 8 record: every action stands in the audit trail with who asked, by which way, and what became of it', async () => {
    expect(await knock('POST', '/v1/captain/start-services', { body: { service_types: ['stat'] } })).toMatchObject({
      status: 200,
      body: { started: [{ service_type: 'stat' }] },
    });
    await eventually(() => world.host.audits.filter(entry => entry['action'] === 'captain:start-services').at(-1)).toMatchObject({
      action: 'captain:start-services',
      outcome: 'success',
      resource: { type: 'fleet', id: 'stat' },
      details: { channel: 'socket', uid: OWNER },
    });
    expect((await audits('captain:stop')).at(-1)).toMatchObject({ outcome: 'denied', details: { channel: 'socket' } });
    const many = Array.from({ length: 64 }, (_, n) => `nothing${n}`);
    await refusal(world.by.startServices({ body: { service_types: many } }));
    await eventually(() => world.host.audits.filter(entry => entry['action'] === 'captain:start-services').at(-1)).toMatchObject({
      resource: { type: 'fleet', id: many.join(',').slice(0, 200) },
      details: { service_types: many },
    });
    await world.by.mergeCatalog({ body: { entries: [catalogLine('lending')] } });
    await refusal(world.by.mergeCatalog({ body: { entries: [catalogLine('lending', ['pni:127.0.0.1'])] } }));
    await eventually(() =>
      world.host.audits.filter(entry => entry['action'] === 'captain:merge-catalog').map(({ outcome, details }) => [outcome, details]),
    ).toMatchObject([
      ['denied', { service_types: ['lending'] }],
      ['success', { service_types: ['lending'], channel: 'network' }],
      ['denied', { service_types: ['lending'] }],
    ]);
  });
});

describe('decisions about machines that wait', () => {
  const waits = async (key: string) => {
    const created_at = world.host.clock.now();
    const expires_at = new Date(created_at.getTime() + 60_000);
    await world.kv.hset(
      'captain:provision:pending',
      key,
      JSON.stringify({ key, kind: 'provision', reason: 'cpu', created_at, expires_at }),
    );
  };
  const waiting = async () => (await world.by.pending()).items.map(({ key }) => key);

  test('SUP-051 are approved or rejected once each, and the trail says who decided what', async () => {
    await waits('provision:next');
    expect(await waiting()).toEqual(['provision:next']);
    const body = { key: 'provision:next', decision: 'approve' as const };
    expect(await refusal(world.host.by(as.user('sys:read')).decide({ body }))).toMatchObject({ status: 403, code: 'policy_denied' });
    expect(await world.by.decide({ body })).toEqual(body);
    expect(await refusal(world.by.decide({ body }))).toMatchObject({ status: 404, code: 'pending_not_found' });
    for (const decision of ['approve', 'reject'] as const) {
      await waits(`deprovision:${decision}`);
      const params = { key: `deprovision:${decision}` };
      expect(await world.by[decision]({ params })).toEqual({ ...params, decision });
      expect(await refusal(world.by[decision]({ params }))).toMatchObject({ status: 404, code: 'pending_not_found' });
    }
    expect(await waiting()).toEqual([]);
    await eventually(() =>
      world.host.audits.filter(({ action, outcome }) => action === 'captain:decide' && outcome === 'success').map(({ details }) => details),
    ).toMatchObject([{ decision: 'approve' }, { decision: 'approve' }, { decision: 'reject' }]);
  });
});

describe('the control socket', () => {
  test('SUP-102 serves the same routes without those of the admin pages and the autoscaler', async () => {
    for (const path of [
      '/v1/captain/readiness',
      '/v1/captain/services',
      '/v1/captain/catalog',
      '/v1/captain/machines',
      '/v1/captain/alerts',
      '/v1/captain/upgrade-status',
      '/v1/captain/post-mortems',
    ])
      expect([path, (await knock('GET', path)).status]).toEqual([path, 200]);
    for (const path of ['/v1/captain/autoscaler', '/v1/captain/autoscaler/pending', '/v1/admin/ui/overview', '/v1/admin/services'])
      expect([path, (await knock('GET', path)).status]).toEqual([path, 404]);
    expect((await knock('POST', '/v1/captain/autoscaler/approve', { body: { key: 'provision:next', decision: 'approve' } })).status).toBe(
      404,
    );
  });

  test('refuses what does not fit, with a pointer to each fault', async () => {
    expect(await knock('POST', '/v1/captain/start-services', { body: { service_types: ['stat'], command: 'rm' } })).toMatchObject({
      status: 400,
      body: { code: 'validation_failed', errors: [{ pointer: '/command' }] },
    });
    expect((await knock('GET', `/v1/captain/services/${encodeURIComponent('127.0.0.1:1')}`)).status).toBe(404);
  });

  test('SUP-089 SUP-090 streams what goes on: the start with alerts first, upgrades, the shutdown', async () => {
    await world.kv.hset(
      'captain:alerts',
      'bus',
      JSON.stringify({ service_type: 'bus', restarts: 3, reason: 'ended (1)', log_path: '/l', at: '2026-01-01T00:00:00.000Z' }),
    );
    const { items } = await knock('GET', '/v1/captain/startup-stream');
    const reader = (items as AsyncIterable<{ event?: string; data: unknown }>)[Symbol.asyncIterator]();
    expect((await reader.next()).value).toMatchObject({ event: 'alert', data: { service_type: 'bus', restarts: 3 } });
    const next = reader.next();
    world.box.kill(world.box.of('stat')[0] as never);
    expect((await next).value).toMatchObject({ event: 'progress', data: { service_type: 'stat', phase: 'waiting' } });
    for (const path of ['upgrade-stream', 'shutdown-stream']) expect((await knock('GET', `/v1/captain/${path}`)).items).toBeDefined();
  });
});
