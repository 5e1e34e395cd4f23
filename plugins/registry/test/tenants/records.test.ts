import { randomUUID } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVERYTHING, refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const ENV = '018f0000-0000-7000-8000-0000000000e1';
const OTHER = '018f0000-0000-7000-8000-0000000000e2';
const func = () => world.host.by(world.service('func-worker', 'audit:write', 'audit:read'));
const record = (action: string, more: object = {}, headers: Record<string, string> = {}) =>
  func().recordAudit({ body: { env_id: ENV, action, ...more }, headers } as never) as Promise<{ audit_id: string }>;

describe('audit ingest', () => {
  test("REG-058 REG-103 REG-139 REG-144 the service is the certificate's, never the body's, and the event is bound to the system environment", async () => {
    const { audit_id: id } = await record('run.started', { service: 'sys', details: { run: 1 }, correlation_id: 'c-1' });
    const [row] = await world.sql<
      object[]
    >`select service, env_id, action, actor, outcome, details, correlation_id from audit where audit_id = ${id}`;
    const stored = {
      service: 'func',
      env_id: ENV,
      action: 'run.started',
      actor: { kind: 'workload', id: 'func-worker' },
      outcome: 'success',
      details: { run: 1 },
      correlation_id: 'c-1',
    };
    expect(row).toEqual(stored);
    const told = await world.sql<
      object[]
    >`select env_id, stream_family, payload from outbox where event_type = 'platform:sys:audit:recorded' and payload->>'audit_id' = ${id}`;
    expect([...told]).toMatchObject([{ env_id: SYSTEM.envId, stream_family: 'audit', payload: stored }]);
  });

  test('REG-103 REG-117 people do not write it, whatever they may do', async () => {
    const body = JSON.stringify({ env_id: ENV, action: 'x' });
    expect(await world.host.fetch('/v1/audit', { method: 'POST', persona: as.user('audit:write', 'sys:sys:admin'), body })).toMatchObject({
      status: 403,
      json: { code: 'm2m_required' },
    });
    expect(await world.host.fetch('/v1/audit', { method: 'POST', persona: as.delegated(SYSTEM.envId, 'audit:write'), body })).toMatchObject(
      { status: 403, json: { code: 'm2m_required' } },
    );
    const unscoped = world.host.by(world.service('func-worker', 'audit:read'));
    expect(await refusal(unscoped.recordAudit({ body: { env_id: ENV, action: 'x' } }))).toEqual([403, 'policy_denied']);
  });

  test('G-SYS-13 a delivery repeated under its idempotency key is stored and told once', async () => {
    const key = randomUUID();
    const ids = [await record('once', {}, { 'idempotency-key': key }), await record('once', {}, { 'idempotency-key': key })].map(
      ({ audit_id }) => audit_id,
    );
    expect(ids[1]).toBe(ids[0]);
    const rows = await world.sql<
      object[]
    >`select 1 from audit where action = 'once' union all select 1 from outbox where event_type = 'platform:sys:audit:recorded'
      and payload->>'action' = 'once'`;
    expect(rows).toHaveLength(2);
  });
});

describe('audit listing', () => {
  test('REG-059 REG-101 it filters by service, action and environment', async () => {
    await record('filter.a');
    await record('filter.b', { env_id: OTHER });
    await world.host.by(world.service('till', 'audit:write')).recordAudit({ body: { env_id: ENV, action: 'filter.a' } });
    const by = world.host.by(world.admin());
    const ask = async (query: object) =>
      (await by.listAudit({ query })).items.map(({ service, action, env_id }) => [service, action, env_id]);
    expect(await ask({ action: 'filter.a' })).toEqual([
      ['till', 'filter.a', ENV],
      ['func', 'filter.a', ENV],
    ]);
    expect(await ask({ action: 'filter.a', service: 'func' })).toEqual([['func', 'filter.a', ENV]]);
    expect(await ask({ env_id: OTHER })).toEqual([['func', 'filter.b', OTHER]]);
    const unscoped = as.user('sys:sys:admin', ...EVERYTHING.filter(scope => scope !== 'audit:read'));
    expect(await refusal(world.host.by(unscoped).listAudit({ query: {} }))).toEqual([403, 'policy_denied']);
  });

  test('REG-101 REG-152 the keyset pages through rows of one instant, none twice and none missing', async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index++) made.push((await record('paged')).audit_id);
    const seen: string[] = [];
    let after: object = {};
    for (;;) {
      const { items, next } = await world.host.by(world.admin()).listAudit({ query: { action: 'paged', limit: 3, ...after } });
      seen.push(...items.map(({ audit_id }) => audit_id));
      if (!next) break;
      after = next;
    }
    expect(seen).toEqual(made.reverse());
    // Any id goes with any time: what follows is what is older than both together.
    const [newest] = await world.sql<{ ts: string }[]>`select ts from audit where audit_id = ${seen[0]}`;
    const from = async (ms: number, after_id: string) =>
      (
        await world.host
          .by(world.admin())
          .listAudit({ query: { action: 'paged', after_ts: new Date(Date.parse(newest?.ts as string) + ms).toISOString(), after_id } })
      ).items.length;
    expect(await from(1, '00000000-0000-0000-0000-000000000000')).toBe(7);
    expect(await from(0, 'ffffffff-ffff-4fff-8fff-ffffffffffff')).toBe(7);
    expect(await from(0, '00000000-0000-0000-0000-000000000000')).toBe(0);
    expect(await from(-1, 'ffffffff-ffff-4fff-8fff-ffffffffffff')).toBe(0);
    expect(await refusal(world.host.by(world.admin()).listAudit({ query: { after_ts: new Date(0).toISOString() } }))).toEqual([
      400,
      'keyset_incomplete',
    ]);
  });

  test('REG-102 whoever is no administrator sees the own environment, whatever is asked for', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    await record('seen.mine', { env_id: env.env_id });
    await record('seen.theirs', { env_id: OTHER });
    for (const persona of [as.delegated(env.env_id, 'audit:read'), as.userIn(env.env_id, ...EVERYTHING)]) {
      for (const query of [{}, { env_id: OTHER }]) {
        const { items } = await world.host.by(persona).listAudit({ query });
        expect(new Set(items.map(({ env_id }) => env_id))).toEqual(new Set([env.env_id]));
      }
    }
    const foreign = { ...world.service('till', 'audit:read'), vertical: 'retail' };
    await record('seen.shared', { env_id: SYSTEM.envId });
    // It has no environment of its own, and the system's is not its.
    for (const query of [{}, { env_id: OTHER }])
      expect(await refusal(world.host.by(foreign).listAudit({ query }))).toEqual([400, 'audit_env_required']);
  });
});

describe('the trail of the system environment', () => {
  test('F-05 REG-102 somebody who is no administrator of the platform reads the rows about the own organizations and environments, and no others', async () => {
    const [mine, theirs] = [await world.tenant(), await world.tenant()];
    for (const { org, owner } of [mine, theirs])
      await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: 'Renamed' } });
    await world.host.by(theirs.owner).createInvitation({ params: { org_id: theirs.org.org_id }, body: { email: 'guest@example.org' } });
    await record('about.nobody', { env_id: SYSTEM.envId });
    await record('about.env', { env_id: SYSTEM.envId, resource: { type: 'env', id: mine.env.env_id } });
    await record('about.escape', { env_id: SYSTEM.envId, details: { org_id: '\u0001' } });
    const guest = world.stranger();
    world.directory.groups(guest.id, `platform:env:${mine.env.env_id}:viewers`);
    const read = async (persona: Parameters<typeof world.host.by>[0], query: object = {}) =>
      (await world.host.by(persona).listAudit({ query })).items.map(({ action }) => action);
    expect(await read(mine.owner)).toEqual(['about.env', 'org.updated', 'org.created']);
    expect(await read(theirs.owner)).toEqual(['invitation.sent', 'org.updated', 'org.created']);
    expect(await read(guest)).toEqual(['about.env']);
    expect(await read(world.stranger())).toEqual([]);
    expect(await read(mine.owner, { action: 'org.created', service: 'sys' })).toEqual(['org.created']);
    expect(await read(world.admin(), { action: 'about.nobody' })).toEqual(['about.nobody']);
    const first = await world.host.by(mine.owner).listAudit({ query: { limit: 2 } });
    expect(first.items).toHaveLength(2);
    expect(await read(mine.owner, { limit: 2, ...first.next })).toEqual(['org.created']);
  });
});

describe('the trail itself', () => {
  test('REG-004 G-SYS-13 the database refuses to change or delete what was recorded', async () => {
    const { audit_id: id } = await record('kept');
    await expect(world.sql`update audit set action = 'forged' where audit_id = ${id}`).rejects.toThrow('append-only');
    await expect(world.sql`delete from audit where audit_id = ${id}`).rejects.toThrow('append-only');
    const rows = await world.sql<object[]>`select action from audit where audit_id = ${id}`;
    expect([...rows]).toEqual([{ action: 'kept' }]);
  });
});

describe('policy data', () => {
  const store = (service = 'func') => world.host.by(world.service(service, 'sys:policy:store'));
  const set = (name: string, more: object = {}) => ({
    body: { env_id: ENV, service: 'func', name, policies: 'permit(principal, action, resource);', updated_by: 'user:ada', ...more },
  });

  test('REG-005 REG-060 KRN-017 KRN-018 a tenant set starts in shadow at version 1, every write adds one, and is told whole', async () => {
    const first = await store().policyUpsertSet(set('guard', { mode: 'enforced' }));
    expect(first).toMatchObject({ env_id: ENV, service: 'func', origin: 'tenant', mode: 'shadow', version: 1 });
    const second = await store().policyUpsertSet(set('guard', { mode: 'enforced' }));
    expect(second).toMatchObject({ policy_set_id: first.policy_set_id, mode: 'enforced', version: 2 });
    expect(await store().policyUpsertSet(set('guard'))).toMatchObject({ mode: 'enforced', version: 3 });
    const own = (mode?: 'enforced') => store('sys').policyUpsertSet(set('guard', { service: 'sys', ...(mode ? { mode } : {}) }));
    for (const mode of ['enforced', 'enforced', undefined] as const) await own(mode);
    // Of the sets of another service that service tells itself (F-26).
    const told = await world.sql<
      { payload: object }[]
    >`select payload from outbox where event_type = 'platform:sys:policy:updated' and env_id = ${ENV} order by created_at, id`;
    expect(told.map(({ payload }) => payload)).toMatchObject([
      { version: 1, mode: 'shadow', seeded: false },
      { version: 2, mode: 'enforced', policy_set: { name: 'guard' } },
      { version: 3 },
    ]);
  });

  test('REG-060 the same name is another set in another environment', async () => {
    await store().policyUpsertSet(set('twin'));
    expect(await store().policyUpsertSet(set('twin', { env_id: OTHER }))).toMatchObject({ env_id: OTHER, version: 1 });
  });

  test('KRN-016 a row of the platform is neither overwritten nor removed', async () => {
    const { sets } = await store().policySnapshot({ query: { env_id: SYSTEM.envId, service: 'func' } });
    const mirror = sets.find(({ origin }) => origin === 'platform');
    expect(mirror).toMatchObject({ service: '*', name: 'scope-mirror', mode: 'enforced' });
    const id = mirror?.policy_set_id as string;
    for (const attempt of [set('scope-mirror', { env_id: SYSTEM.envId }), set('mine', { env_id: SYSTEM.envId, policy_set_id: id })])
      expect(await refusal(store().policyUpsertSet(attempt))).toEqual([409, 'platform_origin_row']);
    expect(
      await refusal(
        store().policyRemove({ body: { env_id: SYSTEM.envId, service: 'func', kind: 'policy-sets', id, updated_by: 'user:ada' } }),
      ),
    ).toEqual([409, 'platform_origin_row']);
    const after = await store().policySnapshot({ query: { env_id: SYSTEM.envId, service: 'func' } });
    expect(after.sets).toEqual(sets);
  });

  test('REG-061 relations and attributes are kept per environment and service, once each', async () => {
    const row = { env_id: ENV, service: 'func', subject: 'user:ada', relation: 'owner', object: 'run:1' };
    const [first, again] = [await store().policyUpsertRelation({ body: row }), await store().policyUpsertRelation({ body: row })];
    expect(again.relation_id).toBe(first.relation_id);
    const attribute = { env_id: ENV, service: 'func', principal: 'user:ada', key: 'level' };
    await store().policyUpsertAttribute({ body: { ...attribute, value: 1 } });
    await store().policyUpsertAttribute({ body: { ...attribute, value: ['a', 'b'] } });
    const snapshot = await store().policySnapshot({ query: { env_id: ENV, service: 'func' } });
    expect([snapshot.relations, snapshot.attributes]).toMatchObject([[row], [{ ...attribute, value: ['a', 'b'] }]]);
    for (const [service, env_id] of [
      ['func', OTHER],
      ['sys', ENV],
    ] as const)
      expect(await store(service).policySnapshot({ query: { env_id, service } })).toMatchObject({ relations: [], attributes: [] });
    const put = (values: Record<string, string | number | null>) =>
      store().policyPutAttributes({ body: { env_id: ENV, service: 'func', principal: 'user:ada', values } });
    expect(await put({ level: null, floor: 3, wing: 'east' })).toEqual({
      before: { level: ['a', 'b'] },
      after: { floor: 3, wing: 'east' },
    });
    expect(await refusal(put({ floor: null, Wing: null }))).toEqual([400, 'validation_failed']);
    expect(await put({ wing: 'west' })).toEqual({ before: { floor: 3, wing: 'east' }, after: { floor: 3, wing: 'west' } });
    await store().policyRemove({
      body: { env_id: ENV, service: 'func', kind: 'relations', id: first.relation_id, updated_by: 'user:ada' },
    });
    expect((await store().policySnapshot({ query: { env_id: ENV, service: 'func' } })).relations).toEqual([]);
    expect(
      await refusal(
        store().policyRemove({ body: { env_id: ENV, service: 'func', kind: 'relations', id: first.relation_id, updated_by: 'user:ada' } }),
      ),
    ).toEqual([404, 'policy_row_not_found']);
  });

  test('REG-004 REG-058 what a service writes is recorded under its name, in whose name it says, and with the change or not at all', async () => {
    const row = { env_id: ENV, service: 'func', principal: 'workload:func', updated_by: 'user:ada', act: 'bff' };
    const put = (values: Record<string, string | number | null>) => store().policyPutAttributes({ body: { ...row, values } });
    await put({ traced_kept: 1, traced_gone: 'x' });
    await put({ traced_kept: 1, traced_gone: null, traced_new: 2 });
    const { updated_by: _, act: __, ...unsigned } = row;
    await store().policyPutAttributes({ body: { ...unsigned, values: { traced_new: 3 } } });
    const recorded = async () =>
      (await world.host.by(world.admin()).listAudit({ query: { env_id: ENV, service: 'func' } })).items
        .map(({ action, actor, details = {} }) => [action, String((details as { key?: string }).key), actor] as const)
        .filter(([, key]) => key.startsWith('traced_'))
        .reverse();
    const ada = { kind: 'user', id: 'ada', act: 'bff' };
    expect(await recorded()).toEqual([
      ['policy.attribute.set', 'traced_gone', ada],
      ['policy.attribute.set', 'traced_kept', ada],
      ['policy.attribute.removed', 'traced_gone', ada],
      ['policy.attribute.set', 'traced_new', ada],
      ['policy.attribute.set', 'traced_new', { kind: 'workload', id: 'func' }],
    ]);
    expect(await world.losingCommits('audit', () => put({ traced_lost: 1 }))).toBe('lost');
    const { attributes } = await store().policySnapshot({ query: { env_id: ENV, service: 'func' } });
    expect(attributes.map(({ key }) => key)).not.toContain('traced_lost');
  });

  test('REG-005 a service keeps and sees its own policies only; people and unbound tokens none', async () => {
    const foreign = store('till');
    const attempts = [
      () => foreign.policySnapshot({ query: { env_id: ENV, service: 'func' } }),
      () => foreign.policyUpsertSet(set('x')),
      () => foreign.policyUpsertRelation({ body: { env_id: ENV, service: 'func', subject: 'a', relation: 'b', object: 'c' } }),
      () => foreign.policyUpsertAttribute({ body: { env_id: ENV, service: 'func', principal: 'a', key: 'b', value: 1 } }),
      () => foreign.policyPutAttributes({ body: { env_id: ENV, service: 'func', principal: 'a', values: { b: 1 } } }),
      () => foreign.policyRemove({ body: { env_id: ENV, service: 'func', kind: 'relations', id: 'x', updated_by: 'x' } }),
    ];
    for (const attempt of attempts) expect(await refusal(attempt())).toEqual([403, 'foreign_policy']);
    const path = `/v1/internal/policy?env_id=${ENV}&service=func`;
    expect((await world.host.fetch(path, { persona: as.user('sys:policy:store') })).json['code']).toBe('m2m_required');
    expect((await world.host.fetch(path, { persona: world.service('func', 'sys:policy:store') })).json['code']).toBe(
      'certificate_binding_required',
    );
  });
});

test('G-K-04 tenants of one millisecond come once each, page after page', async () => {
  const { org } = await world.org();
  const made = { orgs: Array.from({ length: 7 }, () => randomUUID()), envs: Array.from({ length: 7 }, () => randomUUID()) };
  const at = (index: number) => `2020-01-01T00:00:00.000${100 + index}Z`;
  for (const [index, id] of made.orgs.entries())
    await world.sql`insert into orgs (org_id, slug, display_name, org_domain, created_at)
      values (${id}, ${`same-${id.slice(0, 8)}`}, 'Same', ${`${id}.example`}, ${at(index)}::text::timestamptz)`;
  for (const [index, id] of made.envs.entries())
    await world.sql`insert into envs (env_id, org_id, slug, display_name, created_at)
      values (${id}, ${org.org_id}, ${`same-${index}`}, 'Same', ${at(index)}::text::timestamptz)`;
  const by = world.host.by(world.admin());
  const seen = { orgs: [] as string[], envs: [] as string[] };
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await by.listOrgs({ query: { limit: 3, ...(cursor ? { cursor } : {}) } });
    seen.orgs.push(...page.items.map(({ org_id }) => org_id));
    cursor = page.next_cursor ?? undefined;
  }
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await by.listEnvs({ query: { org_id: org.org_id, limit: 3, ...(cursor ? { cursor } : {}) } });
    seen.envs.push(...page.items.map(({ env_id }) => env_id));
    cursor = page.next_cursor ?? undefined;
  }
  expect(seen.orgs.filter(id => (made.orgs as string[]).includes(id)).sort()).toEqual([...made.orgs].sort());
  expect(seen.envs.filter(id => (made.envs as string[]).includes(id)).sort()).toEqual([...made.envs].sort());
});
