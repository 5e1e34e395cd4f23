import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EVERYTHING, refusal, World } from '../fixtures/world.ts';

const NOWHERE = '018f0000-0000-7000-8000-00000000dead';
let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => world.directory.down.clear());

describe('who may touch an organization', () => {
  test.each(['owners', 'admins', 'viewers'])('REG-114 REG-115 C5 its group %s proves membership', async group => {
    const { org } = await world.org();
    const member = world.stranger();
    world.directory.groups(member.id, `platform:org:${org.org_id}:${group}`);
    expect(await world.host.by(member).getOrg({ params: { id: org.org_id } })).toMatchObject({ org_id: org.org_id });
  });

  test.each([
    'platform:org:owner',
    'platform:org:admin',
    'platform:org:viewer',
    'owners',
    'platform:org:ORG:members',
    'x:platform:org:ORG:owners',
    'platform:org:ORG:owners:x',
  ])('REG-116 %s proves nothing', async name => {
    const { org } = await world.org();
    const member = world.stranger();
    world.directory.groups(member.id, name.replace('ORG', org.org_id));
    expect(await refusal(world.host.by(member).getOrg({ params: { id: org.org_id } }))).toEqual([403, 'not_org_member']);
  });

  test('REG-151 a stranger gets the same 403 for what is there and what is not; an administrator of the platform gets the truth', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const by = world.host.by(world.stranger());
    const answers = await Promise.all(
      [org.org_id, NOWHERE].map(id =>
        by
          .getOrg({ params: { id } })
          .catch((error: { status: number; code: string; detail: string }) => [error.status, error.code, error.detail]),
      ),
    );
    expect(answers).toEqual([
      [403, 'not_org_member', 'caller is not a member of the org'],
      [403, 'not_org_member', 'caller is not a member of the org'],
    ]);
    for (const id of [env.env_id, NOWHERE]) expect(await refusal(by.getEnv({ params: { env_id: id } }))).toEqual([403, 'not_org_member']);
    const admin = world.host.by(world.admin());
    expect(await refusal(admin.getOrg({ params: { id: NOWHERE } }))).toEqual([404, 'org_not_found']);
    expect(await refusal(admin.getEnv({ params: { env_id: NOWHERE } }))).toEqual([404, 'env_not_found']);
  });

  test('F-06 hosts, app instances, sign-in hosts and free slugs of a tenant are its own affair: a stranger gets 403 for what is there and what is not', async () => {
    const { org, owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const questions = (by: ReturnType<typeof world.host.by>, envId: string, instance: string, hostname: string, orgId: string) => [
      by.resolveHostname({ query: { hostname } }),
      by.appInstanceScopes({ query: { app_instance_id: instance } }),
      by.appInstanceAuthMode({ query: { hostname } }),
      by.authDomain({ params: { id: envId } }),
      by.appCustomDomain({ params: { id: envId }, query: { app_instance_id: instance } }),
      by.slugAvailable({ params: { slug: 'prod' }, query: { kind: 'env', org_id: orgId } }),
    ];
    const ask = (persona: Parameters<typeof world.host.by>[0], ...about: readonly [string, string, string, string]) =>
      Promise.all(questions(world.host.by(persona), ...about).map(question => refusal(question)));
    const there = [env.env_id, app.app_instance_id, app.hostname, org.org_id] as const;
    const answered = Array.from({ length: 6 }, () => [200, 'answered']);
    const refused = answered.map(() => [403, 'not_org_member']);
    expect(await ask(world.stranger(), ...there)).toEqual(refused);
    expect(await ask(world.stranger(), NOWHERE, NOWHERE, 'nobody.example.org', NOWHERE)).toEqual(refused);
    expect(await ask(as.delegated((await world.tenant()).env.env_id, ...EVERYTHING), ...there)).toEqual(refused);
    expect(await ask(owner, ...there)).toEqual(answered);
    const guest = world.stranger();
    world.directory.groups(guest.id, `platform:env:${env.env_id}:viewers`);
    expect((await ask(guest, ...there)).slice(0, 5)).toEqual(answered.slice(0, 5));
    expect((await ask(world.service('bff', 'sys:instances:read'), ...there)).slice(0, 5)).toEqual(answered.slice(0, 5));
    // Where the platform itself answers is no tenant's affair.
    expect(await refusal(world.host.by(world.stranger()).resolveHostname({ query: { hostname: 'console.ops.sys.localhost' } }))).toEqual([
      200,
      'answered',
    ]);
  });

  test('REG-112 a platform administrator needs no group', async () => {
    const { org } = await world.org();
    expect(await world.host.by(world.admin()).getOrg({ params: { id: org.org_id } })).toMatchObject({ org_id: org.org_id });
  });

  test('REG-021 REG-113 a delegated token reaches the organization of its environment, and no other', async () => {
    const [{ org, owner }, other] = [await world.org(), await world.org()];
    const env = await world.env(owner, org.org_id);
    const by = world.host.by(as.delegated(env.env_id, ...EVERYTHING));
    // Nothing was asked in the environment before.
    expect(await by.getEnv({ params: { env_id: env.env_id } })).toMatchObject({ env_id: env.env_id });
    expect(await by.getOrg({ params: { id: org.org_id } })).toMatchObject({ org_id: org.org_id });
    expect(await refusal(by.getOrg({ params: { id: other.org.org_id } }))).toEqual([403, 'not_org_member']);
    expect(await refusal(by.deleteOrg({ params: { id: org.org_id } }))).toEqual([403, 'not_org_member']);
  });

  test('levels: viewers read, administrators change, owners archive and delete', async () => {
    const { org } = await world.org();
    const member = (group: string) => {
      const person = world.stranger();
      world.directory.groups(person.id, `platform:org:${org.org_id}:${group}`);
      return world.host.by(person);
    };
    const target = { params: { id: org.org_id } };
    expect(await refusal(member('viewers').updateOrg({ ...target, body: {} }))).toEqual([403, 'not_org_member']);
    expect(await refusal(member('admins').archiveOrg(target))).toEqual([403, 'not_org_member']);
    expect(await member('admins').updateOrg({ ...target, body: { display_name: 'Changed' } })).toMatchObject({ display_name: 'Changed' });
    expect(await member('owners').archiveOrg(target)).toMatchObject({ status: 'archived' });
  });

  test('REG-114 while identity is away membership is unknown, not absent', async () => {
    const { org, owner } = await world.org();
    world.directory.down.add('tenantsOf');
    expect(await refusal(world.host.by(owner).getOrg({ params: { id: org.org_id } }))).toEqual([503, 'identity_unavailable']);
  });

  test('REG-071 REG-076 listings show what the caller reaches', async () => {
    const [first, second] = [await world.org(), await world.org()];
    const env = await world.env(first.owner, first.org.org_id);
    await world.env(second.owner, second.org.org_id);
    const by = world.host.by(first.owner);
    expect((await by.listOrgs({})).items.map(({ org_id }) => org_id)).toEqual([first.org.org_id]);
    expect((await by.listEnvs({})).items.map(({ env_id }) => env_id)).toEqual([env.env_id]);
    expect((await by.listEnvs({ query: { org_id: first.org.org_id } })).items.map(({ env_id }) => env_id)).toEqual([env.env_id]);
    expect(await refusal(by.listEnvs({ query: { org_id: second.org.org_id } }))).toEqual([403, 'not_org_member']);
  });

  test('REG-071 REG-076 REG-080 REG-087 REG-090 REG-091 REG-092 REG-098 REG-100 reading takes sys:read; the look is changed by its administrators alone', async () => {
    const { org, owner, env } = await world.tenant();
    const [ofOrg, ofEnv] = [{ params: { id: org.org_id } }, { params: { id: env.env_id } }];
    const holding = (...scopes: string[]) => world.host.by({ ...owner, scopes });
    const reads = (by: ReturnType<typeof holding>) => [
      by.listOrgs({}),
      by.listEnvs({}),
      by.slugAvailable({ params: { slug: 'some-slug' } }),
      by.listMemberships({ params: { org_id: org.org_id } }),
      by.orgBranding(ofOrg),
      by.envBranding(ofEnv),
      by.mergedBranding(ofEnv),
      by.bootstrap({}),
      by.listVerticals({}),
    ];
    const outcomes = (calls: Promise<unknown>[]) => Promise.all(calls.map(refusal));
    const [denied, answered] = [
      [403, 'policy_denied'],
      [200, 'answered'],
    ];
    expect(await outcomes(reads(holding('sys:read')))).toEqual(Array(9).fill(answered));
    expect(await outcomes(reads(holding(...EVERYTHING.filter(scope => scope !== 'sys:read'))))).toEqual(Array(9).fill(denied));
    const writes = (by: ReturnType<typeof holding>) => [
      by.putOrgBranding({ ...ofOrg, body: {} }),
      by.putEnvBranding({ ...ofEnv, body: {} }),
    ];
    expect(await outcomes(writes(holding('sys:read', 'sys:org:admin')))).toEqual([answered, denied]);
    expect(await outcomes(writes(holding('sys:read', 'sys:env:admin')))).toEqual([denied, answered]);
  });

  test('G-K-04 a listing pages through everything once, and refuses a foreign cursor', async () => {
    const { org, owner } = await world.org();
    const made = [];
    for (let index = 0; index < 5; index++) made.push((await world.env(owner, org.org_id)).env_id);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await world.host.by(owner).listEnvs({ query: { org_id: org.org_id, limit: 2, ...(cursor ? { cursor } : {}) } });
      seen.push(...page.items.map(({ env_id }) => env_id));
      cursor = page.next_cursor;
    } while (cursor);
    expect(seen).toEqual(made.reverse());
    expect(await refusal(world.host.by(owner).listEnvs({ query: { cursor: 'nonsense' } }))).toEqual([400, 'invalid_cursor']);
  });

  test('KRN-007 the organization is that of the environment, whatever headers and query claim', async () => {
    const [mine, other] = [await world.org(), await world.org()];
    const [env, foreign] = [await world.env(mine.owner, mine.org.org_id), await world.env(other.owner, other.org.org_id)];
    const ask = (id: string) =>
      world.host.fetch(`/v1/env/${id}?target_org_id=${mine.org.org_id}`, {
        persona: mine.owner,
        headers: { 'x-platform-org-id': mine.org.org_id, 'x-platform-env-id': env.env_id },
      });
    expect(await ask(foreign.env_id)).toMatchObject({ status: 403, json: { code: 'not_org_member' } });
    const claimed = await world.host.fetch(`/v1/env/${env.env_id}?target_org_id=${other.org.org_id}`, {
      persona: mine.owner,
      headers: { 'x-platform-org-id': other.org.org_id },
    });
    // Nor is it taken from a token that names one.
    const named = world.host.mint.token(mine.owner, 'sys', { org_id: other.org.org_id });
    expect((await world.host.fetch(`/v1/env/${foreign.env_id}`, { token: named })).json['code']).toBe('not_org_member');
    expect((await world.host.fetch(`/v1/env/${env.env_id}`, { token: named })).json['org_id']).toBe(mine.org.org_id);
    expect(claimed).toMatchObject({ status: 200, json: { org_id: mine.org.org_id } });
    const snapshot = await world.host.by(world.service('func', 'tenants:read')).tenant({ params: { env_id: foreign.env_id } });
    expect(snapshot.org_id).toBe(other.org.org_id);
  });

  test('REG-087 members come live from identity, with their highest level', async () => {
    const { org, owner } = await world.org();
    const both = world.stranger();
    world.directory.groups(both.id, `platform:org:${org.org_id}:viewers`, `platform:org:${org.org_id}:admins`);
    const { items } = await world.host.by(owner).listMemberships({ params: { org_id: org.org_id } });
    expect(items.map(({ user_id, access, groups }) => [user_id, access, groups.length])).toEqual([
      [owner.id, 'owner', 1],
      [both.id, 'admin', 2],
    ]);
  });
});

describe('bootstrap', () => {
  test("REG-003 REG-098 it lists organizations and environments of the caller's groups with the level, and the features", async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const member = world.stranger();
    world.directory.groups(member.id, `platform:env:${env.env_id}:viewers`);
    expect(await world.host.by(owner).bootstrap({})).toMatchObject({
      user_id: owner.id,
      platform_admin: false,
      orgs: [{ org_id: org.org_id, access: 'owner', envs: [{ env_id: env.env_id }] }],
      system: { org_id: SYSTEM.orgId, env_id: SYSTEM.envId },
    });
    expect((await world.host.by(member).bootstrap({})).orgs).toMatchObject([
      { org_id: org.org_id, access: 'viewer', envs: [{ env_id: env.env_id }] },
    ]);
    expect((await world.host.by(world.stranger()).bootstrap({})).orgs).toEqual([]);
    expect((await world.host.by(world.admin()).bootstrap({})).orgs.map(({ org_id }) => org_id)).toContain(org.org_id);
  });

  test('REG-098 an outage of identity is 503 and never an empty list', async () => {
    const { owner } = await world.org();
    world.directory.down.add('tenantsOf');
    const answer = await world.host.fetch('/v1/bootstrap', { persona: owner });
    expect([answer.status, answer.json['code'], answer.headers['retry-after']]).toEqual([503, 'identity_unavailable', '2']);
  });
});

describe('branding', () => {
  test('NTF-025 REG-002 REG-054 REG-055 REG-056 REG-090 REG-091 REG-092 the override wins where it is not empty', async () => {
    const { org, owner } = await world.org();
    const env = await world.env(owner, org.org_id);
    const by = world.host.by(owner);
    await by.putOrgBranding({
      params: { id: org.org_id },
      body: { primary_color: '#111111', font_family: 'Inter', logo_url: 'https://example.org/logo.svg' },
    });
    await by.putEnvBranding({
      params: { id: env.env_id },
      body: { primary_color: '#222222', font_family: '', theme_mode: 'dark', logo_url: null },
    });
    expect(await by.mergedBranding({ params: { id: env.env_id } })).toEqual({
      primary_color: '#222222',
      font_family: 'Inter',
      logo_url: 'https://example.org/logo.svg',
      theme_mode: 'dark',
      sources: {
        primary_color: 'env',
        secondary_color: 'default',
        background_color: 'default',
        text_color: 'default',
        font_family: 'org',
        logo_url: 'org',
        theme_mode: 'env',
        custom_css: 'default',
      },
    });
    const merged = await world.host.fetch(`/v1/env/${env.env_id}/branding/merged`, { method: 'PUT', persona: owner, body: '{}' });
    expect(merged.status).toBe(405);
    await by.putOrgBranding({ params: { id: org.org_id }, body: {} });
    expect([await by.orgBranding({ params: { id: org.org_id } }), await by.envBranding({ params: { id: env.env_id } })]).toEqual([
      {},
      { primary_color: '#222222', theme_mode: 'dark' },
    ]);
  });

  test('REG-004 every change of branding is recorded with the names of what changed, and what changes nothing is not', async () => {
    const { org, owner, env } = await world.tenant();
    const by = world.host.by(owner);
    const custom_css = 'body { color: red }';
    for (let time = 0; time < 2; time++) {
      await by.putOrgBranding({ params: { id: org.org_id }, body: { primary_color: '#111111', custom_css } });
      await by.putEnvBranding({ params: { id: env.env_id }, body: { theme_mode: 'dark', logo_url: null } });
    }
    await by.putOrgBranding({ params: { id: org.org_id }, body: { primary_color: '#111111' } });
    const recorded = async (env_id: string, action: string) =>
      (await world.host.by(world.admin()).listAudit({ query: { env_id, action } })).items.filter(({ resource }) =>
        [org.org_id, env.env_id].includes(resource?.id ?? ''),
      );
    const actor = { kind: 'user', id: owner.id };
    expect(await recorded(SYSTEM.envId, 'org.branding_replaced')).toMatchObject([
      { actor, details: { changed: ['custom_css'] } },
      { actor, details: { changed: ['primary_color', 'custom_css'] } },
    ]);
    expect(await recorded(env.env_id, 'env.branding_replaced')).toMatchObject([{ actor, details: { changed: ['theme_mode'] } }]);
  });

  test('REG-146 resolvers are told under its own scope', async () => {
    const { org, owner } = await world.org();
    const heard = Promise.withResolvers<Record<string, unknown>>();
    await using _ = await world.kv.subscribe('platform:sys:domain:changed', message =>
      heard.resolve(JSON.parse(message) as Record<string, unknown>),
    );
    await world.host.by(owner).putOrgBranding({ params: { id: org.org_id }, body: {} });
    expect(await heard.promise).toMatchObject({ scope: 'branding', org_id: org.org_id });
  });
});
