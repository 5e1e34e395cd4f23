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

describe('creating an organization', () => {
  test('REG-009 REG-012 REG-018 REG-028 REG-119 the access model is made in the system realm for the creator, and the answer is 200', async () => {
    const owner = world.stranger();
    const slug = world.slug();
    const answer = await world.host.fetch('/v1/o', {
      method: 'POST',
      persona: owner,
      body: JSON.stringify({ slug, display_name: 'Acme' }),
    });
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { slug, display_name: 'Acme', org_domain: `${slug}.localhost`, status: 'active', version: 1 },
    ]);
    expect(await world.written('platform:sys:org:created', slug)).toMatchObject([{ hold: null }]);
    expect(world.directory.asked('provisionAccess').at(-1)?.input).toMatchObject({
      headers: { 'x-platform-target-env-id': SYSTEM.envId },
      body: { template: 'org', org_id: answer.json['org_id'], owner: owner.id },
    });
  });

  test('REG-019 REG-114 H-31 the very next request on it is authorized', async () => {
    const { org, owner } = await world.org();
    expect(await world.host.by(owner).getOrg({ params: { id: org.org_id } })).toEqual(org);
  });

  test('REG-011 C9 its event is committed with the record, held, and let go only when the access model stands', async () => {
    const slug = world.slug();
    let meanwhile: (string | null)[] = [];
    world.directory.during = async () => {
      meanwhile = (await world.written('platform:sys:org:created', slug)).map(({ hold }) => hold);
    };
    const { org } = await world.org(world.stranger(), slug);
    expect(meanwhile).toEqual([org.org_id]);
    expect((await world.written('platform:sys:org:created', slug)).map(({ hold }) => hold)).toEqual([null]);
  });

  test('REG-047 REG-048 REG-122 its event carries the tenant snapshot, on the system environment', async () => {
    const { org } = await world.org();
    const events = await world.host.events('platform:sys:org:created');
    const payload = {
      env_id: null,
      env_slug: null,
      env_display_name: null,
      org_id: org.org_id,
      org_slug: org.slug,
      org_domain: org.org_domain,
      org_display_name: org.display_name,
      auth_domain: null,
      status: 'active',
    };
    await expect
      .poll(
        () =>
          events.length > 0 &&
          world.host.bus.find(({ event_type, payload: { org_id } }) => event_type === 'platform:sys:org:created' && org_id === org.org_id),
      )
      .toMatchObject({ env_id: SYSTEM.envId, payload });
  });

  test("REG-009 REG-014 REG-141 the creator's access change is told in the policy family", async () => {
    const { owner } = await world.org();
    const rows = await world.sql<
      { stream_family: string; payload: object }[]
    >`select stream_family, payload from outbox where event_type = 'platform:sys:identity:updated'
      and payload->'subject_ids' ? ${owner.id}`;
    expect([...rows]).toEqual([{ stream_family: 'policy', payload: { env_id: SYSTEM.envId, subject_ids: [owner.id] } }]);
  });

  test('REG-004 REG-057 REG-140 REG-144 the audit row carries the correlation id of the click', async () => {
    const owner = world.stranger();
    const { json } = await world.host.fetch('/v1/o', {
      method: 'POST',
      persona: owner,
      headers: { 'x-platform-correlation-id': 'click-0001' },
      body: JSON.stringify({ slug: world.slug(), display_name: 'Acme' }),
    });
    const rows = await world.sql<
      object[]
    >`select service, ts, env_id, action, actor, resource, outcome, correlation_id from audit where correlation_id = 'click-0001'`;
    const row = {
      service: 'sys',
      ts: expect.anything(),
      env_id: SYSTEM.envId,
      action: 'org.created',
      actor: { kind: 'user', id: owner.id },
      resource: { type: 'org', id: json['org_id'] },
      outcome: 'success',
      correlation_id: 'click-0001',
    };
    expect([...rows]).toEqual([row]);
    const events = await world.sql<
      object[]
    >`select env_id, payload from outbox where event_type = 'platform:sys:audit:recorded' and payload->>'correlation_id' = 'click-0001'`;
    expect([...events]).toMatchObject([{ env_id: SYSTEM.envId, payload: { ...row, ts: expect.stringMatching(/^\d{4}-.*Z$/) } }]);
    // So it is with every row there is, whatever it is about: one event, on the system environment.
    const told = await world.sql<object[]>`
      select count(*)::int as events, bool_and(outbox.env_id = ${SYSTEM.envId}) as there from audit left join outbox
        on event_type = 'platform:sys:audit:recorded' and payload->>'audit_id' = audit.audit_id::text
          and payload->>'env_id' = audit.env_id::text
      group by audit.audit_id having count(outbox.id) <> 1 or not bool_and(outbox.env_id = ${SYSTEM.envId})`;
    expect([...told]).toEqual([]);
  });

  test('REG-013 REG-022 REG-023 while identity is away nothing is left behind; a retry makes one, with one event', async () => {
    const slug = world.slug();
    const owner = world.stranger();
    world.directory.down.add('provisionAccess');
    expect(await refusal(world.org(owner, slug))).toEqual([500, 'provisioning_failed']);
    const [left] = await world.sql<[{ orgs: number; events: number; trail: number }]>`
      select (select count(*)::int from orgs where slug = ${slug}) as orgs, (select count(*)::int from outbox
        where payload->>'org_slug' = ${slug}) as events, (select count(*)::int from audit where details->>'slug' = ${slug}) as trail`;
    expect(left).toEqual({ orgs: 0, events: 0, trail: 0 });
    world.directory.down.clear();
    const { org } = await world.org(owner, slug);
    expect(await world.written('platform:sys:org:created', slug)).toHaveLength(1);
    await expect
      .poll(() =>
        world.host.bus
          .filter(({ event_type, payload }) => event_type === 'platform:sys:org:created' && payload['org_slug'] === slug)
          .map(({ payload }) => payload['org_id']),
      )
      .toEqual([org.org_id]);
    expect([...world.directory.models].filter(model => model.endsWith(org.org_id))).toEqual([`org:${org.org_id}`]);
    expect(world.directory.of(owner.id)).toEqual([`platform:org:${org.org_id}:owners`]);
  });

  test('REG-026 of two creates with one slug at once, one wins and the other is 409, of an environment too', async () => {
    const slug = world.slug();
    const outcomes = await Promise.all([refusal(world.org(world.stranger(), slug)), refusal(world.org(world.stranger(), slug))]);
    expect(outcomes.sort()).toEqual([
      [200, 'answered'],
      [409, 'slug_taken'],
    ]);
    const rows = await world.sql<object[]>`select 1 from orgs where slug = ${slug}`;
    expect(rows).toHaveLength(1);
    const { org, owner } = await world.org();
    const envs = await Promise.all([1, 2].map(() => refusal(world.env(owner, org.org_id, 'prod'))));
    expect(envs.sort()).toEqual(outcomes);
    expect(await world.sql<object[]>`select 1 from envs where org_id = ${org.org_id}`).toHaveLength(1);
  });

  test('REG-024 REG-025 an orphan of a crashed create blocks its slug until it is archived, and its held event is never told', async () => {
    const slug = world.slug();
    const orgId = '018f0000-0000-7000-8000-0000000000aa';
    await world.sql`insert into orgs ${world.sql.row({ org_id: orgId, slug, display_name: 'Orphan', org_domain: `${slug}.localhost` })}`;
    await world.sql`insert into outbox ${world.sql.row({
      id: orgId,
      env_id: SYSTEM.envId,
      event_type: 'platform:sys:org:created',
      stream_family: 'sys',
      payload: world.sql.json({ org_id: orgId, org_slug: slug }),
      correlation_id: 'crash',
      publisher_subject: 'sys',
      hold: orgId,
    })}`;
    await world.sql`insert into creations ${world.sql.row({
      subject_kind: 'org',
      subject_id: orgId,
      org_id: orgId,
      caller: world.sql.json({ kind: 'user' }),
      correlation_id: 'crash',
    })}`;
    expect(await refusal(world.org(world.stranger(), slug))).toEqual([409, 'slug_taken']);
    await world.host.by(world.admin()).archiveOrg({ params: { id: orgId } });
    const { org } = await world.org(world.stranger(), slug);
    expect((await world.written('platform:sys:org:created', slug)).map(({ payload }) => payload['org_id'])).toEqual([org.org_id]);
  });

  test('REG-145 REG-146 resolvers are told of an organization and of an environment, each under its scope and when it is there', async () => {
    const heard: Promise<Record<string, unknown>>[] = [];
    await using _ = await world.kv.subscribe('platform:sys:domain:changed', message => {
      const told = JSON.parse(message) as Record<string, unknown>;
      const { org_id = null, env_id = null } = told as { org_id?: string; env_id?: string };
      heard.push(
        world.sql<[{ n: number }]>`select ((select count(*) from orgs where org_id = ${org_id}) + (select count(*) from envs
          where env_id = ${env_id}))::int as n`.then(([{ n }]) => ({ ...told, n })),
      );
    });
    const { org, owner } = await world.org();
    await expect.poll(() => Promise.all(heard)).toMatchObject([{ scope: 'org', org_id: org.org_id, n: 1 }]);
    const env = await world.env(owner, org.org_id);
    await expect.poll(() => Promise.all(heard)).toHaveLength(2);
    expect(await heard[1]).toMatchObject({ scope: 'env', org_id: org.org_id, env_id: env.env_id, n: 2 });
    // What is not committed is told to nobody.
    expect(
      await world.losingCommits('envs', () =>
        world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { display_name: 'Lost' } }),
      ),
    ).toBe('lost');
    await world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { display_name: 'Kept' } });
    await expect.poll(() => heard.length).toBe(3);
  });
});

describe('creating an environment', () => {
  test('REG-010 REG-012 REG-018 REG-119 realm and access model of the new environment are asked for before the answer, which is 200', async () => {
    const { org, owner } = await world.org();
    const { status, json } = await world.host.fetch('/v1/e', {
      method: 'POST',
      persona: owner,
      body: JSON.stringify({ org_id: org.org_id, slug: 'prod', display_name: 'Production' }),
    });
    expect(status).toBe(200);
    const env = json as unknown as { env_id: string };
    expect(await world.written('platform:sys:env:created', env.env_id)).toMatchObject([{ hold: null }]);
    expect(env).toMatchObject({ org_id: org.org_id, slug: 'prod', auth_domain: null, status: 'active' });
    expect(world.directory.realms.get(`auth.prod.${org.slug}.localhost`)).toBe(env.env_id);
    expect(world.directory.asked('provisionAccess').at(-1)?.input).toMatchObject({
      headers: { 'x-platform-target-env-id': SYSTEM.envId },
      body: { template: 'env', org_id: org.org_id, env_id: env.env_id, owner: owner.id },
    });
  });

  test("REG-020 REG-021 REG-142 the platform's policies are there before the access model is asked for", async () => {
    const { org, owner } = await world.org();
    let sets: object[] = [];
    world.directory.during = async () => {
      sets = [
        ...(await world.sql<object[]>`select service, name, origin, mode, policy_sets.version from policy_sets join envs using (env_id)
          where envs.org_id = ${org.org_id}`),
      ];
    };
    const env = await world.env(owner, org.org_id);
    expect(sets).toEqual([{ service: '*', name: 'scope-mirror', origin: 'platform', mode: 'enforced', version: 1 }]);
    const [event] = await world.sql<
      [{ env_id: string; payload: object }]
    >`select env_id, payload from outbox where event_type = 'platform:sys:policy:updated' and env_id = ${env.env_id}`;
    expect(event.payload).toMatchObject({ service: '*', version: 1, mode: 'enforced', seeded: true, policy_set: { name: 'scope-mirror' } });
  });

  test('REG-047 REG-048 REG-126 its event carries the whole snapshot, on its own environment', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id, 'prod');
    await expect
      .poll(() =>
        world.host.bus
          .filter(({ event_type, env_id }) => event_type === 'platform:sys:env:created' && env_id === env.env_id)
          .map(({ payload }) => payload),
      )
      .toEqual([
        {
          env_id: env.env_id,
          env_slug: 'prod',
          env_display_name: 'Env prod',
          org_id: org.org_id,
          org_slug: org.slug,
          org_domain: org.org_domain,
          org_display_name: org.display_name,
          auth_domain: null,
          status: 'active',
        },
      ]);
  });

  test('REG-010 REG-014 access changed in the system realm and in the new one', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const rows = await world.sql<
      { env_id: string }[]
    >`select env_id from outbox where event_type = 'platform:sys:identity:updated' and payload->'subject_ids' ? ${owner.id}
      order by created_at, id`;
    expect(rows.map(({ env_id }) => env_id)).toEqual([SYSTEM.envId, SYSTEM.envId, env.env_id]);
  });

  test('REG-022 REG-023 when its access model cannot be made nothing is left, and a retry starts clean', async () => {
    const { org, owner } = await world.org();
    world.directory.down.add('provisionAccess');
    expect(await refusal(world.env(owner, org.org_id, 'prod'))).toEqual([500, 'provisioning_failed']);
    const rows = await world.sql<
      object[]
    >`select 1 from envs where org_id = ${org.org_id} union all select 1 from outbox where event_type = 'platform:sys:env:created'
      and payload->>'org_id' = ${org.org_id}`;
    expect(rows).toHaveLength(0);
    world.directory.down.clear();
    await world.env(owner, org.org_id, 'prod');
    expect(await world.written('platform:sys:env:created', org.org_id)).toHaveLength(1);
  });

  test('REG-004 REG-142 C9 a recovery that comes first finishes it, and the request tells nothing a second time', async () => {
    const { org, owner } = await world.org();
    world.directory.during = async () => {
      const [begun] = await world.sql<
        { subject_id: string }[]
      >`update creations set started_at = now() - interval '1 hour' where org_id = ${org.org_id} returning subject_id`;
      world.directory.models.add(`env:${begun?.subject_id}`);
      await world.host.clock.advance('10s');
      expect(await world.sql<object[]>`select 1 from creations where org_id = ${org.org_id}`).toHaveLength(0);
    };
    const env = await world.env(owner, org.org_id);
    const rows = await world.sql<{ action: string }[]>`select action from audit where env_id = ${env.env_id}`;
    expect(rows.map(({ action }) => action)).toEqual(['env.created']);
    expect(await world.written('platform:sys:identity:updated', env.env_id)).toHaveLength(1);
    const seeded = await world.sql<object[]>`
      select 1 from outbox where event_type = 'platform:sys:policy:updated' and env_id = ${env.env_id}`;
    expect(seeded).toHaveLength(1);
    expect((await world.written('platform:sys:env:created', env.env_id)).map(({ hold }) => hold)).toEqual([null]);
  });

  test('REG-046 one slug is refused twice in one organization and allowed in two', async () => {
    const [first, second] = [await world.org(), await world.org()];
    await world.env(first.owner, first.org.org_id, 'prod');
    expect(await refusal(world.env(first.owner, first.org.org_id, 'prod'))).toEqual([409, 'slug_taken']);
    expect(await refusal(world.env(second.owner, second.org.org_id, 'prod'))).toEqual([200, 'answered']);
  });

  test('into an organization that is not active it is 409', async () => {
    const { org, owner } = await world.org();
    await world.host.by(world.admin()).updateOrg({ params: { id: org.org_id }, body: { status: 'suspended' } });
    expect(await refusal(world.env(owner, org.org_id))).toEqual([409, 'org_not_active']);
  });
});
