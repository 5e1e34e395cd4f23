import { as } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusal, World } from '../fixtures/world.ts';

const ENV = '018f0000-0000-7000-8000-00000000e001';
const people = [
  as.userIn(ENV, 'auth:users:read', 'sys:read'),
  as.userIn(ENV, 'auth:users:read', 'sys:read'),
  as.userIn(ENV, 'sys:read'),
].sort((left, right) => (left.id < right.id ? -1 : 1));
const [ada = '', bea = ''] = people.filter(({ scopes }) => scopes.includes('auth:users:read')).map(({ id }) => id);
const cid = people.find(({ scopes }) => !scopes.includes('auth:users:read'))?.id ?? '';
const policyAdmin = as.userIn(ENV, 'sys:policy:read', 'sys:policy:admin');
let world: World;
beforeAll(async () => {
  world = await World.start();
  // As the registry says of an environment that takes changes.
  await world.kv.call('SET', `env-state:{${ENV}}`, 'active');
  for (const person of people) {
    world.host.by(person);
    world.directory.holdings.set(person.id, person.scopes);
  }
});
afterAll(() => world[Symbol.asyncDispose]());

const call = async (path: string, init: { method?: string; body?: object } = {}) => {
  const query = `${path.includes('?') ? '&' : '?'}target_env_id=${ENV}`;
  return world.host.fetch(`${path}${query}`, {
    method: init.method ?? 'GET',
    persona: policyAdmin,
    ...(init.body ? { body: JSON.stringify(init.body) } : {}),
  });
};
const forbidBea = `forbid(principal == User::"${bea}", action == Action::"auth:users:read", resource);`;

test('REG-005 REG-106 the registry administers the policies of every service: written for one, listed for it, and for no other', async () => {
  const written = await call('/v1/admin/policy-sets?service=auth', { method: 'POST', body: { name: 'departments', policies: forbidBea } });
  expect([written.status, written.json]).toMatchObject([
    200,
    { env_id: ENV, service: 'auth', origin: 'tenant', mode: 'shadow', version: 1 },
  ]);
  const names = async (service: string) =>
    ((await call(`/v1/admin/policy-sets?service=${service}`)).json['items'] as { name: string }[]).map(({ name }) => name);
  expect([await names('auth'), await names('sys')]).toEqual([['departments'], []]);
  expect((await call('/v1/admin/policy-sets?service=nosuch')).json).toMatchObject({
    status: 400,
    code: 'validation_failed',
    errors: [{ pointer: '/service' }],
  });
  const wrong = await call('/v1/admin/policy-sets?service=auth', {
    method: 'POST',
    body: { name: 'wrong', policies: 'forbid(principal, action == Action::"sys:org:admin", resource);' },
  });
  expect([wrong.status, wrong.json['code']]).toEqual([422, 'policy_invalid']);
});

test('REG-106 relations and attributes are administered the same way, page by page', async () => {
  for (const key of ['dept', 'grade', 'site'])
    expect(
      (await call('/v1/admin/attributes?service=auth', { method: 'POST', body: { principal: `user:${ada}`, key, value: 'x' } })).status,
    ).toBe(200);
  expect(
    (
      await call('/v1/admin/relations?service=auth', {
        method: 'POST',
        body: { subject: `user:${ada}`, relation: 'owner', object: 'loan:7' },
      })
    ).status,
  ).toBe(200);
  const owners = (await call('/v1/admin/relations?service=auth')).json['items'];
  expect(owners).toMatchObject([{ env_id: ENV, service: 'auth', subject: `user:${ada}`, relation: 'owner', object: 'loan:7' }]);
  const keys: string[] = [];
  for (let cursor = ''; ; ) {
    const { json } = await call(`/v1/admin/attributes?service=auth&limit=2${cursor ? `&cursor=${cursor}` : ''}`);
    keys.push(...(json['items'] as { key: string }[]).map(({ key }) => key));
    if (!json['next_cursor']) break;
    cursor = json['next_cursor'] as string;
  }
  expect(keys.sort()).toEqual(['dept', 'grade', 'site']);
});

test('who can do it: those who hold it, each as the policies in force decide, a page at a time', async () => {
  const by = world.host.by(policyAdmin);
  const ask = async () => {
    const found: [string, string][] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await by.whoCan({ query: { action: 'auth:users:read', limit: 1, ...(cursor ? { cursor } : {}) }, targetEnvId: ENV });
      found.push(...page.items.map(({ user_id, effect }) => [user_id, effect] as [string, string]));
      if (!page.next_cursor) return found;
      cursor = page.next_cursor;
    }
  };
  expect(await ask()).toEqual([
    [ada, 'permit'],
    [bea, 'permit'],
  ]);
  expect(
    (
      await call('/v1/admin/policy-sets?service=auth', {
        method: 'POST',
        body: { name: 'departments', policies: forbidBea, mode: 'enforced' },
      })
    ).status,
  ).toBe(200);
  expect(await ask()).toEqual([
    [ada, 'permit'],
    [bea, 'deny'],
  ]);
  expect((await by.whoCan({ query: { action: 'auth:users:read' }, targetEnvId: ENV })).items[1]?.why).toContain('enforced set departments');
  expect(await refusal(by.whoCan({ query: { action: 'auth:no:such' }, targetEnvId: ENV }))).toEqual([400, 'unknown_action']);
  expect(await by.whoCan({ query: {}, targetEnvId: ENV })).toEqual({ items: [], next_cursor: null });
});

test('what somebody can do: everything they hold, by service, decided', async () => {
  const by = world.host.by(policyAdmin);
  const of = async (principal: string, limit = 50) => {
    const found: [string, string, string][] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await by.whatCan({ query: { principal, limit, ...(cursor ? { cursor } : {}) }, targetEnvId: ENV });
      found.push(...page.items.map(({ action, service, effect }) => [action, service, effect] as [string, string, string]));
      if (!page.next_cursor) return found;
      cursor = page.next_cursor;
    }
  };
  for (const limit of [1, 50])
    expect(await of(`user:${bea}`, limit)).toEqual([
      ['auth:users:read', 'auth', 'deny'],
      ['sys:read', 'sys', 'permit'],
    ]);
  expect(await of(`user:${cid}`)).toEqual([['sys:read', 'sys', 'permit']]);
});

test('the dry run explains, for any service, and leaves no trace', async () => {
  const ask = (principal: string) =>
    call('/v1/admin/decisions?service=auth', { method: 'POST', body: { principal, action: 'auth:users:read' } });
  const denied = (await ask(`user:${bea}`)).json as { effect: string; trace: string[] };
  expect([denied.effect, denied.trace]).toEqual([
    'deny',
    [expect.stringContaining('scope-mirror: permit'), expect.stringContaining('enforced set departments v2: deny')],
  ]);
  expect((await ask(`user:${ada}`)).json).toMatchObject({ effect: 'permit', service: 'auth' });
  expect((await call('/v1/admin/decisions')).json['items']).toEqual([]);
});

test('an outage of identity is never an empty list', async () => {
  world.directory.down.add('scopeHolders');
  const by = world.host.by(policyAdmin);
  expect(await refusal(by.whoCan({ query: { action: 'auth:users:read' }, targetEnvId: ENV }))).toEqual([503, 'identity_unavailable']);
  world.directory.down.clear();
});

test('REG-004 G-K-10 every change of policies is in the audit trail: who, where, what it was and what it became, and no value', async () => {
  const user = { kind: 'user', id: policyAdmin.id };
  const write = async (kind: string, body: object) => (await call(`/v1/admin/${kind}?service=auth`, { method: 'POST', body })).json;
  const remove = (kind: string, id: unknown) => call(`/v1/admin/${kind}?service=auth&id=${id}`, { method: 'DELETE' });
  const permit = `permit(principal == User::"${ada}", action == Action::"auth:users:read", resource);`;

  const { policy_set_id: set } = await write('policy-sets', { name: 'traced', policies: forbidBea });
  await write('policy-sets', { name: 'traced', policies: permit, mode: 'enforced' });
  await remove('policy-sets', set);
  const held = { subject: `user:${ada}`, relation: 'auditor', object: 'loan:8' };
  const { relation_id: relation } = await write('relations', held);
  await write('relations', held);
  await remove('relations', relation);
  const named = { principal: `user:${ada}`, key: 'birthplace' };
  const { attribute_id: attribute } = await write('attributes', { ...named, value: 'Paris' });
  await write('attributes', { ...named, value: 'Paris' });
  await write('attributes', { ...named, value: ['Rome', 'Oslo'] });
  await remove('attributes', attribute);

  const admin = world.host.by(world.admin());
  const { items } = await admin.listAudit({ query: { env_id: ENV } });
  const about = [set, relation, attribute].map(String);
  const entries = items.filter(({ resource }) => resource && about.includes(resource.id)).reverse();
  expect(JSON.stringify(entries)).not.toMatch(/Paris|Rome|Oslo|permit\(|forbid\(/);
  for (const entry of entries) expect(entry).toMatchObject({ service: 'sys', env_id: ENV, actor: user, details: { service: 'auth' } });
  const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
  const first = { version: 1, mode: 'shadow', name: 'traced', length: forbidBea.length, digest };
  const second = { version: 2, mode: 'enforced', name: 'traced', length: permit.length, digest };
  expect(entries.map(({ action, resource, details }) => [action, resource?.type, details])).toEqual([
    ['policy.set.created', 'policy_set', { service: 'auth', to: first }],
    ['policy.set.replaced', 'policy_set', { service: 'auth', from: first, to: second }],
    ['policy.set.removed', 'policy_set', { service: 'auth', from: second }],
    ['policy.relation.added', 'policy_relation', { service: 'auth', ...held }],
    ['policy.relation.removed', 'policy_relation', { service: 'auth', ...held }],
    ['policy.attribute.set', 'policy_attribute', { service: 'auth', ...named, to: digest }],
    ['policy.attribute.set', 'policy_attribute', { service: 'auth', ...named, from: digest, to: digest }],
    ['policy.attribute.removed', 'policy_attribute', { service: 'auth', ...named, from: digest }],
  ]);
});

test('REG-106 whoever may merely read policies writes none, of no kind', async () => {
  const reader = as.userIn(ENV, 'sys:policy:read');
  for (const kind of ['policy-sets', 'relations', 'attributes']) {
    const path = `/v1/admin/${kind}?service=auth&target_env_id=${ENV}`;
    expect([kind, (await world.host.fetch(path, { persona: reader })).status]).toEqual([kind, 200]);
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect([
        kind,
        method,
        (
          await world.host.fetch(`${path}&id=018f0000-0000-7000-8000-00000000dead`, {
            method,
            persona: reader,
            ...(method === 'DELETE' ? {} : { body: '{}' }),
          })
        ).json['code'],
      ]).toEqual([kind, method, 'policy_denied']);
    expect((await world.host.fetch(path, { persona: as.userIn(ENV, 'sys:read') })).json['code']).toBe('policy_denied');
  }
});
