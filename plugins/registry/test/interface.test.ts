import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { refusal, World } from './fixtures/world.ts';

/** G-SYS-15, word for word. */
const PATHS = [
  '/v1/o',
  '/v1/org/{id}',
  '/v1/org/{id}/archive',
  '/v1/e',
  '/v1/env/{env_id}',
  '/v1/env/{env_id}/archive',
  '/v1/slug-available/{slug}',
  '/v1/env/{env_id}/services',
  '/v1/env/{env_id}/applications',
  '/v1/env/{env_id}/applications/{app_instance_id}',
  '/v1/env/{env_id}/applications/{app_instance_id}/archive',
  '/v1/env/{env_id}/applications/{app_instance_id}/custom-domain',
  '/v1/env/{env_id}/applications/{app_instance_id}/custom-domain/verify',
  '/v1/env/{env_id}/bindings',
  '/v1/env/{env_id}/bindings/{binding_id}',
  '/v1/org/{org_id}/memberships',
  '/v1/org/{org_id}/memberships/{user_id}',
  '/v1/org/{org_id}/invitations',
  '/v1/org/{org_id}/invitations/accept',
  '/v1/org/{org_id}/invitations/{invitation_id}',
  '/v1/org/{org_id}/invitations/{invitation_id}/revoke',
  '/v1/org/{id}/branding',
  '/v1/env/{id}/branding',
  '/v1/env/{id}/branding/merged',
  '/v1/resolve/hostname',
  '/v1/app-instance/scopes',
  '/v1/app-instance/auth-mode',
  '/v1/env/{id}/auth-domain',
  '/v1/env/{id}/app-custom-domain',
  '/v1/bootstrap',
  '/v1/scopes/catalog',
  '/v1/verticals/services',
  '/v1/verticals/register',
  '/v1/audit',
  '/v1/tenants/{env_id}',
  '/v1/admin/policy-sets',
  '/v1/admin/relations',
  '/v1/admin/attributes',
  '/v1/admin/ui/{page}',
  '/v1/admin/{resource}',
  '/v1/health',
  '/v1/readiness',
  '/openapi.json',
];

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

test('REG-109 REG-153 REG-154 the interface description is public and has exactly the 43 paths', async () => {
  const { status, json } = await world.host.fetch('/openapi.json');
  expect(status).toBe(200);
  expect(Object.keys(json['paths'] as object).sort()).toEqual([...PATHS].sort());
  expect(PATHS).toHaveLength(43);
  expect(world.host.manifest.routes && Object.values(world.host.manifest.routes).every(({ path }) => path.startsWith('/v1/'))).toBe(true);
});

test('REG-107 REG-108 health and readiness ask for nobody', async () => {
  const [health, readiness] = [await world.host.fetch('/v1/health'), await world.host.fetch('/v1/readiness')];
  expect([health.status, readiness.status]).toEqual([200, 200]);
  expect(health.json).toMatchObject({ status: 'ok' });
  expect(readiness.json).toMatchObject({ checks: { database: { ok: true }, key_value: { ok: true } } });
});

test('REG-110 whatever else it serves asks for a verified token', async () => {
  const open = ['/v1/health', '/v1/readiness', '/openapi.json', '/v1/scopes/catalog'];
  const { json } = await world.host.fetch('/openapi.json');
  const paths = json['paths'] as Record<string, Record<string, object>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => [method.toUpperCase(), path] as const),
  );
  for (const [method, path] of operations) {
    const at = path
      .replace('{resource}', 'policy-sets')
      .replace('{page}', 'policy')
      .replaceAll(/\{[^}]+\}/g, newId());
    for (const headers of [{}, { authorization: 'Bearer a.b.c' }])
      if (!open.includes(path))
        expect([method, path, (await world.host.fetch(at, { method, headers })).status]).toEqual([method, path, 401]);
  }
  expect(operations.length).toBeGreaterThan(60);
});

test('REG-001 REG-043 REG-045 REG-072 REG-077 one organization and one environment, whole, to whoever holds sys:read and is of it', async () => {
  const { org, owner } = await world.org();
  const env = await world.env(owner, org.org_id);
  const by = world.host.by(owner);
  expect(await by.getOrg({ params: { id: org.org_id } })).toEqual({
    org_id: org.org_id,
    slug: org.slug,
    display_name: org.display_name,
    org_domain: `${org.slug}.localhost`,
    status: 'active',
    created_at: expect.any(String),
    updated_at: expect.any(String),
    version: 1,
  });
  expect(await by.getEnv({ params: { env_id: env.env_id } })).toEqual({
    env_id: env.env_id,
    org_id: org.org_id,
    slug: env.slug,
    display_name: `Env ${env.slug}`,
    auth_domain: null,
    status: 'active',
    created_at: expect.any(String),
    updated_at: expect.any(String),
    version: 1,
  });
  const unscoped = world.host.by({ ...owner, scopes: owner.scopes.filter(scope => scope !== 'sys:read') });
  expect(await refusal(unscoped.getOrg({ params: { id: org.org_id } }))).toEqual([403, 'policy_denied']);
  expect(await refusal(unscoped.getEnv({ params: { env_id: env.env_id } }))).toEqual([403, 'policy_denied']);
  expect(await refusal(world.host.by(world.stranger()).getOrg({ params: { id: org.org_id } }))).toEqual([403, 'not_org_member']);
});

test('REG-120 a change whose event cannot be written does not happen', async () => {
  const { org, owner } = await world.org();
  await world.sql`alter table outbox add constraint refused check (event_type <> 'platform:sys:org:updated') not valid`;
  try {
    await expect(world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: 'Other' } })).rejects.toThrow();
  } finally {
    await world.sql`alter table outbox drop constraint refused`;
  }
  expect(await world.host.by(owner).getOrg({ params: { id: org.org_id } })).toEqual(org);
});

test('REG-121 C8 with the bus away the change commits, the failure is logged and the event waits', async () => {
  const { org, owner } = await world.org();
  world.host.busAway = true;
  try {
    expect(await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { display_name: 'Other' } })).toMatchObject({
      display_name: 'Other',
    });
    await expect
      .poll(async () => [
        ...(await world.sql<
          object[]
        >`select distinct relayed, last_error is not null as logged from outbox where attempts > 0 and not relayed`),
      ])
      .toEqual([{ relayed: false, logged: true }]);
  } finally {
    world.host.busAway = false;
  }
  await expect
    .poll(
      () => world.host.bus.some(({ event_type, payload }) => event_type === 'platform:sys:org:updated' && payload['org_id'] === org.org_id),
      { timeout: 20_000 },
    )
    .toBe(true);
});

test('REG-099 the scope catalog is public and cheap to ask again', async () => {
  const first = await world.host.fetch('/v1/scopes/catalog');
  expect([first.status, first.headers['cache-control']]).toEqual([200, 'public, max-age=60']);
  const again = await world.host.fetch('/v1/scopes/catalog', { headers: { 'if-none-match': String(first.headers['etag']) } });
  expect([again.status, again.text]).toEqual([304, '']);
  expect((await world.host.fetch('/v1/scopes/catalog', { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
});

test('REG-027 REG-029 REG-030 REG-031 it keeps these records and no others, and asks these services and no others', async () => {
  const tables = await world.sql<
    { name: string }[]
  >`select table_name as name from information_schema.tables where table_schema = current_schema() order by table_name`;
  // No people, credentials or tokens, no broker's streams, no records of a vertical, no workflow's steps.
  expect(tables.map(({ name }) => name)).toEqual([
    'acceptances',
    'app_instances',
    'audit',
    'audit_anchors',
    'audit_clock',
    'audit_cuts',
    'audit_heads',
    'audit_keys',
    'bindings',
    'branding',
    'consumer_leads',
    'creations',
    'custom_domains',
    'domain_proofs',
    'envs',
    'hostnames',
    'idempotent_answers',
    'inbox',
    'invitations',
    'orgs',
    'outbox',
    'policy_attributes',
    'policy_relations',
    'policy_sets',
    'schema_migrations',
    'service_enablement',
    'service_keys',
    'tombstones',
    'vertical_services',
    'verticals',
    'work_jobs',
    'work_tasks',
  ]);
  const { uses, workloads } = world.host.manifest;
  expect([...new Set([...Object.keys(uses), ...Object.values(workloads).flatMap(needs => Object.keys(needs))])].sort()).toEqual([
    'auth',
    'post',
  ]);
});
