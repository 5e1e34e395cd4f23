import { SYSTEM } from '@platform/sdk';
import { as, type Persona } from '@platform/testing';
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
const proxy = () => by(world.service('proxy', 'sys:instances:read'));
const heard = async (event: string, envId: string) => (await world.written(event, envId)).map(({ payload }) => payload);
const audited = async (envId: string) => (await world.sql<{ action: string }[]>`select action from audit where env_id = ${envId} order by seq`).map(({ action }) => action);

describe('app instances', () => {
  test('REG-001 REG-049 REG-050 REG-084 REG-130 REG-143 one is made with everything a sign-in and a proxy need, and is told with ids only', async () => {
    const { org, owner, env } = await world.tenant();
    const settings = {
      oauth_client_id: `client-${org.slug}`,
      feature_flags: { 'beta.search': true },
      scope_whitelist: ['sys:read'],
      service_whitelist: [],
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
    expect(answer).toMatchObject({ status: 201, json: made, headers: { location: `/v1/env/${env.env_id}/applications/${String(answer.json['app_instance_id'])}`, etag: '"1"' } });
    const app = answer.json as { app_instance_id: string };
    expect(Object.keys(app).toSorted()).toEqual(['app_instance_id', ...Object.keys(made)].toSorted());
    expect(await by(owner).getApplication({ params: at(env, app) })).toEqual(app);
    expect(await heard('platform:sys:app:created', env.env_id)).toEqual([{ env_id: env.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' }]);
    expect(await audited(env.env_id)).toContain('app.created');
  });

  test('REG-084 REG-131 REG-132 a change is told, a repeated archive is not, and a delete archives', async () => {
    const { owner, env } = await world.tenant();
    const [first, second] = [await world.app(owner, env.env_id), await world.app(owner, env.env_id)];
    expect(await by(owner).updateApplication({ params: at(env, first), body: { name: 'Renamed', feature_flags: { dark: true } } })).toMatchObject({
      name: 'Renamed',
      feature_flags: { dark: true },
      version: 2,
    });
    const ids = (app: typeof first) => ({ env_id: env.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' });
    expect(await heard('platform:sys:app:updated', env.env_id)).toEqual([ids(first)]);
    for (let turn = 0; turn < 2; turn++) expect(await by(owner).archiveApplication({ params: at(env, first) })).toMatchObject({ status: 'archived' });
    expect((await world.host.fetch(`/v1/env/${env.env_id}/applications/${second.app_instance_id}`, { method: 'DELETE', persona: world.admin() })).status).toBe(204);
    expect(await heard('platform:sys:app:archived', env.env_id)).toEqual([ids(first), ids(second)]);
    expect(await refusal(by(owner).updateApplication({ params: at(env, first), body: { name: 'Again' } }))).toEqual([409, 'record_archived']);
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
    expect(await refusal(by(owner).listApplications({ params: { env_id: env.env_id }, query: { cursor: '!' } }))).toEqual([400, 'invalid_cursor']);
  });

  test('REG-084 REG-085 REG-086 a stranger reaches none of it, and reading needs no more than sys:read', async () => {
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
    const reader = { ...owner, scopes: ['sys:read'] };
    expect(await by(reader).getApplication({ params })).toMatchObject({ app_instance_id: app.app_instance_id });
    expect(await refusal(by(reader).updateApplication({ params, body: { name: 'X' } }))).toEqual([403, 'policy_denied']);
    expect(await refusal(by(reader).createBinding({ params, body: { app_id: 'x', slug: 'mine' } }))).toEqual([403, 'policy_denied']);
    expect(await refusal(by(reader).putCustomDomain({ params, body: { fqdn: 'x.example' } }))).toEqual([403, 'policy_denied']);
  });

  test('REG-084 what is not there, or in another environment, is 404; what is no id too', async () => {
    const [{ owner, env }, other] = [await world.tenant(), await world.tenant()];
    const foreign = await world.app(other.owner, other.env.env_id);
    for (const id of [NOWHERE, foreign.app_instance_id, 'nonsense'])
      expect(await refusal(by(owner).getApplication({ params: { env_id: env.env_id, app_instance_id: id } }))).toEqual([404, 'app_instance_not_found']);
    expect(await refusal(by(world.admin()).listApplications({ params: { env_id: 'nonsense' } }))).toEqual([404, 'env_not_found']);
  });

  test('H-09 scopes, services and flags that nobody knows are refused by place, and nothing is written', async () => {
    const { owner, env } = await world.tenant();
    const body = { app_id: 'crm', slug: 'crm', name: 'X', auth_mode: 'open', scope_whitelist: ['sys:read', 'sys:raed'], service_whitelist: ['syss'], feature_flags: { 'Bad Flag': true } };
    const answer = await world.host.fetch(`/v1/env/${env.env_id}/applications`, { method: 'POST', persona: world.admin(), body: JSON.stringify(body) });
    expect(answer).toMatchObject({
      status: 422,
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
    expect(await refusal(by(owner).updateApplication({ params: at(env, app), body: { scope_whitelist: ['nope:read'] } }))).toEqual([422, 'whitelist_invalid']);
  });

  test('REG-050 a gate names its group, a slug and an app do not change, an OAuth client serves one', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { oauth_client_id: `c-${org.slug}` });
    const update = (body: object) => refusal(by(owner).updateApplication({ params: at(env, app), body }));
    expect(await refusal(by(owner).createApplication({ params: { env_id: env.env_id }, body: { app_id: 'x', slug: 'gated', name: 'X' } }))).toEqual([400, 'auth_group_required']);
    expect(await update({ auth_mode: 'group' })).toEqual([400, 'auth_group_required']);
    expect(await update({ slug: 'other' })).toEqual([400, 'immutable_field']);
    expect(await update({ app_id: 'other' })).toEqual([400, 'immutable_field']);
    expect(await refusal(world.app(owner, env.env_id, { oauth_client_id: `c-${org.slug}` }))).toEqual([409, 'oauth_client_taken']);
  });

  test('G-K-03 If-Match of another version changes nothing', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const put = (version: string, name: string) =>
      world.host.fetch(`/v1/env/${env.env_id}/applications/${app.app_instance_id}`, { method: 'PUT', persona: world.admin(), headers: { 'if-match': version }, body: JSON.stringify({ name }) });
    expect(await put('"7"', 'Wrong')).toMatchObject({ status: 412, json: { code: 'precondition_failed' } });
    expect(await put('"1"', 'Right')).toMatchObject({ status: 200, json: { name: 'Right', version: 2 } });
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
    const page = (path: string, method = 'GET') => world.host.fetch(`/v1/admin/applications${path}?target_env_id=${env.env_id}`, { persona, method });
    expect(await page('')).toMatchObject({ status: 200, json: { items: [{ app_instance_id: app.app_instance_id }] } });
    expect(await world.host.fetch('/v1/admin/applications', { persona })).toMatchObject({ status: 400, json: { code: 'target_env_required' } });
    expect(await world.host.fetch('/v1/admin/ui/applications', { persona })).toMatchObject({ status: 200, json: { page: 'applications', scope: 'env' } });
    expect(await page(`/${app.app_instance_id}/verifyApplicationRow`, 'POST')).toMatchObject({ status: 404, json: { code: 'custom_domain_not_found' } });
    expect(await page(`/${app.app_instance_id}/archiveApplicationRow`, 'POST')).toMatchObject({ status: 200, json: { status: 'archived' } });
  });
});

describe('host names', () => {
  test('G-SYS-08 a slug serves one instance of an environment, and labels of services and of the platform none', async () => {
    const { owner, env } = await world.tenant();
    await by({ ...as.machine('till', 'sys:verticals:write'), vertical: 'retail' }).registerVertical({
      body: {
        vertical: 'retail',
        version: '1',
        services: [{ service: 'till', label: 'Till', base_path: '/v1', nav: [], pages: [], actions: [], stream_families: [] }],
        admin_scopes: [],
        scopes: [],
        error_codes: [],
        listings: [],
      },
    });
    await world.app(owner, env.env_id, { slug: 'crm' });
    expect(await refusal(world.app(owner, env.env_id, { slug: 'crm' }))).toEqual([409, 'slug_taken']);
    for (const label of ['till', 'console']) expect(await refusal(world.app(owner, env.env_id, { slug: label }))).toEqual([409, 'hostname_taken']);
    expect(await refusal(world.app(owner, env.env_id, { slug: 'bff' }))).toEqual([400, 'slug_reserved']);
    expect(await refusal(world.app(owner, env.env_id, { slug: 'No' }))).toEqual([400, 'slug_invalid']);
  });

  test("H-29 a name of a former organization is nobody else's, and its own again", async () => {
    const first = await world.tenant();
    const app = await world.app(first.owner, first.env.env_id, { slug: 'crm' });
    await by(first.owner).archiveApplication({ params: at(first.env, app) });
    const again = await world.app(first.owner, first.env.env_id, { slug: 'crm' });
    expect(await world.resolve(app.hostname)).toMatchObject({ app_instance_id: again.app_instance_id });
    // Archiving frees the slug of the organization and its environment (C34), and with it the domain: the name stays behind.
    await by(first.owner).archiveEnv({ params: { env_id: first.env.env_id } });
    const nextEnv = await world.env(first.owner, first.org.org_id, 'prod');
    const next = await world.app(first.owner, nextEnv.env_id, { slug: 'crm' });
    expect(await world.resolve(app.hostname)).toMatchObject({ env_id: nextEnv.env_id, app_instance_id: next.app_instance_id });
    await by(first.owner).archiveOrg({ params: { id: first.org.org_id } });
    const { org, owner } = await world.org(world.stranger(), first.org.slug);
    expect(org.org_domain).toBe(first.org.org_domain);
    const env = await world.env(owner, org.org_id, 'prod');
    expect(await refusal(world.app(owner, env.env_id, { slug: 'crm' }))).toEqual([409, 'hostname_taken']);
    expect(await refusal(world.resolve(app.hostname))).toEqual([404, 'hostname_unresolved']);
  });

  test('H-29 a name outlives a deleted environment for strangers and for its own organization alike', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    await by(owner).deleteEnv({ params: { env_id: env.env_id } });
    const rows = await world.sql<{ org_id: string; env_id: string | null }[]>`select org_id, env_id from hostnames where hostname = ${app.hostname}`;
    expect([...rows]).toEqual([{ org_id: org.org_id, env_id: null }]);
  });

  test('G-SYS-08 the database itself lets a name be held once, whichever way it is taken', async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const app = await world.app(first.owner, first.env.env_id);
    const clash = (statement: Promise<unknown>) => expect(statement).rejects.toMatchObject({ code: '23505' });
    await clash(world.sql`update envs set auth_domain = ${app.hostname} where env_id = ${second.env.env_id}`);
    await clash(
      world.sql`insert into app_instances ${world.sql.row({ app_instance_id: NOWHERE, env_id: second.env.env_id, app_id: 'x', slug: 'x', name: 'X', hostname: app.hostname, auth_mode: 'open' })}`,
    );
    await clash(world.sql`update orgs set org_domain = ${first.org.org_domain} where org_id = ${second.org.org_id}`);
    expect(await refusal(by(second.owner).updateEnv({ params: { env_id: second.env.env_id }, body: { auth_domain: app.hostname } }))).toEqual([409, 'hostname_taken']);
    expect(await refusal(by(first.owner).updateEnv({ params: { env_id: first.env.env_id }, body: { auth_domain: app.hostname } }))).toEqual([409, 'hostname_taken']);
  });

  test("G-K-15 applications move with their organization's domain", async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    await by(owner).updateOrg({ params: { id: org.org_id }, body: { org_domain: `${org.slug}.example` } });
    const moved = await by(owner).getApplication({ params: at(env, app) });
    expect(moved).toMatchObject({ hostname: `crm.prod.${org.slug}.example`, gateway_hostname: `bff.crm.prod.${org.slug}.example`, version: 2 });
    expect(await world.resolve(moved.hostname)).toMatchObject({ app_instance_id: app.app_instance_id });
    expect(await refusal(world.resolve(app.hostname))).toEqual([404, 'hostname_unresolved']);
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
    expect(await refusal(by(owner).updateBinding({ params: { ...params, binding_id: loose.binding_id }, body: { slug: 'front' } }))).toEqual([409, 'slug_taken']);
    const moved = await by(owner).updateBinding({ params: { ...params, binding_id: bound.binding_id }, body: { slug: 'side' } });
    expect(moved).toMatchObject({ app_id: 'crm', app_instance_id: app.app_instance_id, slug: 'side' });
    expect(moved.binding_id).not.toBe(bound.binding_id);
    expect((await by(owner).listBindings({ params })).items.map(({ slug }) => slug)).toEqual(['side', 'back']);
    await by(owner).deleteBinding({ params: { ...params, binding_id: moved.binding_id } });
    expect(await refusal(by(owner).deleteBinding({ params: { ...params, binding_id: moved.binding_id } }))).toEqual([404, 'binding_not_found']);
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
      expect(await refusal(by(owner).createBinding({ params: { env_id: env.env_id }, body: { app_id: 'crm', slug: 'side', app_instance_id: instance.app_instance_id } }))).toEqual([
        404,
        'app_instance_not_found',
      ]);
  });
});

describe('the resolver', () => {
  test('REG-003 REG-093 C30 an app and its gateway twin, with the app behind them', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    const where = { kind: 'tenant', env_id: env.env_id, env_slug: 'prod', org_id: org.org_id, app_id: 'crm', app_instance_id: app.app_instance_id, status: 'active', ttl_s: 30 };
    expect(await world.resolve(app.hostname)).toEqual({ hostname: app.hostname, service: 'web', ...where });
    expect(await world.resolve(`${app.gateway_hostname.toUpperCase()}.:443`.replace('.:', ':'))).toEqual({ hostname: app.gateway_hostname, service: 'bff', ...where });
    expect(await world.resolve('bff.ops.sys.localhost')).toMatchObject({ kind: 'platform', service: 'bff', app_instance_id: null });
  });

  test('G-SYS-02 a suspended tenant resolves as such, an archived one not at all', async () => {
    const { org, owner, env } = await world.tenant();
    const { hostname } = await world.app(owner, env.env_id);
    await world.resolve(hostname);
    await by(world.admin()).updateEnv({ params: { env_id: env.env_id }, body: { status: 'suspended' } });
    expect(await world.resolve(hostname)).toMatchObject({ status: 'suspended' });
    await by(world.admin()).updateEnv({ params: { env_id: env.env_id }, body: { status: 'active' } });
    await by(owner).archiveOrg({ params: { id: org.org_id } });
    expect(await refusal(world.resolve(hostname))).toEqual([404, 'hostname_unresolved']);
    expect(await refusal(by(world.service('func', 'tenants:read')).tenant({ params: { env_id: env.env_id } }))).toEqual([404, 'env_not_found']);
  });

  test('REG-094 REG-095 scopes and way in, by instance, host and client', async () => {
    const { org, owner, env } = await world.tenant();
    const gate = { auth_mode: 'group', auth_group: 'platform:crm:staff', allow_signup: false, oauth_client_id: `crm-${org.slug}` } as const;
    const app = await world.app(owner, env.env_id, { ...gate, scope_whitelist: ['sys:read'] });
    const selectors = [{ app_instance_id: app.app_instance_id }, { hostname: app.hostname }, { hostname: app.gateway_hostname }];
    for (const query of selectors) {
      expect(await proxy().appInstanceScopes({ query })).toEqual({ app_instance_id: app.app_instance_id, scope_whitelist: ['sys:read'], service_whitelist: [] });
    }
    for (const query of [...selectors, { client_id: gate.oauth_client_id }]) {
      expect(await proxy().appInstanceAuthMode({ query })).toEqual({ app_instance_id: app.app_instance_id, env_id: env.env_id, auth_env: env.env_id, ...gate });
    }
    for (const query of [{}, { hostname: 'a.example', app_instance_id: app.app_instance_id }]) expect(await refusal(proxy().appInstanceScopes({ query }))).toEqual([400, 'selector_required']);
    for (const query of [{ hostname: 'nobody.example' }, { app_instance_id: NOWHERE }, { client_id: 'nobody' }])
      expect(await refusal(proxy().appInstanceAuthMode({ query }))).toEqual([404, 'app_instance_not_found']);
    await by(owner).archiveApplication({ params: at(env, app) });
    for (const query of [...selectors, { client_id: gate.oauth_client_id }]) expect(await refusal(proxy().appInstanceAuthMode({ query }))).toEqual([404, 'app_instance_not_found']);
  });

  test('REG-093 REG-094 REG-095 REG-096 REG-097 resolving takes sys:instances:read', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const reader = by({ ...owner, scopes: ['sys:read'] });
    const params = { id: env.env_id };
    for (const call of [
      () => reader.resolveHostname({ query: { hostname: app.hostname } }),
      () => reader.appInstanceScopes({ query: { hostname: app.hostname } }),
      () => reader.appInstanceAuthMode({ query: { hostname: app.hostname } }),
      () => reader.authDomain({ params }),
      () => reader.appCustomDomain({ params, query: { app_instance_id: app.app_instance_id } }),
    ])
      expect(await refusal(call())).toEqual([403, 'policy_denied']);
    expect(await proxy().authDomain({ params })).toMatchObject({ env_id: env.env_id, auth_domain: null });
    expect(await proxy().appCustomDomain({ params, query: { app_instance_id: app.app_instance_id } })).toEqual({ env_id: env.env_id, app_instance_id: app.app_instance_id, fqdn: null, status: null });
  });

  test('REG-034 REG-036 the console of a fresh platform is an app instance, the same everywhere, and nobody changes it', async () => {
    const admin = by(world.admin());
    const params = { env_id: SYSTEM.envId, app_instance_id: '00000000-0000-7000-8000-000000000003' };
    expect(await admin.getApplication({ params })).toMatchObject({
      hostname: 'console.ops.sys.localhost',
      env_id: '00000000-0000-7000-8000-000000000002',
      org_id: '00000000-0000-7000-8000-000000000001',
      auth_mode: 'self_service',
      auth_group: 'platform:console:users',
      allow_signup: false,
    });
    expect(await world.resolve('console.ops.sys.localhost')).toMatchObject({ kind: 'platform', service: 'web', app_id: 'console', app_instance_id: params.app_instance_id });
    expect(await proxy().appInstanceAuthMode({ query: { client_id: 'console' } })).toMatchObject({ app_instance_id: params.app_instance_id, auth_mode: 'self_service', allow_signup: false });
    expect(await refusal(admin.updateApplication({ params, body: { allow_signup: true } }))).toEqual([409, 'system_record_protected']);
    expect(await refusal(admin.archiveApplication({ params }))).toEqual([409, 'system_record_protected']);
    expect(await refusal(admin.putCustomDomain({ params, body: { fqdn: 'console.example' } }))).toEqual([409, 'system_record_protected']);
  });

  test('REG-145 REG-146 a change of an app is told with its hosts and gateway twins', async () => {
    const { owner, env, org } = await world.tenant();
    const heardOf: Record<string, unknown>[] = [];
    await using _ = await world.kv.subscribe('platform:sys:domain:changed', message => heardOf.push(JSON.parse(message) as Record<string, unknown>));
    const app = await world.app(owner, env.env_id);
    await expect
      .poll(() => heardOf.find(({ app_instance_id: id }) => id === app.app_instance_id))
      .toMatchObject({ scope: 'app', org_id: org.org_id, env_id: env.env_id, hostnames: [app.hostname, app.gateway_hostname], at: expect.any(String) });
  });
});
