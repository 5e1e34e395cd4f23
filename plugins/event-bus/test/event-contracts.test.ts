import { checkManifest } from '@platform/checks';
import { registry } from '@platform/registry/contract';
import { event, Type } from '@platform/sdk/contract';
import { eventually, type Manifest, manifestOf, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { eventBus } from '../contract/index.ts';
import { newEnv, refusal, RunningBus, workload } from './fixtures/running-bus.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const acme = workload('m2m-acme', 'acme');
const globex = workload('m2m-globex', 'globex');
const host = workload('host');
const shop: Manifest = {
  ...manifestOf(registry, '0.1.0'),
  id: 'shop',
  events: JSON.parse(
    JSON.stringify({
      'platform:shop:order:created': event(
        'An order',
        Type.Object({ order_id: Type.String(), items: Type.Array(Type.Object({ sku: Type.String() })) }),
      ),
    }),
  ),
};
let stores: TestStores;
let bus: RunningBus;
beforeAll(async () => {
  stores = await openTestStores();
  bus = await RunningBus.start(stores, { manifests: [shop] });
});
afterAll(async () => {
  await bus[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const produce = (as: ReturnType<typeof workload>, event_type: string, payload: object, env = newEnv()) =>
  refusal(bus.call('produce', as, { body: { event_type, env_id: env, stream_family: 'app', payload } }));
const declare = (events: Record<string, object>, more: object = {}) =>
  bus.call('keepEventContract', host, {
    params: { service: 'lending' },
    body: { service: 'lending', vertical: 'acme', version: '1.0.0', events, ...more },
  });

test('BUS-005 an event that does not fit what its service declares is refused with a pointer to each bad member, and nothing is stored', async () => {
  const env = newEnv();
  const answer = await produce(workload('shop'), 'platform:shop:order:created', { order_id: 7, items: [{ sku: 'a' }, {}] }, env);
  expect(answer).toMatchObject({ code: 'invalid_event', status: 400 });
  expect(answer.extra?.errors?.map(({ pointer, code }) => `${pointer} ${code}`).sort()).toEqual([
    '/payload/items/1/sku required',
    '/payload/order_id type',
  ]);
  expect(await produce(workload('shop'), 'platform:shop:order:lost', {})).toMatchObject({
    code: 'invalid_event',
    extra: { errors: [{ pointer: '/event_type', code: 'undeclared' }] },
  });
  expect(await bus.pool.raw`select 1 from event_inbox where env_id = ${env}`).toHaveLength(0);
  expect((await produce(workload('shop'), 'platform:shop:order:created', { order_id: 'o', items: [], more: true })).code).toBe('none');
});

test('BUS-024 nothing of a payload beyond its declared shape matters: unknown members, any order and any text come through as they were', async () => {
  const env = newEnv();
  const payload = {
    zeta: [1, { deep: null }],
    order_id: '../../etc/passwd',
    items: [],
    text: '{"event_type":"x"}\u2028',
    env_id: newEnv(),
    idempotency_key: 'not-the-key',
  };
  expect((await produce(workload('shop'), 'platform:shop:order:created', payload, env)).code).toBe('none');
  const [entry] = await bus.consume(workload('mail'), { env_id: env });
  expect(JSON.stringify(entry?.payload)).toBe(JSON.stringify(payload));
  expect(entry).toMatchObject({ env_id: env, idempotency_key: expect.not.stringMatching('not-the-key') });
});

test('a row of a batch that does not fit fails alone, and its detail says where', async () => {
  const env = newEnv();
  const row = (payload: object) => ({ event_type: 'platform:shop:order:created', env_id: env, stream_family: 'app', payload });
  const { value } = await bus.call('produceBatch', workload('shop'), {
    body: { events: [row({ order_id: 'a', items: [] }), row({ items: [] }), row({ order_id: 'b', items: [] })] },
  });
  expect((value as { results: object[] }).results).toMatchObject([
    { message_id: expect.any(String) },
    { error: 'invalid_event', status: 400, detail: expect.stringContaining('/payload/order_id') },
    { message_id: expect.any(String) },
  ]);
});

test('a vertical is open until the host says what its services declare; then it is held to that, in every process and after a restart', async () => {
  expect((await produce(acme, 'acme:lending:loan:granted', { anything: 1 })).code).toBe('none');
  await using other = await RunningBus.start(stores);
  expect((await declare({ 'acme:lending:loan:granted': Type.Object({ loan_id: Type.String() }) })).value).toMatchObject({ changed: true });
  expect((await declare({ 'acme:lending:loan:granted': Type.Object({ loan_id: Type.String() }) })).value).toMatchObject({ changed: false });
  expect(await produce(acme, 'acme:lending:loan:granted', { loan_id: 7 })).toMatchObject({
    code: 'invalid_event',
    extra: { errors: [{ pointer: '/payload/loan_id' }] },
  });
  expect(await produce(acme, 'acme:lending:loan:lost', {})).toMatchObject({ code: 'invalid_event' });
  expect(await produce(acme, 'acme:other:loan:granted', {})).toMatchObject({ code: 'invalid_event' });
  expect((await produce(acme, 'acme:lending:loan:granted', { loan_id: 'l' })).code).toBe('none');
  expect((await produce(globex, 'globex:any:thing:happened', { free: true })).code).toBe('none');
  const elsewhere = (process: RunningBus) =>
    refusal(
      process.call('produce', acme, {
        body: { event_type: 'acme:lending:loan:granted', env_id: newEnv(), stream_family: 'app', payload: {} },
      }),
    ).then(({ code }) => code);
  await other.clock.advance('2s');
  await eventually(() => elsewhere(other)).toBe('invalid_event');
  await using fresh = await RunningBus.start(stores);
  expect(await elsewhere(fresh)).toBe('invalid_event');
});

test('what a service that is gone had declared is forgotten, and its groups with it; one that came back since then is not touched', async () => {
  await declare({ 'acme:lending:loan:granted': Type.Object({ loan_id: Type.String() }) });
  let items: object[] = [];
  await using process = await RunningBus.start(stores, { stubs: { sys: { listLives: () => ({ items, next_cursor: null }) } } });
  const env = newEnv();
  await process.call('consume', workload('lending', 'acme'), {
    body: { env_id: env, stream_family: 'app', consumer_group: 'book', consumer: 'c', block_ms: 0 },
  });
  const groups = () => process.store.client.hkeys('bus:groups:app');
  const code = async () => (await produce(acme, 'acme:lending:loan:lost', {})).code;
  const [declared] = await bus.pool.raw<{ updated_at: string }[]>`select updated_at from event_contracts where service = 'lending'`;
  const said = (life: string, since: string) => [
    { service: 'lending', vertical: 'acme', label: 'Lending', version: '1', life, since, stream_families: [] },
  ];
  items = said('gone', '2020-01-01T00:00:00.000Z');
  await process.clock.advance('1s');
  expect([await code(), declared]).toEqual(['invalid_event', expect.anything()]);
  items = said('enabled', '2020-01-01T00:00:00.000Z');
  await process.clock.advance('15s');
  items = said('gone', '2100-01-01T00:00:00.000Z');
  await process.clock.advance('15s');
  await eventually(() => bus.pool.raw`select 1 from event_contracts where service = 'lending'`).toHaveLength(0);
  await eventually(async () => (await groups()).filter(group => group.startsWith('lending.'))).toEqual([]);
});

test('a foreign schema costs no more than its size: patterns are not run, what is nested too deeply is refused', async () => {
  await declare({ 'acme:lending:loan:granted': Type.Object({ loan_id: Type.String({ pattern: '^(a+)+$' }) }) }, { version: '1.1.0' });
  expect((await produce(acme, 'acme:lending:loan:granted', { loan_id: `${'a'.repeat(60)}!` })).code).toBe('none');
  let deep: object = { type: 'string' };
  for (let n = 0; n < 40; n++) deep = { type: 'object', properties: { in: deep } };
  expect(await refusal(declare({ 'acme:lending:loan:granted': deep }))).toMatchObject({ code: 'bad_schema', status: 400 });
  expect((await produce(acme, 'acme:lending:loan:granted', { loan_id: 'still' })).code).toBe('none');
});

test('nobody speaks for the platform, for another service, or over the wire without the right', async () => {
  expect(await refusal(declare({}, { vertical: 'platform' }))).toMatchObject({ code: 'env_mismatch', status: 403 });
  expect(await refusal(declare({ 'acme:billing:a:b': {} }))).toMatchObject({ code: 'bad_schema' });
  expect(eventBus.actions['bus:contracts:write']).toMatchObject({ principals: ['machine'], bound: true });
});

test('a contract whose events break what a declared consumer expects is refused at load, with the reason', () => {
  const busManifest = manifestOf(eventBus, '0.1.0');
  const sys = (change: (payload: { properties: Record<string, object>; required: string[] }) => void): Manifest => {
    const manifest = structuredClone(manifestOf(registry, '0.2.0')) as Manifest & { events: Record<string, { payload: never }> };
    change(manifest.events['platform:sys:env:updated']?.payload as never);
    return manifest;
  };
  const findings = (manifest: Manifest) =>
    checkManifest(
      manifest,
      new Map([
        ['bus', busManifest],
        ['sys', manifest],
      ]),
    )
      .filter(({ id }) => id === 'E071')
      .map(({ where, what }) => `${where} ${what}`);
  expect(findings(sys(() => undefined))).toEqual([]);
  expect(findings(sys(payload => Object.assign(payload.properties, { region: { type: 'string' } })))).toEqual([]);
  expect(findings(sys(payload => void (payload.required = payload.required.filter(name => name !== 'status'))))).toEqual([
    "sys.events.platform:sys:env:updated bus hears 'platform:sys:env:updated' in environmentChanged: /status is not promised any more.",
  ]);
  expect(findings(sys(payload => Object.assign(payload.properties, { status: { type: 'integer' } })))).toEqual([
    expect.stringContaining('/status is integer, expected is string'),
  ]);
  const without = structuredClone(manifestOf(registry, '0.2.0')) as Manifest & { events: Record<string, unknown> };
  delete without.events['platform:sys:env:updated'];
  expect(findings(without)).toEqual([expect.stringContaining('sys declares no such event')]);
  // The other way round: a consumer that expects what nobody promises is refused as well.
  const consumer = {
    ...busManifest,
    id: 'late',
    consumes: {
      hears: {
        event: 'platform:sys:env:updated',
        family: 'sys',
        expects: { type: 'object', required: ['region'], properties: { region: { type: 'string' } } },
      },
    },
  } as unknown as Manifest;
  expect(
    checkManifest(consumer, new Map([['sys', sys(() => undefined)]]))
      .filter(({ id }) => id === 'E071')
      .map(({ where }) => where),
  ).toEqual(['late.consumes.hears']);
});
