import { readFileSync } from 'node:fs';
import { SYSTEM } from '@platform/sdk';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => {
  world.directory.down.clear();
  world.directory.during = async () => undefined;
});

/** A process that died inside a create: what it had committed stays, what it would have done next does not happen. */
async function crashInside(create: () => Promise<unknown>, { provisioned }: { provisioned: boolean }): Promise<void> {
  const { promise: never } = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const models = new Set(world.directory.models);
  world.directory.during = async () => {
    reached.resolve();
    await never;
  };
  void create().catch(() => undefined);
  await reached.promise;
  world.directory.during = async () => undefined;
  if (provisioned) {
    const [row] = await world.sql<
      { subject_kind: string; subject_id: string }[]
    >`select subject_kind, subject_id from creations order by started_at desc limit 1`;
    world.directory.models.add(`${row?.subject_kind}:${row?.subject_id}`);
  } else expect(world.directory.models).toEqual(models);
  await world.sql`update creations set started_at = now() - interval '1 minute'`;
}

describe('a create whose process died', () => {
  test('REG-011 REG-019 after its access model stood is finished by another: event, access change and audit row, once', async () => {
    const slug = world.slug();
    const owner = world.stranger();
    await crashInside(() => world.org(owner, slug), { provisioned: true });
    expect((await world.written('platform:sys:org:created', slug)).map(({ hold }) => hold)).not.toEqual([null]);
    for (let time = 0; time < 2; time++) await world.host.clock.advance('10s');
    const [org] = await world.sql<{ org_id: string }[]>`select org_id from orgs where slug = ${slug}`;
    expect((await world.written('platform:sys:org:created', slug)).map(({ hold }) => hold)).toEqual([null]);
    const trail = await world.sql<object[]>`select action, actor from audit where resource->>'id' = ${org?.org_id ?? ''}`;
    expect([...trail]).toEqual([{ action: 'org.created', actor: { kind: 'user', id: owner.id } }]);
    const told = await world.sql<
      object[]
    >`select 1 from outbox where event_type = 'platform:sys:identity:updated' and payload->'subject_ids' ? ${owner.id}`;
    expect(told).toHaveLength(1);
  });

  test('REG-024 before that leaves an orphan which is listed, told to nobody, and ends when an operator archives it', async () => {
    const { org, owner } = await world.org();
    const slug = world.slug();
    await crashInside(() => world.env(owner, org.org_id, slug), { provisioned: false });
    await world.host.clock.advance('10s');
    expect((await world.written('platform:sys:env:created', org.org_id)).every(({ hold }) => hold !== null)).toBe(true);
    expect(await refusal(world.env(owner, org.org_id, slug))).toEqual([409, 'slug_taken']);
    const admin = world.host.by(world.admin());
    const listed = (await admin.listUnfinished({})).items.find(({ name }) => name === slug);
    expect(listed).toMatchObject({ kind: 'env', work: 'create', blocked_by: expect.stringContaining('access model') });
    await admin.archiveEnv({ params: { env_id: listed?.id as string } });
    expect((await admin.listUnfinished({})).items.map(({ name }) => name)).not.toContain(slug);
    await world.env(owner, org.org_id, slug);
    expect(await world.written('platform:sys:env:created', org.org_id)).toHaveLength(1);
  });

  test('F-21 REG-025 an orphan that is deleted leaves no tombstone: its slug is free, of an organization as of an environment', async () => {
    const admin = world.host.by(world.admin());
    const orphan = async (name: string) => (await admin.listUnfinished({})).items.find(item => item.name === name)?.id as string;
    const [orgSlug, envSlug] = [world.slug(), world.slug()];
    const { org, owner } = await world.org();
    await crashInside(() => world.env(owner, org.org_id, envSlug), { provisioned: false });
    await admin.deleteEnv({ params: { env_id: await orphan(envSlug) } });
    expect(await world.env(owner, org.org_id, envSlug)).toMatchObject({ slug: envSlug });
    await crashInside(() => world.org(world.stranger(), orgSlug), { provisioned: false });
    await admin.deleteOrg({ params: { id: await orphan(orgSlug) } });
    expect((await world.org(world.stranger(), orgSlug)).org).toMatchObject({ slug: orgSlug });
  });

  test('REG-022 a provisioning that was given up and still succeeds over there is undone there too', async () => {
    world.directory.down.add('provisionAccess');
    expect(await refusal(world.org())).toEqual([500, 'provisioning_failed']);
    const [row] = await world.sql<
      { subject_id: string }[]
    >`select key as subject_id from work_tasks where name = 'followTenant' order by created_at desc limit 1`;
    world.directory.down.clear();
    world.directory.models.add(`org:${row?.subject_id}`);
    await world.settled(['followTenant'], { now: true });
    expect(world.directory.models.has(`org:${row?.subject_id}`)).toBe(false);
    expect(await world.sql`select 1 from work_tasks where name = 'followTenant'`).toHaveLength(0);
  });
});

describe('what the identity service has still to follow', () => {
  test('H-32 REG-065 a delete ends while identity is away, says what it waits for, and leaves nothing over there in the end', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id, 'prod');
    world.directory.down.add('removeAccess');
    await world.host.by(owner).deleteOrg({ params: { id: org.org_id } });
    expect(await refusal(world.host.by(world.admin()).getOrg({ params: { id: org.org_id } }))).toEqual([404, 'org_not_found']);
    const waiting = (await world.host.by(world.admin()).listUnfinished({})).items;
    expect(waiting.filter(({ id }) => [org.org_id, env.env_id].includes(id))).toMatchObject([{ work: 'clean_up' }, { work: 'clean_up' }]);
    // Whoever waits for the answer waits for one subject's refusal, not for each.
    const asked = world.directory.asked('removeAccess').map(({ input }) => input.params?.['id'] ?? '');
    expect(new Set(asked.filter(id => [org.org_id, env.env_id].includes(id))).size).toBe(1);
    expect(waiting.map(({ blocked_by }) => blocked_by)).toContain('503 auth/store_away');
    world.directory.down.clear();
    await world.settled(['followTenant'], { now: true });
    expect([...world.directory.models].filter(model => model.endsWith(org.org_id) || model.endsWith(env.env_id))).toEqual([]);
    expect([...world.directory.realms.values()]).not.toContain(env.env_id);
    expect((await world.host.by(world.admin()).listUnfinished({})).items).toEqual([]);
  });

  test('what waited in the tables before is carried over and done', async () => {
    const { org } = await world.org();
    const [gone, person] = [crypto.randomUUID(), world.stranger()];
    world.directory.models.add(`org:${gone}`);
    await world.statement(`
      create table identity_follow_ups (subject_kind text, subject_id uuid, org_id uuid, name text, asked uuid, asked_at timestamptz,
        due_at timestamptz, attempts int, last_error text);
      create table removals (removal_id uuid, org_id uuid, user_id text, caller jsonb, correlation_id text, begun_at timestamptz);
      create index acceptances_oldest on acceptances (begun_at);
      insert into identity_follow_ups values ('org', '${gone}', '${gone}', 'gone', gen_random_uuid(), now(), '2020-01-01', 3,
        'auth/store_away');
      insert into removals values (gen_random_uuid(), '${org.org_id}', '${person.id}',
        '{"kind": "machine", "subject": "s", "userId": null}', 'c', '2020-01-01')`);
    await world.statement(readFileSync(new URL('../../migrations/0014_follow_up_tasks.sql', import.meta.url), 'utf8'));
    await world.settled(['followTenant', 'settleRemoval']);
    expect(world.directory.models.has(`org:${gone}`)).toBe(false);
    expect((await world.written('platform:sys:membership:removed', org.org_id)).map(({ payload }) => payload)).toEqual([
      { org_id: org.org_id, user_id: person.id },
    ]);
    expect(await world.sql`select 1 from work_tasks where name in ('followTenant', 'settleRemoval')`).toHaveLength(0);
  });

  test('an operator can have it tried at once, however much waits before it', async () => {
    const { org, owner } = await world.org();
    world.directory.down.add('removeAccess');
    await world.host.by(owner).deleteOrg({ params: { id: org.org_id } });
    world.directory.down.clear();
    await world.statement(`
      insert into work_tasks (task_id, name, lane, key, payload, correlation_id, subject, due_at, created_at)
      select gen_random_uuid(), 'followTenant', '', 'older-' || n, '{}', 'c', 'sys', '2100-01-01', '2020-01-01'
        from generate_series(1, 1000) n`);
    expect(await world.host.by(world.admin()).retryUnfinished({ params: { id: org.org_id } })).toEqual({ done: true });
    await world.statement("delete from work_tasks where key like 'older-%'");
    expect((await world.host.by(world.admin()).listUnfinished({})).items).toEqual([]);
    expect(await refusal(world.host.by(world.admin()).retryUnfinished({ params: { id: org.org_id } }))).toEqual([
      404,
      'nothing_unfinished',
    ]);
    expect(await refusal(world.host.by(owner).listUnfinished({}))).toEqual([403, 'policy_denied']);
    // An operator's push is in the trail, and what had nothing to push is not (REG-004).
    const { items } = await world.host.by(world.admin()).listAudit({ query: { env_id: SYSTEM.envId, action: 'unfinished.retried' } });
    expect(items.filter(({ resource }) => resource?.id === org.org_id)).toMatchObject([{ actor: { kind: 'user' }, outcome: 'success' }]);
  });

  test('G-K-15 sign-in hosts follow the domain of the organization, and are free when it is archived', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id, 'prod');
    const host = () => [...world.directory.realms].find(([, envId]) => envId === env.env_id)?.[0];
    expect(host()).toBe(`auth.prod.${org.org_domain}`);
    await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { org_domain: `${org.slug}.example` } });
    expect(host()).toBe(`auth.prod.${org.slug}.example`);
    await world.host.by(owner).archiveOrg({ params: { id: org.org_id } });
    expect(host()).toBe(`${env.env_id}.released.invalid`);
  });
});

describe('two at once', () => {
  test('REG-062 a change that meets an archive does not bring it back', async () => {
    for (let round = 0; round < 5; round++) {
      const { org, owner } = await world.org();
      const by = world.host.by(owner);
      await Promise.allSettled([
        by.archiveOrg({ params: { id: org.org_id } }),
        by.updateOrg({ params: { id: org.org_id }, body: { display_name: 'Other' } }),
      ]);
      expect(await by.getOrg({ params: { id: org.org_id } })).toMatchObject({ status: 'archived' });
    }
  });

  test('REG-073 REG-078 changes of different members both stay', async () => {
    const { org, owner } = await world.org();
    const by = world.host.by(owner);
    const target = { params: { id: org.org_id } };
    await Promise.all([
      by.updateOrg({ ...target, body: { display_name: 'Renamed' } }),
      by.updateOrg({ ...target, body: { org_domain: `${org.slug}.example` } }),
    ]);
    expect(await by.getOrg(target)).toMatchObject({ display_name: 'Renamed', org_domain: `${org.slug}.example`, version: 3 });
    const env = { params: { env_id: (await world.env(owner, org.org_id)).env_id } };
    await Promise.all([
      by.updateEnv({ ...env, body: { display_name: 'Renamed' } }),
      by.updateEnv({ ...env, body: { auth_domain: `login.${org.slug}.example` } }),
    ]);
    expect(await by.getEnv(env)).toMatchObject({ display_name: 'Renamed', auth_domain: `login.${org.slug}.example`, version: 3 });
  });

  test('an environment is not born into an organization that goes away meanwhile', async () => {
    for (let round = 0; round < 5; round++) {
      const { org, owner } = await world.org();
      const outcomes = await Promise.all([
        refusal(world.env(owner, org.org_id)),
        refusal(world.host.by(world.admin()).deleteOrg({ params: { id: org.org_id } })),
      ]);
      expect(outcomes[1]).toEqual([200, 'answered']);
      expect(await world.sql`select 1 from envs where org_id = ${org.org_id}`).toHaveLength(0);
      const told = await world.sql<
        { event_type: string; payload: { env_id: string } }[]
      >`select event_type, payload from outbox where event_type like 'platform:sys:env:%' and payload->>'org_id' = ${org.org_id}`;
      const of = (event: string) => told.filter(({ event_type }) => event_type === event).map(({ payload }) => payload.env_id);
      expect(of('platform:sys:env:deleted')).toEqual(expect.arrayContaining(of('platform:sys:env:created')));
    }
  });

  test('two organizations never hold one domain', async () => {
    const domain = 'shared.example';
    const outcomes = await Promise.all(
      [1, 2].map(() =>
        refusal(world.host.by(world.stranger()).createOrg({ body: { slug: world.slug(), display_name: 'X', org_domain: domain } })),
      ),
    );
    expect(outcomes.sort()).toEqual([
      [200, 'answered'],
      [409, 'hostname_taken'],
    ]);
  });
});

test('G-SYS-02 what belongs to a suspended organization can be read, not changed', async () => {
  const { org, owner } = await world.org();
  const env = await world.env(owner, org.org_id);
  await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
  const by = world.host.by(owner);
  const target = { params: { env_id: env.env_id } };
  expect(await by.getEnv(target)).toMatchObject({ status: 'active' });
  expect(await refusal(by.updateEnv({ ...target, body: { display_name: 'Other' } }))).toEqual([409, 'org_suspended']);
  expect(await refusal(by.putEnvBranding({ params: { id: env.env_id }, body: {} }))).toEqual([409, 'org_suspended']);
  expect(await refusal(by.updateServices({ ...target, body: { services: [{ service: 'sys', enabled: false }] } }))).toEqual([
    409,
    'org_suspended',
  ]);
  expect(await refusal(world.env(owner, org.org_id))).toEqual([409, 'org_not_active']);
  expect(
    await world.host
      .by(world.service('proxy', 'sys:instances:read'))
      .resolveHostname({ query: { hostname: `auth.${env.slug}.${org.org_domain}` } }),
  ).toMatchObject({
    status: 'suspended',
    env_id: env.env_id,
  });
  await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'active' } });
  expect(await by.updateEnv({ ...target, body: { display_name: 'Other' } })).toMatchObject({ display_name: 'Other' });
  // Services that keep snapshots of environments heard it of this one.
  expect((await world.written('platform:sys:env:updated', env.env_id)).map(({ payload }) => payload['status'])).toEqual([
    'suspended',
    'active',
    'active',
  ]);
});

test('H-32 the preview of a delete counts what goes, names its hosts and says what stands in the way', async () => {
  const { org, owner } = await world.org();
  const by = world.host.by(owner);
  const [env, other] = [await world.env(owner, org.org_id, 'prod'), await world.env(owner, org.org_id, 'test')];
  await by.createApplication({ params: { env_id: env.env_id }, body: { app_id: 'shop', slug: 'shop', name: 'Shop', auth_mode: 'open' } });
  await by.createBinding({ params: { env_id: other.env_id }, body: { app_id: 'shop', slug: 'shop' } });
  await by.createInvitation({ params: { org_id: org.org_id }, body: { email: 'guest@example.org' } });
  await by.putOrgBranding({ params: { id: org.org_id }, body: { primary_color: '#112233' } });
  const preview = await by.previewOrgDeletion({ params: { id: org.org_id } });
  expect(preview).toMatchObject({ counts: { environments: 2, applications: 1, bindings: 1, invitations: 1, branding: 1 }, blocked_by: [] });
  expect(preview.environments.map(({ slug }) => slug)).toEqual(['prod', 'test']);
  expect(preview.hostnames).toEqual([`auth.prod.${org.org_domain}`, `auth.test.${org.org_domain}`, `shop.prod.${org.org_domain}`]);
  expect(await by.previewEnvDeletion({ params: { env_id: other.env_id } })).toMatchObject({
    counts: { bindings: 1 },
    hostnames: [`auth.test.${org.org_domain}`],
  });
  const system = await world.host.by(world.admin()).previewOrgDeletion({ params: { id: SYSTEM.orgId } });
  expect(system.blocked_by.map(({ code }) => code)).toEqual(['system_record_protected']);
  expect(await refusal(world.host.by(world.stranger()).previewOrgDeletion({ params: { id: org.org_id } }))).toEqual([
    403,
    'not_org_member',
  ]);
});
