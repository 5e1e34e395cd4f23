import type { Persona } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusal, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const NOWHERE = '018f0000-0000-7000-8000-00000000dead';
const by = (persona: Persona) => world.host.by(persona);
const at = (env: { env_id: string }, app: { app_instance_id: string }) => ({ env_id: env.env_id, app_instance_id: app.app_instance_id });
const heard = async (event: string, envId: string) => (await world.written(event, envId)).map(({ payload }) => payload);
const audited = async (envId: string) =>
  (await world.sql<{ action: string }[]>`select action from audit where env_id = ${envId} order by audit_id`).map(({ action }) => action);

describe('app instances', () => {
  test('REG-001 REG-049 REG-050 REG-084 REG-130 REG-143 one is made with everything a sign-in and a proxy need, and is told with ids only', async () => {
    const { org, owner, env } = await world.tenant();
    const settings = {
      oauth_client_id: `client-${org.slug}`,
      feature_flags: { 'beta.search': true },
      scope_whitelist: ['sys:read'],
      service_whitelist: ['sys'],
      auth_mode: 'self_service',
      auth_group: 'platform:crm:users',
      allow_signup: true,
    } as const;
    const answer = await world.host.fetch(`/v1/env/${env.env_id}/applications`, {
      method: 'POST',
      persona: world.admin(),
      body: JSON.stringify({ app_id: 'crm', slug: 'crm', name: 'Customers', ...settings }),
    });
    const hostname = `crm.prod.${org.org_domain}`;
    const made = {
      env_id: env.env_id,
      org_id: org.org_id,
      app_id: 'crm',
      slug: 'crm',
      name: 'Customers',
      hostname,
      gateway_hostname: `bff.${hostname}`,
      custom_domain: null,
      status: 'active',
      version: 1,
      ...settings,
    };
    expect(answer).toMatchObject({
      status: 201,
      json: made,
      headers: { location: `/v1/env/${env.env_id}/applications/${String(answer.json['app_instance_id'])}`, etag: '"1"' },
    });
    const app = answer.json as { app_instance_id: string };
    expect(Object.keys(app).toSorted()).toEqual(['app_instance_id', ...Object.keys(made)].toSorted());
    expect(await by(owner).getApplication({ params: at(env, app) })).toEqual(app);
    expect(await heard('platform:sys:app:created', env.env_id)).toEqual([
      { env_id: env.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' },
    ]);
    expect(await audited(env.env_id)).toContain('app.created');
  });

  test('REG-084 REG-131 REG-132 a change is told, a repeated archive is not, and a delete archives', async () => {
    const { owner, env } = await world.tenant();
    const [first, second] = [await world.app(owner, env.env_id), await world.app(owner, env.env_id)];
    expect(
      await by(owner).updateApplication({ params: at(env, first), body: { name: 'Renamed', feature_flags: { dark: true } } }),
    ).toMatchObject({
      name: 'Renamed',
      feature_flags: { dark: true },
      version: 2,
    });
    const ids = (app: typeof first) => ({ env_id: env.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' });
    expect(await heard('platform:sys:app:updated', env.env_id)).toEqual([ids(first)]);
    for (let turn = 0; turn < 2; turn++)
      expect(await by(owner).archiveApplication({ params: at(env, first) })).toMatchObject({ status: 'archived' });
    expect(
      (await world.host.fetch(`/v1/env/${env.env_id}/applications/${second.app_instance_id}`, { method: 'DELETE', persona: world.admin() }))
        .status,
    ).toBe(204);
    expect(await heard('platform:sys:app:archived', env.env_id)).toEqual([ids(first), ids(second)]);
    expect(await refusal(by(owner).updateApplication({ params: at(env, first), body: { name: 'Again' } }))).toEqual([
      409,
      'record_archived',
    ]);
    expect(await refusal(world.resolve(first.hostname))).toEqual([404, 'hostname_unresolved']);
    expect(await audited(env.env_id)).toEqual(expect.arrayContaining(['app.updated', 'app.archived']));
  });

  test('REG-084 pages hold every instance once, newest first', async () => {
    const { owner, env } = await world.tenant();
    const made: string[] = [];
    for (let turn = 0; turn < 5; turn++) made.unshift((await world.app(owner, env.env_id)).app_instance_id);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { items: { app_instance_id: string }[]; next_cursor: string | null } = await by(owner).listApplications({
        params: { env_id: env.env_id },
        query: { limit: 2, ...(cursor ? { cursor } : {}) },
      });
      seen.push(...page.items.map(({ app_instance_id }) => app_instance_id));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(made);
    expect(await refusal(by(owner).listApplications({ params: { env_id: env.env_id }, query: { cursor: '!' } }))).toEqual([
      400,
      'invalid_cursor',
    ]);
  });

  test('the page of applications is sorted by name or slug, either way, page after page', async () => {
    const { owner, env } = await world.tenant();
    const made: { name: string; slug: string; app_instance_id: string }[] = [];
    for (const [name, slug] of [
      ['Same', 'dd-one'],
      ['Zebra', 'aa-one'],
      ['Same', 'cc-one'],
      ['Apple', 'bb-one'],
      ['Same', 'ee-one'],
    ] as const)
      made.push(await world.app(owner, env.env_id, { name, slug }));
    const here = by({ ...owner, envId: env.env_id });
    const read = (query: object) => here.applicationRows({ targetEnvId: env.env_id, query: { limit: 2, ...query } });
    const sorted = async (sort: 'name' | 'slug', order: 'asc' | 'desc') => {
      const seen: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await read({ sort, order, ...(cursor ? { cursor } : {}) });
        seen.push(...page.items.map(({ slug }) => slug));
        cursor = page.next_cursor;
      }
      return seen;
    };
    const slugs = ['aa-one', 'bb-one', 'cc-one', 'dd-one', 'ee-one'];
    expect([await sorted('slug', 'asc'), await sorted('slug', 'desc')]).toEqual([slugs, slugs.toReversed()]);
    // Three of one name, and a page ends between them: each comes once, in the order of their ids.
    const same = made.filter(({ name }) => name === 'Same').toSorted((a, b) => (a.app_instance_id < b.app_instance_id ? -1 : 1));
    const names = ['bb-one', ...same.map(({ slug }) => slug), 'aa-one'];
    expect([await sorted('name', 'asc'), await sorted('name', 'desc')]).toEqual([names, names.toReversed()]);
    const { next_cursor: cursor } = await read({ sort: 'name' });
    expect(await refusal(read({ sort: 'name', order: 'desc', cursor }))).toEqual([400, 'invalid_cursor']);
    expect(await refusal(read({ sort: 'status' }))).toEqual([400, 'validation_failed']);
  });

  test('REG-084 REG-085 REG-086 a stranger reaches none of it; reading takes sys:read, writing sys:app:admin, and neither more', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const stranger = by(world.stranger());
    const params = at(env, app);
    for (const call of [
      () => stranger.listApplications({ params }),
      () => stranger.getApplication({ params }),
      () => stranger.createApplication({ params, body: { app_id: 'x', slug: 'mine', name: 'X', auth_mode: 'open' } }),
      () => stranger.updateApplication({ params, body: { name: 'X' } }),
      () => stranger.archiveApplication({ params }),
      () => stranger.putCustomDomain({ params, body: { fqdn: 'x.example' } }),
      () => stranger.verifyCustomDomain({ params }),
      () => stranger.createBinding({ params, body: { app_id: 'x', slug: 'mine' } }),
      () => stranger.listBindings({ params }),
    ])
      expect(await refusal(call())).toEqual([403, 'not_org_member']);
    // What each of the two gates opens, one after the other: a read undoes nothing, and the writes are in the order of a life.
    const [reader, writer] = [by({ ...owner, scopes: ['sys:read'] }), by({ ...owner, scopes: ['sys:app:admin'] })];
    const { binding_id } = await by(owner).createBinding({ params, body: { app_id: 'x', slug: 'first' } });
    await by(owner).putCustomDomain({ params, body: { fqdn: `${app.app_instance_id}.example` } });
    const bound = { ...params, binding_id };
    type Caller = typeof reader;
    const reads = [
      (who: Caller) => who.listApplications({ params }),
      (who: Caller) => who.getApplication({ params }),
      (who: Caller) => who.listBindings({ params }),
      (who: Caller) => who.getBinding({ params: bound }),
      (who: Caller) => who.getCustomDomain({ params }),
    ];
    const writes = [
      (who: Caller) => who.createApplication({ params, body: { app_id: 'x', slug: 'mine', name: 'X', auth_mode: 'open' } }),
      (who: Caller) => who.updateApplication({ params, body: { name: 'X' } }),
      (who: Caller) => who.createBinding({ params, body: { app_id: 'x', slug: 'second' } }),
      (who: Caller) => who.putCustomDomain({ params, body: { fqdn: `other.${app.app_instance_id}.example` } }),
      (who: Caller) => who.deleteCustomDomain({ params }),
      (who: Caller) => who.deleteBinding({ params: bound }),
      (who: Caller) => who.archiveApplication({ params }),
    ];
    const outcomes = async (calls: typeof reads | typeof writes, who: Caller) => {
      const found: [number, string][] = [];
      for (const call of calls) found.push(await refusal(call(who)));
      return found;
    };
    const denied = [403, 'policy_denied'];
    expect(await outcomes(reads, writer)).toEqual(reads.map(() => denied));
    expect(await outcomes(reads, reader)).toEqual(reads.map(() => [200, 'answered']));
    expect(await outcomes(writes, reader)).toEqual(writes.map(() => denied));
    expect(await outcomes(writes, writer)).toEqual(writes.map(() => [200, 'answered']));
  });

  test('REG-084 what is not there, or in another environment, is 404; what is no id too', async () => {
    const [{ owner, env }, other] = [await world.tenant(), await world.tenant()];
    const foreign = await world.app(other.owner, other.env.env_id);
    for (const id of [NOWHERE, foreign.app_instance_id])
      expect(await refusal(by(owner).getApplication({ params: { env_id: env.env_id, app_instance_id: id } }))).toEqual([
        404,
        'app_instance_not_found',
      ]);
    for (const params of [{ env_id: 'nonsense' }, { env_id: env.env_id, app_instance_id: 'nonsense' }])
      expect(await refusal(by(world.admin()).getApplication({ params: { app_instance_id: NOWHERE, ...params } }))).toEqual([
        400,
        'validation_failed',
      ]);
    expect(await refusal(by(world.admin()).listApplications({ params: { env_id: NOWHERE } }))).toEqual([404, 'env_not_found']);
  });

  test('F-28 H-09 scopes, services and flags that nobody knows are refused by place, and nothing is written', async () => {
    const { owner, env } = await world.tenant();
    const body = {
      app_id: 'crm',
      slug: 'crm',
      name: 'X',
      auth_mode: 'open',
      scope_whitelist: ['sys:read', 'sys:raed'],
      service_whitelist: ['syss'],
      feature_flags: { 'Bad Flag': true },
    };
    const answer = await world.host.fetch(`/v1/env/${env.env_id}/applications`, {
      method: 'POST',
      persona: world.admin(),
      body: JSON.stringify(body),
    });
    expect(answer).toMatchObject({
      status: 400,
      json: {
        code: 'whitelist_invalid',
        errors: [
          { pointer: '/scope_whitelist/1', code: 'unknown_scope' },
          { pointer: '/service_whitelist/0', code: 'unknown_service' },
          { pointer: '/feature_flags', code: 'feature_flag_invalid' },
        ],
      },
    });
    expect((await by(owner).listApplications({ params: { env_id: env.env_id } })).items).toEqual([]);
    const app = await world.app(owner, env.env_id);
    expect(await refusal(by(owner).updateApplication({ params: at(env, app), body: { scope_whitelist: ['nope:read'] } }))).toEqual([
      400,
      'whitelist_invalid',
    ]);
  });

  test('REG-050 a gate names its group, a slug and an app do not change, an OAuth client serves one', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { oauth_client_id: `c-${org.slug}` });
    const update = (body: object) => refusal(by(owner).updateApplication({ params: at(env, app), body }));
    expect(
      await refusal(by(owner).createApplication({ params: { env_id: env.env_id }, body: { app_id: 'x', slug: 'gated', name: 'X' } })),
    ).toEqual([400, 'auth_group_required']);
    expect(await update({ auth_mode: 'group' })).toEqual([400, 'auth_group_required']);
    expect(await update({ slug: 'other' })).toEqual([400, 'immutable_field']);
    expect(await update({ app_id: 'other' })).toEqual([400, 'immutable_field']);
    expect(await refusal(world.app(owner, env.env_id, { oauth_client_id: `c-${org.slug}` }))).toEqual([409, 'oauth_client_taken']);
  });

  test('G-K-03 If-Match of another version changes nothing', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const put = (version: string, name: string) =>
      world.host.fetch(`/v1/env/${env.env_id}/applications/${app.app_instance_id}`, {
        method: 'PUT',
        persona: world.admin(),
        headers: { 'if-match': version },
        body: JSON.stringify({ name }),
      });
    expect(await put('"7"', 'Wrong')).toMatchObject({ status: 412, json: { code: 'precondition_failed' } });
    expect(await put('"1"', 'Right')).toMatchObject({ status: 200, json: { name: 'Right', version: 2 } });
    const one = `/v1/env/${env.env_id}/applications/${app.app_instance_id}`;
    const row = `/v1/admin/applications/${app.app_instance_id}/archive?target_env_id=${env.env_id}`;
    const end = (method: string, path: string, version: string) =>
      world.host.fetch(path, { method, persona: world.admin(), headers: { 'if-match': version } });
    for (const [method, path] of [['DELETE', one] as const, ['POST', `${one}/archive`] as const, ['POST', row] as const])
      expect(await end(method, path, '"1"')).toMatchObject({ status: 412, headers: { etag: '"2"' } });
    expect(await end('POST', row, '"2"')).toMatchObject({ status: 200, json: { status: 'archived', version: 3 } });
    expect((await end('POST', row, '"2"')).status).toBe(412);
  });

  test('G-SYS-02 nothing changes in what is suspended or archived', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const params = at(env, app);
    const refusals = async () => [
      await refusal(world.app(owner, env.env_id)),
      await refusal(by(owner).updateApplication({ params, body: { name: 'X' } })),
      await refusal(by(owner).archiveApplication({ params })),
      await refusal(by(owner).putCustomDomain({ params, body: { fqdn: 'x.example' } })),
      await refusal(by(owner).createBinding({ params, body: { app_id: 'x', slug: 'mine' } })),
      await refusal(by(owner).updateServices({ params, body: { services: [{ service: 'sys', enabled: true }] } })),
      await refusal(by(owner).putEnvBranding({ params: { id: env.env_id }, body: {} })),
    ];
    const set = (status: 'active' | 'suspended') => by(world.admin()).updateEnv({ params, body: { status } });
    const setOrg = (status: 'active' | 'suspended') => by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status } });
    await set('suspended');
    expect(await refusals()).toEqual(Array(7).fill([409, 'env_suspended']));
    await set('active');
    await setOrg('suspended');
    expect(await refusals()).toEqual(Array(7).fill([409, 'org_suspended']));
    expect(await by(owner).getApplication({ params })).toMatchObject({ status: 'active' });
    await setOrg('active');
    await by(owner).archiveEnv({ params });
    expect(await refusals()).toEqual(Array(7).fill([409, 'record_archived']));
  });

  test('the applications page of a target environment lists, verifies and archives', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const persona = world.admin();
    const page = (path: string, method = 'GET') =>
      world.host.fetch(`/v1/admin/applications${path}?target_env_id=${env.env_id}`, { persona, method });
    expect(await page('')).toMatchObject({ status: 200, json: { items: [{ app_instance_id: app.app_instance_id }] } });
    expect(await world.host.fetch('/v1/admin/applications', { persona })).toMatchObject({
      status: 400,
      json: { code: 'target_env_required' },
    });
    expect(await world.host.fetch('/v1/admin/ui/applications', { persona })).toMatchObject({
      status: 200,
      json: { page: 'applications', scope: 'env' },
    });
    expect(await page(`/${app.app_instance_id}/verifyApplicationRow`, 'POST')).toMatchObject({
      status: 404,
      json: { code: 'custom_domain_not_found' },
    });
    expect(await page(`/${app.app_instance_id}/archiveApplicationRow`, 'POST')).toMatchObject({
      status: 200,
      json: { status: 'archived' },
    });
  });
});

describe('bindings', () => {
  test('REG-001 REG-051 REG-085 REG-133 REG-134 an app is bound under a slug of its own, rebound and unbound', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const params = { env_id: env.env_id };
    const bound = await by(owner).createBinding({ params, body: { app_id: 'crm', slug: 'front', app_instance_id: app.app_instance_id } });
    expect(bound).toMatchObject({ env_id: env.env_id, app_id: 'crm', app_instance_id: app.app_instance_id, slug: 'front' });
    expect(await by(owner).getBinding({ params: { ...params, binding_id: bound.binding_id } })).toEqual(bound);
    expect(await refusal(by(owner).createBinding({ params, body: { app_id: 'other', slug: 'front' } }))).toEqual([409, 'slug_taken']);
    const loose = await by(owner).createBinding({ params, body: { app_id: 'other', slug: 'back' } });
    expect(
      await refusal(by(owner).updateBinding({ params: { ...params, binding_id: loose.binding_id }, body: { slug: 'front' } })),
    ).toEqual([409, 'slug_taken']);
    const moved = await by(owner).updateBinding({ params: { ...params, binding_id: bound.binding_id }, body: { slug: 'side' } });
    expect(moved).toMatchObject({ app_id: 'crm', app_instance_id: app.app_instance_id, slug: 'side' });
    expect(moved.binding_id).not.toBe(bound.binding_id);
    expect((await by(owner).listBindings({ params })).items.map(({ slug }) => slug)).toEqual(['side', 'back']);
    await by(owner).deleteBinding({ params: { ...params, binding_id: moved.binding_id } });
    expect(await refusal(by(owner).deleteBinding({ params: { ...params, binding_id: moved.binding_id } }))).toEqual([
      404,
      'binding_not_found',
    ]);
    const ids = (...bindings: (typeof bound)[]) => bindings.map(({ binding_id, app_id }) => ({ env_id: env.env_id, binding_id, app_id }));
    expect(await heard('platform:sys:binding:created', env.env_id)).toEqual(ids(bound, loose, moved));
    expect(await heard('platform:sys:binding:deleted', env.env_id)).toEqual(ids(bound, moved));
  });

  test('REG-051 the same slug serves in another environment; a foreign or different app instance does not fit', async () => {
    const [{ owner, env }, other] = [await world.tenant(), await world.tenant()];
    const foreign = await world.app(other.owner, other.env.env_id);
    const own = await world.app(owner, env.env_id, { app_id: 'shop' });
    await by(owner).createBinding({ params: { env_id: env.env_id }, body: { app_id: 'crm', slug: 'front' } });
    await by(other.owner).createBinding({ params: { env_id: other.env.env_id }, body: { app_id: 'crm', slug: 'front' } });
    for (const instance of [foreign, own])
      expect(
        await refusal(
          by(owner).createBinding({
            params: { env_id: env.env_id },
            body: { app_id: 'crm', slug: 'side', app_instance_id: instance.app_instance_id },
          }),
        ),
      ).toEqual([404, 'app_instance_not_found']);
  });
});
