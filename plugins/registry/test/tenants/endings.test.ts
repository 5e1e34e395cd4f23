import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe('archive, suspend, delete', () => {
  test('REG-062 REG-124 REG-143 archiving tells once, with ids only, however often it is asked', async () => {
    const { org, owner } = await world.org();
    const by = world.host.by(owner);
    const archived = await by.archiveOrg({ params: { id: org.org_id } });
    expect(archived).toMatchObject({ status: 'archived', version: 2 });
    expect(await by.archiveOrg({ params: { id: org.org_id } })).toEqual(archived);
    expect((await world.written('platform:sys:org:archived', org.org_id)).map(({ payload }) => payload)).toEqual([{ org_id: org.org_id }]);
  });

  test('REG-063 REG-128 REG-143 so does archiving an environment', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const answers = await Promise.all([1, 2].map(() => world.host.by(owner).archiveEnv({ params: { env_id: env.env_id } })));
    expect(answers.map(({ status }) => status)).toEqual(['archived', 'archived']);
    expect((await world.written('platform:sys:env:archived', env.env_id)).map(({ payload }) => payload)).toEqual([
      { env_id: env.env_id, org_id: org.org_id },
    ]);
  });

  test('REG-025 C34 the slug of what is archived is free again', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id, 'prod');
    await world.host.by(owner).archiveEnv({ params: { env_id: env.env_id } });
    expect((await world.env(owner, org.org_id, 'prod')).env_id).not.toBe(env.env_id);
    await world.host.by(owner).archiveOrg({ params: { id: org.org_id } });
    expect((await world.org(world.stranger(), org.slug)).org.org_id).not.toBe(org.org_id);
  });

  test('REG-064 REG-065 REG-125 REG-129 REG-143 deleting takes everything along and tells it in one transaction', async () => {
    const { org, owner } = await world.org();
    const envs = [await world.env(owner, org.org_id), await world.env(owner, org.org_id)];
    const first = { env_id: envs[0]?.env_id as string };
    await world.host.by(owner).putEnvBranding({ params: { id: first.env_id }, body: { primary_color: '#112233' } });
    await world.host.by(owner).putOrgBranding({ params: { id: org.org_id }, body: { primary_color: '#112233' } });
    await world.app(owner, first.env_id);
    await world.host.by(owner).createBinding({ params: first, body: { app_id: 'crm', slug: 'front' } });
    await world.host
      .by(owner)
      .updateServices({ params: first, body: { services: [{ service: 'web', enabled: true, config: { theme: 1 } }] } });
    await world.host.by(owner).createInvitation({ params: { org_id: org.org_id }, body: { email: 'waiting@example.org' } });
    const outsider = { ...world.stranger() };
    const refused = [
      world.host.by(outsider).deleteOrg({ params: { id: org.org_id } }),
      world.host.by(outsider).deleteEnv({ params: first }),
    ].map(refusal);
    expect(await Promise.all(refused)).toEqual([403, 403].map(status => [status, 'not_org_member']));
    await world.host.by(owner).archiveOrg({ params: { id: org.org_id } });
    await world.host.by(owner).deleteOrg({ params: { id: org.org_id } });
    const ids = [org.org_id, ...envs.map(({ env_id }) => env_id)];
    const left = await world.sql<object[]>`
      select 1 from orgs where org_id = any(${ids}::uuid[]) union all select 1 from envs where org_id = ${org.org_id} union all select 1
        from branding where subject_id = any(${ids}::uuid[])
      union all select 1 from policy_sets where env_id = any(${ids}::uuid[]) union all select 1 from service_enablement
        where env_id = any(${ids}::uuid[]) union all select 1 from app_instances where env_id = any(${ids}::uuid[]) union all
      select 1 from bindings where env_id = any(${ids}::uuid[]) union all select 1 from invitations where org_id = ${org.org_id} union all
      select 1 from hostnames where env_id = any(${ids}::uuid[])`;
    expect(left).toHaveLength(0);
    const [{ transactions }] = await world.sql<
      [{ transactions: number }]
    >`select count(distinct xmin::text)::int as transactions from outbox
      where event_type in ('platform:sys:org:deleted', 'platform:sys:env:deleted') and payload->>'org_id' = ${org.org_id} and not relayed`;
    expect(transactions).toBeLessThanOrEqual(1);
    const gone = (await world.written('platform:sys:env:deleted', org.org_id)).map(({ payload }) => payload);
    expect(gone).toHaveLength(2);
    expect(gone).toEqual(expect.arrayContaining(envs.map(({ env_id }) => ({ env_id, org_id: org.org_id }))));
    expect((await world.written('platform:sys:org:deleted', org.org_id)).map(({ payload }) => payload)).toEqual([{ org_id: org.org_id }]);
  });

  test('H-29 the slug of what was deleted goes to nobody', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id, 'prod');
    await world.host.by(owner).deleteEnv({ params: { env_id: env.env_id } });
    expect(await refusal(world.env(owner, org.org_id, 'prod'))).toEqual([409, 'slug_taken']);
    expect(await world.host.by(owner).slugAvailable({ params: { slug: 'prod' }, query: { kind: 'env', org_id: org.org_id } })).toEqual({
      slug: 'prod',
      available: false,
      reason: 'taken',
    });
    await world.host.by(owner).deleteOrg({ params: { id: org.org_id } });
    expect(await refusal(world.org(world.stranger(), org.slug))).toEqual([409, 'slug_taken']);
    expect(await world.host.by(owner).slugAvailable({ params: { slug: org.slug } })).toEqual({
      slug: org.slug,
      available: false,
      reason: 'taken',
    });
  });

  test('REG-044 REG-048 REG-064 REG-123 G-SYS-02 only a platform administrator suspends and resumes; what is suspended can be read, not changed', async () => {
    const { org, owner } = await world.org();
    const target = { params: { id: org.org_id } };
    expect(await refusal(world.host.by(owner).updateOrg({ ...target, body: { status: 'suspended' } }))).toEqual([
      403,
      'platform_admin_required',
    ]);
    for (const status of ['archived', 'frozen'])
      expect(await refusal(world.host.by(world.admin()).updateOrg({ ...target, body: { status: status as never } }))).toEqual([
        400,
        'validation_failed',
      ]);
    await world.host.by(world.admin()).updateOrg({ ...target, body: { status: 'suspended' } });
    expect(await world.host.by(owner).getOrg(target)).toMatchObject({ status: 'suspended' });
    expect(await refusal(world.host.by(owner).updateOrg({ ...target, body: { display_name: 'Other' } }))).toEqual([409, 'org_suspended']);
    expect(await refusal(world.host.by(owner).putOrgBranding({ ...target, body: {} }))).toEqual([409, 'org_suspended']);
    await world.host.by(world.admin()).updateOrg({ ...target, body: { status: 'active' } });
    expect(await world.host.by(owner).updateOrg({ ...target, body: { display_name: 'Other' } })).toMatchObject({
      display_name: 'Other',
      status: 'active',
    });
    const snapshot = (status: string, org_display_name: string) => ({
      env_id: null,
      env_slug: null,
      env_display_name: null,
      org_id: org.org_id,
      org_slug: org.slug,
      org_domain: org.org_domain,
      org_display_name,
      auth_domain: null,
      status,
    });
    expect((await world.written('platform:sys:org:updated', org.org_id)).map(({ payload }) => payload)).toEqual([
      snapshot('suspended', org.display_name),
      snapshot('active', org.display_name),
      snapshot('active', 'Other'),
    ]);
    // It goes from every state, by who may.
    await world.host.by(world.admin()).updateOrg({ ...target, body: { status: 'suspended' } });
    await world.host.by(owner).deleteOrg(target);
    expect(await refusal(world.host.by(world.admin()).getOrg(target))).toEqual([404, 'org_not_found']);
  });

  test('REG-048 REG-064 REG-079 REG-127 REG-129 REG-143 an environment is suspended the same way; a slug never changes; nothing leaves the archive', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const target = { params: { env_id: env.env_id } };
    expect(await refusal(world.host.by(owner).updateEnv({ ...target, body: { status: 'suspended' } }))).toEqual([
      403,
      'platform_admin_required',
    ]);
    await world.host.by(world.admin()).updateEnv({ ...target, body: { status: 'suspended' } });
    expect(await refusal(world.host.by(owner).updateEnv({ ...target, body: { display_name: 'Other' } }))).toEqual([409, 'env_suspended']);
    expect(
      await refusal(world.host.by(owner).updateServices({ ...target, body: { services: [{ service: 'sys', enabled: false }] } })),
    ).toEqual([409, 'env_suspended']);
    expect((await world.written('platform:sys:env:updated', env.env_id)).map(({ payload }) => payload)).toEqual([
      {
        env_id: env.env_id,
        env_slug: env.slug,
        env_display_name: env.display_name,
        org_id: org.org_id,
        org_slug: org.slug,
        org_domain: org.org_domain,
        org_display_name: org.display_name,
        auth_domain: null,
        status: 'suspended',
      },
    ]);
    expect(await refusal(world.host.by(world.admin()).updateEnv({ ...target, body: { slug: 'another' } }))).toEqual([
      400,
      'immutable_field',
    ]);
    await world.host.by(owner).archiveEnv(target);
    expect(await refusal(world.host.by(world.admin()).updateEnv({ ...target, body: { status: 'active' } }))).toEqual([
      409,
      'record_archived',
    ]);
    await world.host.by(owner).deleteEnv(target);
    expect(await refusal(world.host.by(world.admin()).getEnv(target))).toEqual([404, 'env_not_found']);
    expect((await world.written('platform:sys:env:deleted', env.env_id)).map(({ payload }) => payload)).toEqual([
      { env_id: env.env_id, org_id: org.org_id },
    ]);
  });

  test('F-13 every change of a state is where other services read it before the answer, of an organization for each of its environments', async () => {
    const { org, owner, env } = await world.tenant();
    const other = await world.env(owner, org.org_id);
    const ask = world.host.by(world.service('func', 'sys:environments:read'));
    const states = async () => Promise.all([env, other].map(({ env_id }) => world.kv.call('GET', `env-state:{${env_id}}`)));
    const admin = world.host.by(world.admin());
    expect((await ask.environmentState({ params: { env_id: env.env_id } })).state).toBe('active');
    await admin.updateEnv({ params: { env_id: env.env_id }, body: { status: 'suspended' } });
    expect(await states()).toEqual(['suspended', null]);
    await admin.updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    expect(await states()).toEqual(['suspended', 'suspended']);
    await admin.updateOrg({ params: { id: org.org_id }, body: { status: 'active' } });
    expect(await states()).toEqual(['suspended', 'active']);
    await world.host.by(owner).archiveEnv({ params: { env_id: other.env_id } });
    await admin.deleteEnv({ params: { env_id: env.env_id } });
    expect(await states()).toEqual(['absent', 'archived']);
    // A question never writes over what a change has written.
    await world.kv.call('SET', `env-state:{${other.env_id}}`, 'suspended');
    expect((await ask.environmentState({ params: { env_id: other.env_id } })).state).toBe('archived');
    expect(await states()).toEqual(['absent', 'suspended']);
    expect((await ask.environmentState({ params: { env_id: 'nonsense' } })).state).toBe('absent');
  });

  test('F-08 of four changes at once that name one version a single one succeeds; an organization, an environment and a policy set alike', async () => {
    const { org, owner, env } = await world.tenant();
    const four = async (path: string, body: object, version: number, persona = owner) => {
      const send = () =>
        world.host.fetch(path, { method: 'PUT', persona, headers: { 'if-match': `"${version}"` }, body: JSON.stringify(body) });
      return (await Promise.all([send(), send(), send(), send()])).map(({ status }) => status).sort();
    };
    expect(await four(`/v1/org/${org.org_id}`, { display_name: 'New' }, 1)).toEqual([200, 412, 412, 412]);
    expect(await four(`/v1/env/${env.env_id}`, { display_name: 'New' }, 1)).toEqual([200, 412, 412, 412]);
    const admin = { ...world.admin(), scopes: [...world.admin().scopes, 'sys:policy:admin'] };
    const policies = `/v1/admin/policy-sets?target_env_id=${env.env_id}`;
    const set = { name: 'house', policies: 'permit(principal, action, resource);' };
    expect((await world.host.fetch(policies, { method: 'POST', persona: admin, body: JSON.stringify(set) })).status).toBeLessThan(300);
    expect(await four(policies, set, 1, admin)).toEqual([200, 412, 412, 412]);
    for (const path of [`/v1/org/${org.org_id}`, `/v1/env/${env.env_id}`])
      expect((await world.host.fetch(path, { method: 'DELETE', persona: owner, headers: { 'if-match': '"1"' } })).json['code']).toBe(
        'precondition_failed',
      );
    const sets = (await world.host.fetch(policies, { persona: admin })).json['items'] as { policy_set_id: string; origin: string }[];
    const kept = sets.find(({ origin }) => origin === 'tenant');
    const removal = (version: number) =>
      world.host.fetch(`${policies}&id=${kept?.policy_set_id}`, {
        method: 'DELETE',
        persona: admin,
        headers: { 'if-match': `"${version}"` },
      });
    expect((await removal(1)).json['code']).toBe('precondition_failed');
    expect((await removal(2)).status).toBe(204);
  });

  test('F-08 an organization created again under its Idempotency-Key is the same one', async () => {
    const owner = world.stranger();
    const create = () =>
      world.host.fetch('/v1/o', {
        method: 'POST',
        persona: owner,
        headers: { 'idempotency-key': 'org-once' },
        body: JSON.stringify({ slug: 'once-only', display_name: 'Once' }),
      });
    const [first, again] = [await create(), await create()];
    expect([first.status, again.status, again.headers['idempotent-replay']]).toEqual([200, 200, 'true']);
    expect(again.json).toEqual(first.json);
  });

  test("REG-032 REG-033 REG-036 G-SYS-02 the platform's own records are there under their ids, and stay", async () => {
    const by = world.host.by(world.admin());
    const [org, env] = [{ params: { id: SYSTEM.orgId } }, { params: { env_id: SYSTEM.envId } }];
    expect(await by.getOrg(org)).toMatchObject({ slug: 'sys', status: 'active' });
    expect(await by.getEnv(env)).toMatchObject({ slug: 'ops', org_id: SYSTEM.orgId });
    const calls = [
      () => by.archiveOrg(org),
      () => by.deleteOrg(org),
      () => by.updateOrg({ ...org, body: { status: 'suspended' } }),
      () => by.archiveEnv(env),
      () => by.deleteEnv(env),
      () => by.updateEnv({ ...env, body: { status: 'suspended' } }),
    ];
    for (const call of calls) expect(await refusal(call())).toEqual([409, 'system_record_protected']);
  });
});
