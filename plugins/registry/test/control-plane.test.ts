import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { registration, retail } from './fixtures/registration.ts';
import { EVERYTHING, refusal, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.host.by(retail('till')).registerVertical({ body: registration('retail', ['till', 'shelf']) });
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => world.directory.down.clear());

const NOWHERE = '018f0000-0000-7000-8000-00000000dead';
const tenant = async () => {
  const { org, owner } = await world.org();
  return { org, owner, env: await world.env(owner, org.org_id, 'prod') };
};

describe('service enablement', () => {
  const shown = (answer: { services: { service: string; enabled: boolean; explicit: boolean }[] }) =>
    answer.services
      .filter(({ service }) => ['till', 'shelf'].includes(service))
      .map(({ service, enabled, explicit }) => [service, enabled, explicit]);

  test('REG-052 REG-081 a missing row is enabled; to see it takes sys:services:admin', async () => {
    const { env, owner } = await tenant();
    const params = { env_id: env.env_id };
    const holding = (scopes: readonly string[]) => world.host.by({ ...owner, scopes: [...scopes] });
    // Workloads that serve an environment read it by sys:instances:read.
    const others = owner.scopes.filter(scope => !['sys:services:admin', 'sys:instances:read'].includes(scope));
    expect(await refusal(holding(others).listServices({ params }))).toEqual([403, 'policy_denied']);
    expect(await refusal(holding(['sys:services:admin']).listServices({ params }))).toEqual([200, 'answered']);
    const answer = await world.host.by(owner).listServices({ params: { env_id: env.env_id } });
    expect(shown(answer)).toEqual([
      ['shelf', true, false],
      ['till', true, false],
    ]);
  });

  test('REG-002 REG-052 REG-082 REG-083 a change touches only what it names, and is told once per row that really changed', async () => {
    const { env, owner } = await tenant();
    const put = (services: { service: string; enabled: boolean; config?: object }[]) =>
      world.host.by(owner).updateServices({ params: { env_id: env.env_id }, body: { services: services as never } });
    expect(shown(await put([{ service: 'till', enabled: false, config: { drawer: 2 } }]))).toEqual([
      ['shelf', true, false],
      ['till', false, true],
    ]);
    await put([{ service: 'till', enabled: false }]);
    await put([{ service: 'till', enabled: false, config: { drawer: 2 } }]);
    const after = await put([
      { service: 'shelf', enabled: false },
      { service: 'till', enabled: false },
    ]);
    expect(after.services.find(({ service }) => service === 'till')?.config).toEqual({ drawer: 2 });
    const told = await world.sql<
      { payload: { service: string }; env_id: string }[]
    >`select payload, env_id from outbox where event_type = 'platform:sys:service:updated' and env_id = ${env.env_id} order by created_at`;
    expect(told.map(({ payload }) => payload)).toEqual([
      { env_id: env.env_id, service: 'till' },
      { env_id: env.env_id, service: 'shelf' },
    ]);
    // It is of this environment alone, and of nobody who may not.
    const other = await world.env(owner, env.org_id, 'other');
    expect(shown(await world.host.by(owner).listServices({ params: { env_id: other.env_id } }))).toEqual([
      ['shelf', true, false],
      ['till', true, false],
    ]);
    const denied = world.host.by({ ...owner, scopes: owner.scopes.filter(scope => scope !== 'sys:services:admin') });
    const on = { params: { env_id: env.env_id }, body: { services: [{ service: 'till', enabled: true }] } };
    expect(await refusal(denied.updateServices(on))).toEqual([403, 'policy_denied']);
  });

  test('F-12 what the platform itself needs stays on: turning it off is 409, and a row that says off from before counts for nothing', async () => {
    const { env, owner } = await tenant();
    const by = world.host.by(owner);
    const off = (service: string) =>
      refusal(by.updateServices({ params: { env_id: env.env_id }, body: { services: [{ service, enabled: false }] } }));
    for (const service of ['sys', 'auth', 'bff', 'web']) expect(await off(service)).toEqual([409, 'service_required']);
    await world.sql`insert into service_enablement (env_id, service, enabled, config) values (${env.env_id}, 'sys', false, '{}')`;
    const { services } = await by.listServices({ params: { env_id: env.env_id } });
    expect(services.find(({ service }) => service === 'sys')).toMatchObject({ enabled: true, essential: true });
    expect(services.find(({ service }) => service === 'till')).toMatchObject({ essential: false });
    expect((await world.host.by(as.delegated(env.env_id, ...EVERYTHING)).bootstrap({})).features).toMatchObject({ sys: true });
    expect(await off('till')).toEqual([200, 'answered']);
  });

  test('REG-082 an unknown service is refused by place, and nothing is written', async () => {
    const { env, owner } = await tenant();
    const answer = await world.host.fetch(`/v1/env/${env.env_id}/services`, {
      method: 'PUT',
      persona: owner,
      body: JSON.stringify({
        services: [
          { service: 'till', enabled: false },
          { service: 'nobody', enabled: false },
        ],
      }),
    });
    expect(answer).toMatchObject({ status: 400, json: { code: 'unknown_service', errors: [{ pointer: '/services/1/service' }] } });
    const rows = await world.sql<object[]>`select 1 from service_enablement where env_id = ${env.env_id}`;
    expect(rows).toHaveLength(0);
  });

  test("C36 bootstrap shows it as features of the caller's environment, with a version that moves", async () => {
    const { env, owner } = await tenant();
    const by = world.host.by(as.delegated(env.env_id, ...EVERYTHING));
    const before = await by.bootstrap({});
    expect(before.features).toMatchObject({ till: true, shelf: true });
    await world.host
      .by(owner)
      .updateServices({ params: { env_id: env.env_id }, body: { services: [{ service: 'till', enabled: false }] } });
    const after = await by.bootstrap({});
    expect(after.features).toMatchObject({ till: false, shelf: true });
    expect(after.feature_version).not.toBe(before.feature_version);
  });
});

describe('hosts', () => {
  const proxy = () => world.host.by(world.service('proxy', 'sys:instances:read'));
  const resolve = (hostname: string) => proxy().resolveHostname({ query: { hostname } });

  test.each([
    ['console.ops.sys.localhost', 'web', SYSTEM.consoleAppId],
    ['bff.console.ops.sys.localhost', 'bff', SYSTEM.consoleAppId],
    ['sys.ops.sys.localhost', 'sys', null],
    ['auth.ops.sys.localhost', 'auth', null],
    ['SYS.ops.sys.localhost:8443', 'sys', null],
    ['sys.ops.sys.localhost.', 'sys', null],
  ])('REG-003 REG-093 %s of the platform leads to %s', async (hostname, service, app) => {
    expect(await resolve(hostname)).toMatchObject({
      kind: 'platform',
      service,
      env_id: SYSTEM.envId,
      env_slug: 'ops',
      org_id: SYSTEM.orgId,
      app_instance_id: app,
      status: 'active',
      ttl_s: 30,
    });
  });

  test("REG-093 REG-096 a tenant's service, gateway twin and sign-in hosts", async () => {
    const { org, env, owner } = await tenant();
    await world.prove(org, `${org.slug}.example`);
    await world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { auth_domain: `login.${org.slug}.example` } });
    const where = { kind: 'tenant', env_id: env.env_id, env_slug: 'prod', org_id: org.org_id };
    const base = `prod.${org.slug}.localhost`;
    expect(await resolve(`sys.${base}`)).toMatchObject({ ...where, service: 'sys' });
    expect(await resolve(`bff.sys.${base}`)).toMatchObject({ ...where, service: 'bff' });
    expect(await resolve(`auth.${base}`)).toMatchObject({ ...where, service: 'auth' });
    expect(await resolve(`login.${org.slug}.example`)).toMatchObject({ ...where, service: 'auth' });
    expect(await proxy().authDomain({ params: { id: env.env_id } })).toEqual({
      env_id: env.env_id,
      auth_domain: `login.${org.slug}.example`,
      auth_url: `https://login.${org.slug}.example:8443`,
    });
    expect(world.directory.realms.get(`login.${org.slug}.example`)).toBe(env.env_id);
  });

  test.each(['nobody.ops.sys.localhost', 'a.sys.ops.sys.localhost', 'sys.prod.unknown.localhost', 'example.org', 'localhost', ''])(
    'REG-093 nobody answers on "%s"',
    async hostname => {
      expect(await refusal(resolve(hostname))).toEqual([404, 'hostname_unresolved']);
    },
  );

  test('G-SYS-02 a suspended tenant resolves as such, an archived one not at all', async () => {
    const { org, env, owner } = await tenant();
    const host = `sys.prod.${org.slug}.localhost`;
    await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    expect(await resolve(host)).toMatchObject({ status: 'suspended' });
    await world.host.by(owner).archiveEnv({ params: { env_id: env.env_id } });
    expect(await refusal(resolve(host))).toEqual([404, 'hostname_unresolved']);
  });

  test('C34 an archived environment gives its sign-in host to the next of its name', async () => {
    const { org, env, owner } = await tenant();
    await world.host.by(owner).archiveEnv({ params: { env_id: env.env_id } });
    const next = await world.env(owner, org.org_id, 'prod');
    expect(world.directory.realms.get(`auth.prod.${org.slug}.localhost`)).toBe(next.env_id);
  });
});

describe('hosts of others', () => {
  test("G-SYS-08 an organization cannot take another's domain, nor one of the platform", async () => {
    const [{ org: other }, { org, owner }] = [await tenant(), await tenant()];
    const by = world.host.by(owner);
    for (const orgDomain of [other.org_domain, 'sys.localhost', 'localhost', 'someday.localhost', `x.${other.org_domain}`]) {
      expect(await refusal(by.updateOrg({ params: { id: org.org_id }, body: { org_domain: orgDomain } }))).toEqual([409, 'hostname_taken']);
      expect(await refusal(by.createOrg({ body: { slug: world.slug(), display_name: 'X', org_domain: orgDomain } }))).toEqual([
        409,
        'hostname_taken',
      ]);
    }
    expect(await by.updateOrg({ params: { id: org.org_id }, body: { org_domain: `${org.slug}.example` } })).toMatchObject({
      org_domain: `${org.slug}.example`,
    });
  });

  test('G-SYS-08 people of an environment do not sign in on a host of another', async () => {
    const [first, { org, env, owner }] = [await tenant(), await tenant()];
    const mine = `login.${first.org.slug}.example`;
    await world.host.by(first.owner).updateEnv({ params: { env_id: first.env.env_id }, body: { auth_domain: mine } });
    for (const authDomain of [
      mine,
      `auth.prod.${first.org.org_domain}`,
      `sys.prod.${first.org.org_domain}`,
      'console.ops.sys.localhost',
      'localhost',
    ]) {
      expect(await refusal(world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { auth_domain: authDomain } }))).toEqual([
        409,
        'hostname_taken',
      ]);
      expect(
        await refusal(
          world.host.by(owner).createEnv({ body: { org_id: org.org_id, slug: world.slug(), display_name: 'X', auth_domain: authDomain } }),
        ),
      ).toEqual([409, 'hostname_taken']);
    }
    expect(await world.host.by(owner).getEnv({ params: { env_id: env.env_id } })).toMatchObject({ auth_domain: null });
    expect(world.directory.realms.get(mine)).toBe(first.env.env_id);
    expect(
      await world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { auth_domain: `id.${org.org_domain}` } }),
    ).toMatchObject({ auth_domain: `id.${org.org_domain}` });
  });
});

describe('tenant snapshots', () => {
  test('REG-047 REG-104 a workload with its certificate gets one; a person and an unbound token do not', async () => {
    const { org, env } = await tenant();
    const func = world.service('func', 'tenants:read');
    expect(await world.host.by(func).tenant({ params: { env_id: env.env_id } })).toEqual({
      env_id: env.env_id,
      env_slug: 'prod',
      env_display_name: 'Env prod',
      org_id: org.org_id,
      org_slug: org.slug,
      org_domain: org.org_domain,
      org_display_name: org.display_name,
      auth_domain: null,
      status: 'active',
    });
    const path = `/v1/tenants/${env.env_id}`;
    expect(await world.host.fetch(path, { persona: as.user('tenants:read', 'sys:sys:admin') })).toMatchObject({
      status: 403,
      json: { code: 'm2m_required' },
    });
    expect(await world.host.fetch(path, { persona: func })).toMatchObject({ status: 403, json: { code: 'certificate_binding_required' } });
    const unscoped = world.host.by(world.service('func', 'sys:instances:read'));
    expect(await refusal(unscoped.tenant({ params: { env_id: env.env_id } }))).toEqual([403, 'policy_denied']);
  });

  test("REG-105 only where the caller's own service is enabled", async () => {
    const { env, owner } = await tenant();
    await world.host
      .by(owner)
      .updateServices({ params: { env_id: env.env_id }, body: { services: [{ service: 'till', enabled: false }] } });
    const by = (name: string) => world.host.by(world.service(name, 'tenants:read'));
    expect(await refusal(by('till-sync').tenant({ params: { env_id: env.env_id } }))).toEqual([403, 'service_disabled']);
    expect(await refusal(by('shelf').tenant({ params: { env_id: env.env_id } }))).toEqual([200, 'answered']);
  });

  test('G-SYS-02 G-SYS-14 unknown and archived environments are 404', async () => {
    const { env, owner } = await tenant();
    await world.host.by(owner).archiveEnv({ params: { env_id: env.env_id } });
    for (const id of [NOWHERE, env.env_id])
      expect(await refusal(world.host.by(world.service('func', 'tenants:read')).tenant({ params: { env_id: id } }))).toEqual([
        404,
        'env_not_found',
      ]);
  });
});
