import { as, boot, type BootedHost, type Persona } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PolicyStore } from '../../test/policy-store.ts';
import { probePlugin } from '../../test/probe.ts';
import type { probe } from '../../test/probe-contract.ts';
import { Streams } from '../../test/streams.ts';

const plugin = probePlugin();
const store = new PolicyStore();
const streams = new Streams();
let host: BootedHost<typeof probe>;
const ENV = '018f0000-0000-7000-8000-00000000e001';
const admin = as.userIn(ENV, 'probe:policy:admin', 'probe:policy:read', 'probe:things:read', 'probe:things:write');
/** What a service registered, and what reached it. */
const told: object[] = [];
let registryAway = false;
const TELL = {
  action: 'sys:tell',
  service: 'sys',
  method: 'POST',
  path: '/v1/shops/{shop_id}/words',
  params_schema: {
    type: 'object',
    properties: { shop_id: { type: 'string' }, word: { type: 'string' } },
    required: ['shop_id', 'word'],
    additionalProperties: false,
  },
  policy_action: 'probe:things:write',
  target_env: true,
};
const shop = {
  listVerticals: async () => {
    if (registryAway) throw new Error('the registry is away');
    return { items: [{ service: 'sys', vertical: 'platform', actions: [TELL, { ...TELL, action: 'bus:tell' }] }], next_cursor: null };
  },
  tell: async ({ params, body, caller, headers }: Record<string, unknown> & { headers: Record<string, string> }) => {
    told.push({ params, body, caller, env: headers['x-platform-target-env-id'] });
    return { heard: true };
  },
};
const FORBID = 'forbid(principal, action == Action::"probe:things:write", resource);';

beforeAll(async () => {
  const sys = { ...(store.stub as object), ...shop } as never;
  host = await boot<typeof probe, (typeof plugin)['uses']>(plugin, { stubs: { sys, bus: streams.stub as never } });
});
afterAll(async () => host?.[Symbol.asyncDispose]());

const call = (method: string, path: string, body?: object | string, more: object = {}) =>
  host.fetch(`${path}${path.includes('?') ? '&' : '?'}target_env_id=${ENV}`, {
    method,
    persona: admin,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...more,
  });
const writes = async () => (await host.fetch('/v1/things', { method: 'POST', persona: admin, body: JSON.stringify({ name: 'x' }) })).status;

test('checks come in their order: credential, target, right, size, JSON, content', async () => {
  const path = '/v1/admin/policy-sets';
  expect((await host.fetch(path, { method: 'POST', body: '{' })).status).toBe(401);
  expect((await host.fetch(path, { method: 'POST', persona: admin, body: '{' })).json['code']).toBe('target_env_required');
  expect((await host.fetch(`${path}?target_env_id=${ENV}`, { method: 'POST', persona: as.userIn(ENV), body: '{' })).json['code']).toBe(
    'policy_denied',
  );
  expect((await call('POST', path, '{')).json['code']).toBe('malformed');
  expect((await call('POST', path, { name: 'x', policies: 'permit(', more: 1 })).json['code']).toBe('validation_failed');
});

test('KRN-014 a policy that does not hold is 422 with what Cedar found, and nothing is stored', async () => {
  for (const policies of ['permit(principal', 'forbid(principal, action == Action::"probe:no:such", resource);']) {
    for (const method of ['POST', 'PUT']) {
      const answer = await call(method, '/v1/admin/policy-sets', { name: 'bad', policies });
      expect([answer.status, answer.json['code']]).toEqual([422, 'policy_invalid']);
      expect(answer.json['errors']).toEqual([{ pointer: '/policies', code: expect.any(String), message: expect.stringMatching(/.{10}/) }]);
    }
  }
  expect(store.sets).toEqual([]);
});

test('KRN-015 a policy write of more than 64 KiB is 413, on every kind', async () => {
  for (const kind of ['policy-sets', 'relations', 'attributes']) {
    for (const method of ['POST', 'PUT']) {
      const answer = await call(method, `/v1/admin/${kind}`, { policies: 'x'.repeat(65_536) });
      expect([kind, answer.status, answer.json['code']]).toEqual([kind, 413, 'body_too_large']);
    }
  }
  const padded = JSON.stringify({ name: 'fits', policies: `${FORBID}//${' '.repeat(65_000)}` });
  expect(padded.length).toBeLessThanOrEqual(65_536);
  expect((await call('POST', '/v1/admin/policy-sets', padded)).status).toBe(200);
  store.sets.length = 0;
});

test('a row of the platform cannot be overwritten: the store’s 409 reaches the caller as it is', async () => {
  store.put({
    env_id: ENV,
    service: '*',
    name: 'scope-mirror',
    origin: 'platform',
    mode: 'enforced',
    policies: 'permit(principal, action, resource);',
  });
  const answer = await call('POST', '/v1/admin/policy-sets', { name: 'scope-mirror', policies: FORBID });
  expect([answer.status, answer.json['code']]).toEqual([409, 'platform_origin_row']);
  expect(store.sets[0]?.policies).toBe('permit(principal, action, resource);');
});

test('F-26 NTF-059 a service tells of its own sets under its own name, of a change and of a deletion', async () => {
  const before = host.bus.length;
  const { json: set } = await call('POST', '/v1/admin/policy-sets', { name: 'told', policies: FORBID });
  await call('DELETE', `/v1/admin/policy-sets?id=${set['policy_set_id']}`);
  const told = () =>
    host.bus.slice(before).filter(({ event_type }) => event_type.endsWith(':policy:updated')) as unknown as {
      event_type: string;
      stream_family: string;
      env_id: string;
      payload: Record<string, unknown>;
    }[];
  await expect
    .poll(() =>
      told().map(({ event_type, stream_family, env_id, payload }) => [
        event_type,
        stream_family,
        env_id,
        payload['version'],
        payload['policy_set'] === null,
      ]),
    )
    .toEqual([
      ['platform:probe:policy:updated', 'policy', ENV, 1, false],
      ['platform:probe:policy:updated', 'policy', ENV, 2, true],
    ]);
});

test('G-K-10 a service tells of its own relations and attributes as well, so that no other process waits for its next look', async () => {
  const before = host.bus.length;
  await call('POST', '/v1/admin/relations', { subject: 'user:told', relation: 'owner', object: 'thing:7' });
  await call('PUT', '/v1/admin/attributes', { principal: 'user:told', key: 'team', value: 'a' });
  await expect
    .poll(() => host.bus.slice(before).filter(({ event_type }) => event_type === 'platform:probe:policy:updated'))
    .toMatchObject([
      { env_id: ENV, payload: { service: 'probe', policy_set: null, kind: 'relations' } },
      { env_id: ENV, payload: { service: 'probe', policy_set: null, kind: 'attributes' } },
    ]);
  store.relations.length = 0;
  store.attributes.length = 0;
});

test('G-K-10 the registry is told in whose name every kind of row is written and removed, for its audit trail', async () => {
  const told = () => store.writers.splice(0);
  const asked = async (persona: Persona) => {
    const ask = (method: string, path: string, body?: object) => call(method, path, body, { persona });
    const { json: set } = await ask('POST', '/v1/admin/policy-sets', { name: 'signed', policies: FORBID });
    await ask('POST', '/v1/admin/relations', { subject: 'user:signed', relation: 'owner', object: 'thing:7' });
    await ask('PUT', '/v1/admin/attributes', { principal: 'user:signed', key: 'team', value: 'a' });
    expect((await ask('DELETE', `/v1/admin/policy-sets?id=${set['policy_set_id']}`)).status).toBe(204);
  };
  told();
  await asked(admin);
  expect(told()).toEqual(Array(4).fill({ updated_by: `user:${admin.id}` }));
  const delegated = as.delegated(ENV, 'probe:policy:admin');
  await asked(delegated);
  expect(told()).toEqual(Array(4).fill({ updated_by: `user:${delegated.id}`, act: 'bff-delegator' }));
  store.relations.length = 0;
  store.attributes.length = 0;
});

test('a set in shadow lets pass, enforced it counts at once, deleted it does not', async () => {
  const made = await call('POST', '/v1/admin/policy-sets', { name: 'mine', policies: FORBID });
  expect([made.status, made.headers['etag']]).toEqual([200, '"1"']);
  expect(await writes()).toBe(201);
  expect((await call('PUT', '/v1/admin/policy-sets', { name: 'mine', policies: FORBID, mode: 'enforced' })).json['version']).toBe(2);
  expect(await writes()).toBe(403);
  const { json } = await call('GET', '/v1/admin/decisions');
  expect((json['items'] as object[])[0]).toMatchObject({ effect: 'deny', action: 'probe:things:write', env_id: ENV });
  const dry = await call('POST', '/v1/admin/decisions', { principal: `user:${admin.id}`, action: 'platform:probe:things:write' });
  expect(dry.json).toMatchObject({ effect: 'deny' });
  expect(dry.json['trace']).toHaveLength(2);
  expect((await call('POST', '/v1/admin/policy-sets', { op: 'delete', policy_set_id: made.json['policy_set_id'] })).status).toBe(204);
  expect(await writes()).toBe(201);
});

test('G-K-04 rows of a kind come page by page, and a cursor of another list or none of ours is 400', async () => {
  for (const key of ['a', 'b', 'c']) await call('POST', '/v1/admin/attributes', { principal: 'user:paged', key, value: 'x' });
  const path = '/v1/admin/attributes';
  const first = await call('GET', `${path}?limit=2`);
  const second = await call('GET', `${path}?limit=2&cursor=${first.json['next_cursor']}`);
  const keys = [first, second].flatMap(({ json }) => (json['items'] as { key: string }[]).map(({ key }) => key));
  expect([keys.sort(), second.json['next_cursor']]).toEqual([['a', 'b', 'c'], null]);
  for (const other of [`${path}?cursor=zzz`, `/v1/admin/relations?cursor=${first.json['next_cursor']}`, '/v1/admin/decisions?cursor=zzz'])
    expect((await call('GET', other)).json).toMatchObject({ status: 400, code: 'invalid_cursor' });
  const decided = async (query: string) =>
    (await call('GET', `/v1/admin/decisions?${query}`)).json as { items: { decision_id: string }[]; next_cursor: string };
  const latest = await decided('limit=1');
  const [one, next] = [latest, await decided(`limit=1&cursor=${latest.next_cursor}`)].map(({ items }) => items[0]?.decision_id as string);
  expect((next as string) < (one as string)).toBe(true);
  store.attributes.length = 0;
});

test('relations and attributes are written, listed and refused by their own rules', async () => {
  expect((await call('POST', '/v1/admin/relations', { subject: 'user:1', relation: 'owner', object: 'thing:7' })).json).toMatchObject({
    env_id: ENV,
    service: 'probe',
    subject: 'user:1',
  });
  expect((await call('POST', '/v1/admin/attributes', { principal: 'user:1', key: 'team', value: ['a', 1, true] })).json).toMatchObject({
    key: 'team',
  });
  expect((await call('POST', '/v1/admin/relations', { subject: 'nobody', relation: 'owner', object: 'thing:7' })).json['code']).toBe(
    'validation_failed',
  );
  expect((await call('POST', '/v1/admin/attributes', { key: 'team' })).json['errors']).toEqual(
    expect.arrayContaining([expect.objectContaining({ pointer: '/principal' })]),
  );
  expect(((await call('GET', '/v1/admin/relations')).json['items'] as object[]).length).toBe(1);
  expect((await call('GET', '/v1/admin/attributes?id=none')).status).toBe(404);
  expect((await call('DELETE', '/v1/admin/policy-sets?id=none')).json).toMatchObject({ status: 404, code: 'policy_row_not_found' });
});

test('KRN-022 NTF-060 a policy event on the bus reloads the sets of a running service; other names of the family do not', async () => {
  expect(await writes()).toBe(201);
  const set = store.put({ env_id: ENV, mode: 'enforced', policies: FORBID });
  expect(await writes()).toBe(201);
  const event = { env_id: ENV, payload: { service: 'probe', policy_set: set, version: 1, mode: 'enforced', seeded: false } };
  await streams.settled(streams.push('policy', { event_type: 'lab:lending:policy:changed', ...event }));
  expect(await writes()).toBe(201);
  await streams.settled(streams.push('policy', { event_type: 'platform:sys:policy:updated', ...event }));
  expect(await writes()).toBe(403);
  store.sets.splice(store.sets.indexOf(set), 1);
  await streams.settled(streams.push('policy', { event_type: 'platform:sys:policy:updated', ...event }));
  expect(await writes()).toBe(201);
});

test('KRN-004 an event that was missed is healed by the poll after thirty seconds', async () => {
  const set = store.put({ env_id: ENV, mode: 'enforced', policies: FORBID });
  await host.clock.advance('29s');
  expect(await writes()).toBe(201);
  await host.clock.advance('1s');
  expect(await writes()).toBe(403);
  store.sets.splice(store.sets.indexOf(set), 1);
  await host.clock.advance('30s');
  expect(await writes()).toBe(201);
});

describe('an action that is known only at run time', () => {
  const act = async (body: object, more: object = {}) => {
    const { status, json } = await call('POST', '/v1/act', body, more);
    return { status, ...json };
  };
  const params = { shop_id: 'a shop', word: 'hello' };

  test('GWY-029 while nobody knows what is registered, it is 503 and to be tried again', async () => {
    registryAway = true;
    expect(await act({ action: 'sys:tell', params })).toMatchObject({ status: 503, code: 'not_ready' });
    registryAway = false;
  });

  test('GWY-029 is called by this service for a person who may, in the environment that is meant', async () => {
    expect(await act({ action: 'sys:tell', params, target: ENV })).toMatchObject({ status: 200, answer: { heard: true } });
    expect(told).toEqual([{ params: { shop_id: 'a shop' }, body: { word: 'hello' }, caller: 'probe', env: ENV }]);
  });

  test.each([
    ['that nobody registered is 404', { action: 'sys:burn', params }, 404, 'action_not_found'],
    ['that was registered by another service is 404', { action: 'bus:tell', params }, 404, 'action_not_found'],
    ['with a parameter of another type is 400', { action: 'sys:tell', params: { ...params, word: 1 } }, 400, 'malformed'],
    ['with a parameter too many is 400', { action: 'sys:tell', params: { ...params, more: 1 } }, 400, 'malformed'],
    ['that leaves its path is 400', { action: 'sys:tell', params: { ...params, shop_id: '..' } }, 400, 'malformed'],
    ['for what is no environment is 400', { action: 'sys:tell', params, target: 'prod' }, 400, 'malformed'],
  ])('%s, and nothing is sent', async (_, body, status, code) => {
    expect(await act(body)).toMatchObject({ status, code });
    expect(told).toHaveLength(1);
  });

  test('GWY-029 is refused to a person who may not do it now, or not there, or not by the token that was shown', async () => {
    const refused = { status: 403, code: 'policy_denied' };
    const reader = as.userIn(ENV, 'probe:things:read');
    expect(await act({ action: 'sys:tell', params }, { persona: reader })).toMatchObject(refused);
    const narrow = host.mint.token(admin, 'probe', { scope: 'probe:things:read', limited: true });
    expect(await act({ action: 'sys:tell', params }, { persona: undefined, token: narrow })).toMatchObject(refused);
    await call('POST', '/v1/admin/policy-sets', { name: 'closed', policies: FORBID, mode: 'enforced' });
    expect(await act({ action: 'sys:tell', params })).toMatchObject(refused);
    expect(told).toHaveLength(1);
  });
});
