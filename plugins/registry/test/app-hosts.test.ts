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
    for (const label of ['till', 'console'])
      expect(await refusal(world.app(owner, env.env_id, { slug: label }))).toEqual([409, 'hostname_taken']);
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

  test('H-29 a name outlives its deleted environment, and stays with its organization', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    await by(owner).deleteEnv({ params: { env_id: env.env_id } });
    const rows = await world.sql<
      { org_id: string; env_id: string | null }[]
    >`select org_id, env_id from hostnames where hostname = ${app.hostname}`;
    expect([...rows]).toEqual([{ org_id: org.org_id, env_id: null }]);
  });

  test('G-SYS-08 the database itself lets a name be held once, whichever way it is taken', async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const app = await world.app(first.owner, first.env.env_id);
    const clash = (statement: Promise<unknown>) => expect(statement).rejects.toMatchObject({ code: '23505' });
    await clash(world.sql`update envs set auth_domain = ${app.hostname} where env_id = ${second.env.env_id}`);
    await clash(
      world.sql`insert into app_instances ${world.sql.row({
        app_instance_id: NOWHERE,
        env_id: second.env.env_id,
        app_id: 'x',
        slug: 'x',
        name: 'X',
        hostname: app.hostname,
        auth_mode: 'open',
      })}`,
    );
    await clash(world.sql`update orgs set org_domain = ${first.org.org_domain} where org_id = ${second.org.org_id}`);
    expect(
      await refusal(by(second.owner).updateEnv({ params: { env_id: second.env.env_id }, body: { auth_domain: app.hostname } })),
    ).toEqual([409, 'hostname_taken']);
    expect(await refusal(by(first.owner).updateEnv({ params: { env_id: first.env.env_id }, body: { auth_domain: app.hostname } }))).toEqual(
      [409, 'hostname_taken'],
    );
  });

  test("REG-131 REG-145 REG-146 G-K-15 applications move with their organization's domain, and each is told", async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    const archived = await world.app(owner, env.env_id, { slug: 'old' });
    await by(owner).archiveApplication({ params: at(env, archived) });
    const heardOf: Record<string, unknown>[] = [];
    await using _ = await world.kv.subscribe('platform:sys:domain:changed', message =>
      heardOf.push(JSON.parse(message) as Record<string, unknown>),
    );
    await world.prove(org, `${org.slug}.example`);
    await by(owner).updateOrg({ params: { id: org.org_id }, body: { org_domain: `${org.slug}.example` } });
    const moved = await by(owner).getApplication({ params: at(env, app) });
    expect(moved).toMatchObject({
      hostname: `crm.prod.${org.slug}.example`,
      gateway_hostname: `bff.crm.prod.${org.slug}.example`,
      version: 2,
    });
    expect(await world.resolve(moved.hostname)).toMatchObject({ app_instance_id: app.app_instance_id });
    expect(await refusal(world.resolve(app.hostname))).toEqual([404, 'hostname_unresolved']);
    expect((await world.written('platform:sys:app:updated', env.env_id)).map(({ payload, env_id }) => [payload, env_id])).toEqual([
      [{ env_id: env.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' }, env.env_id],
    ]);
    await expect
      .poll(() => heardOf.find(({ scope }) => scope === 'app'))
      .toMatchObject({
        org_id: org.org_id,
        env_id: env.env_id,
        app_instance_id: app.app_instance_id,
        hostnames: [app.hostname, app.gateway_hostname, moved.hostname, moved.gateway_hostname],
      });
    expect(heardOf.filter(({ scope }) => scope === 'app')).toHaveLength(1);
  });

  test('REG-131 a change of the organization that leaves its domain moves and tells no application', async () => {
    const { org, owner, env } = await world.tenant();
    await world.app(owner, env.env_id);
    await by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: 'Another' } });
    expect(await world.written('platform:sys:app:updated', env.env_id)).toEqual([]);
  });
});

describe('the resolver', () => {
  test('REG-003 REG-093 C30 an app and its gateway twin, with the app behind them', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id, { slug: 'crm' });
    const where = {
      kind: 'tenant',
      env_id: env.env_id,
      env_slug: 'prod',
      org_id: org.org_id,
      app_id: 'crm',
      app_instance_id: app.app_instance_id,
      status: 'active',
      ttl_s: 30,
    };
    expect(await world.resolve(app.hostname)).toEqual({ hostname: app.hostname, service: 'web', ...where });
    expect(await world.resolve(`${app.gateway_hostname.toUpperCase()}.:443`.replace('.:', ':'))).toEqual({
      hostname: app.gateway_hostname,
      service: 'bff',
      ...where,
    });
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
    expect(await refusal(by(world.service('func', 'tenants:read')).tenant({ params: { env_id: env.env_id } }))).toEqual([
      404,
      'env_not_found',
    ]);
  });

  test('REG-094 REG-095 scopes and way in, by instance, host and client', async () => {
    const { org, owner, env } = await world.tenant();
    const gate = { auth_mode: 'group', auth_group: 'platform:crm:staff', allow_signup: false, oauth_client_id: `crm-${org.slug}` } as const;
    const app = await world.app(owner, env.env_id, { ...gate, scope_whitelist: ['sys:read'] });
    const selectors = [{ app_instance_id: app.app_instance_id }, { hostname: app.hostname }, { hostname: app.gateway_hostname }];
    for (const query of selectors) {
      expect(await proxy().appInstanceScopes({ query })).toEqual({
        app_instance_id: app.app_instance_id,
        scope_whitelist: ['sys:read'],
        service_whitelist: [],
      });
    }
    for (const query of [...selectors, { client_id: gate.oauth_client_id }]) {
      expect(await proxy().appInstanceAuthMode({ query })).toEqual({
        app_instance_id: app.app_instance_id,
        env_id: env.env_id,
        auth_env: env.env_id,
        ...gate,
      });
    }
    for (const query of [{}, { hostname: 'a.example', app_instance_id: app.app_instance_id }])
      expect(await refusal(proxy().appInstanceScopes({ query }))).toEqual([400, 'selector_required']);
    for (const query of [{ hostname: 'nobody.example' }, { app_instance_id: NOWHERE }, { client_id: 'nobody' }])
      expect(await refusal(proxy().appInstanceAuthMode({ query }))).toEqual([404, 'app_instance_not_found']);
    await by(owner).archiveApplication({ params: at(env, app) });
    for (const query of [...selectors, { client_id: gate.oauth_client_id }])
      expect(await refusal(proxy().appInstanceAuthMode({ query }))).toEqual([404, 'app_instance_not_found']);
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
    expect(await proxy().appCustomDomain({ params, query: { app_instance_id: app.app_instance_id } })).toEqual({
      env_id: env.env_id,
      app_instance_id: app.app_instance_id,
      fqdn: null,
      status: null,
    });
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
    expect(await world.resolve('console.ops.sys.localhost')).toMatchObject({
      kind: 'platform',
      service: 'web',
      app_id: 'console',
      app_instance_id: params.app_instance_id,
    });
    expect(await proxy().appInstanceAuthMode({ query: { client_id: 'console' } })).toMatchObject({
      app_instance_id: params.app_instance_id,
      auth_mode: 'self_service',
      allow_signup: false,
    });
    expect(await refusal(admin.updateApplication({ params, body: { allow_signup: true } }))).toEqual([409, 'system_record_protected']);
    expect(await refusal(admin.archiveApplication({ params }))).toEqual([409, 'system_record_protected']);
    expect(await refusal(admin.putCustomDomain({ params, body: { fqdn: 'console.example' } }))).toEqual([409, 'system_record_protected']);
  });

  test('REG-145 REG-146 a change of an app is told with its hosts and gateway twins', async () => {
    const { owner, env, org } = await world.tenant();
    const heardOf: Record<string, unknown>[] = [];
    await using _ = await world.kv.subscribe('platform:sys:domain:changed', message =>
      heardOf.push(JSON.parse(message) as Record<string, unknown>),
    );
    const app = await world.app(owner, env.env_id);
    await expect
      .poll(() => heardOf.find(({ app_instance_id: id }) => id === app.app_instance_id))
      .toMatchObject({
        scope: 'app',
        org_id: org.org_id,
        env_id: env.env_id,
        hostnames: [app.hostname, app.gateway_hostname],
        at: expect.any(String),
      });
  });
});
