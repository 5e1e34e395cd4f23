import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { registry } from '@platform/registry/contract';
import { type Sealed, SYSTEM } from '@platform/sdk';
import { as, SealedBox } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Installed, Setup } from '../contract/schema/instance.ts';
import type { Listing } from '../contract/schema/listing.ts';
import { secretPurpose } from '../src/instances/instance-row.ts';
import { accessOf } from './fixtures/access.ts';
import { refusal, SCOPES, type Tenant, World } from './fixtures/world.ts';
import { describeFailures } from './suites/failures.test.ts';

let world: World;
let acme: Tenant;
let crm: Listing;
beforeAll(async () => {
  world = await World.start();
  acme = await world.tenant();
  crm = await world.listing(acme, { app_slug: 'crm-book' });
}, 60_000);
afterAll(() => world[Symbol.asyncDispose]());

const captain = as.machine('captain', 'sys:org:admin', 'sys:env:admin', 'sys:read', 'sys:app:admin', 'sys:instances:read');
const install = (changes: Partial<Setup> = {}, tenant = acme) => world.setup(tenant, { listing_id: crm.listing_id, ...changes });
const naming = (slug = world.slug('inst')) => ({ instance: { name: 'Our customers', slug } });
const where = ({ instance }: Pick<Installed, 'instance'>) => ({
  params: { instance_id: instance.instance_id },
  targetEnvId: instance.env_id,
});
const store = () => world.host.by(acme.admin);
const access = (slug: string, envId = acme.env_id) => accessOf(world, envId, slug);
const nothing = { roles: [], groups: [], clients: [], signup: [], apps: [] };

describe('an install', () => {
  test('APP-002 APP-003 APP-004 APP-005 APP-008 APP-051 gives the instance roles with their scopes, groups, a role for who signs up, a client and a measured property', async () => {
    const installed = await install(naming('first'));
    const { instance, oauth_client } = installed;
    expect(await access('first')).toEqual({
      roles: [
        { name: 'app:first:crm-book.editor', scopes: ['crm:deals:write'] },
        { name: 'app:first:crm-book.reader', scopes: ['crm:deals:read'] },
      ],
      groups: [
        { name: 'app:first:crm-book.editor:members', roles: ['app:first:crm-book.editor'] },
        { name: 'app:first:crm-book.reader:members', roles: ['app:first:crm-book.reader'] },
        { name: 'app:first:users', roles: [] },
      ],
      clients: [oauth_client?.client_id],
      signup: [{ group: 'app:first:users', role: 'app:first:crm-book.reader' }],
      apps: [instance.app_instance_id],
    });
    const mode = await world.at(registry, captain).appInstanceAuthMode({ query: { client_id: oauth_client?.client_id as string } });
    expect(mode).toMatchObject({
      allow_signup: true,
      auth_mode: 'self_service',
      auth_group: 'app:first:users',
      oauth_client_id: oauth_client?.client_id,
    });
    // One property for all installs of the listing (C42).
    const second = await install(naming());
    const properties = await (await world.sql('stat'))<
      { property_id: string; kind: string }[]
    >`select property_id, kind from properties where ref_id = ${crm.listing_id}`;
    expect(properties).toEqual([{ property_id: instance.statistics_property_id, kind: 'listing' }]);
    expect(second.instance.statistics_property_id).toBe(instance.statistics_property_id);
    expect(await world.told(instance.instance_id)).toEqual(['platform:app:instance:created', 'platform:app:instance:activated']);
  });

  test('APP-004 somebody who signs up to the application has its sign-up role', async () => {
    const installed = await install(naming('signs-up'));
    const envHost = `auth.${acme.env_slug}.${acme.org_domain}`;
    const answer = await world.host.fetch('/v1/sign-up', {
      method: 'POST',
      host: 'auth.ops.sys.localhost',
      as: await world.host.workload('proxy'),
      headers: { 'x-platform-hostname': envHost, origin: `https://${envHost}:8443` },
      body: JSON.stringify({
        email: 'grace@example.org',
        password: 'compilers are written by people',
        oauth: { client_id: installed.oauth_client?.client_id },
      }),
    });
    expect([answer.status, answer.json]).toMatchObject([200, { status: 'verification_required' }]);
    const sql = await world.sql('auth');
    await expect
      .poll(
        async () => (
          await world.clock('5s'),
          (await sql<{ role: string }[]>`select role from user_roles join users using (user_id) where email = 'grace@example.org'`).map(
            ({ role }) => role,
          )
        ),
        {
          timeout: 15_000,
        },
      )
      .toEqual(['app:signs-up:crm-book.reader']);
  });

  test('APP-006 APP-009 APP-028 APP-029 its host is made of slug, environment and organization, its gateway and snippet of its host, and nothing hosts its backend', async () => {
    const installed = await install(naming('hosted'));
    const domain = `hosted.${acme.env_slug}.${acme.org_domain}`;
    expect(installed).toMatchObject({
      instance: { domain, gateway_domain: `bff.${domain}`, status: 'active' },
      sdk_snippet: `<script type="module" src="https://bff.${domain}/sdk.js" data-client="${installed.oauth_client?.client_id}"></script>`,
      domain_binding: null,
    });
    expect(await world.at(registry, captain).resolveHostname({ query: { hostname: domain } })).toMatchObject({
      app_instance_id: installed.instance.app_instance_id,
      env_id: acme.env_id,
    });
    const body = { listing_id: crm.listing_id, ...naming(), auth_url: acme.auth_url, public_signup: false };
    for (const member of ['gateway_domain', 'backend_url', 'domain'])
      expect(await refusal(store().setup({ targetEnvId: acme.env_id, body: { ...body, [member]: 'https://x.example' } as never }))).toEqual(
        [400, 'validation_failed'],
      );
    expect(JSON.stringify(installed)).not.toContain(crm.backend_url);
  });

  test('APP-010 APP-011 it asks the identity service for its verbs alone, and has no way into its tables', async () => {
    const slug = world.slug('inst');
    const asked = await world.asked('auth', () => install(naming(slug)));
    const verbs = [
      'putRole',
      'nestRole',
      'putGroup',
      'putGroupRole',
      'putGroupMember',
      'putUserRole',
      'putSignUpRole',
      'registerClient',
      'deleteClientsOf',
    ];
    const reads = ['userScopes', 'getWorkload'];
    expect([...new Set(asked)].filter(operation => ![...verbs, ...reads].includes(operation))).toEqual([]);
    expect(asked.filter(operation => verbs.includes(operation))).toEqual([
      'putRole',
      'putRole',
      'putGroup',
      'putGroup',
      'putGroup',
      'putGroupRole',
      'putGroupRole',
      'putSignUpRole',
      'deleteClientsOf',
      'registerClient',
    ]);
    const sql = await world.sql('app');
    await expect(sql`select 1 from platform_auth.roles`).rejects.toThrow(/permission denied|does not exist/);
    const [schema] = await (await world.sql('auth'))<{ name: string }[]>`select current_schema() as name`;
    await expect(sql.unsafe(`insert into ${schema?.name}.roles (env_id, name) values ('${acme.env_id}', 'x')`)).rejects.toThrow(
      /permission denied/,
    );
  });

  test('APP-039 APP-040 APP-041 a confidential client’s secret is told once and kept sealed; a public client has none', async () => {
    const installed = await install(naming('secretive'));
    const secret = installed.oauth_client?.client_secret as string;
    expect(installed.oauth_client).toEqual({
      client_id: expect.any(String),
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      client_id_issued_at: expect.any(Number),
    });
    const shown = await store().getInstance(where(installed));
    expect(shown.oauth_client).toEqual({
      client_id: installed.oauth_client?.client_id,
      client_id_issued_at: installed.oauth_client?.client_id_issued_at,
    });
    const sql = await world.sql('app');
    const tables = ['instances', 'listings', 'outbox', 'provisioning_steps', 'domain_bindings'];
    for (const table of tables) {
      const [found] = await sql.unsafe<{ count: number }[]>(
        `select count(*)::int as count from ${table} t where to_jsonb(t)::text like '%${secret}%'`,
      );
      expect([table, found?.count]).toEqual([table, 0]);
    }
    const [kept] = await sql<
      { kid: string; shown: string }[]
    >`select client_secret ->> 'kid' as kid, (select to_jsonb(l)::text from listings l where l.listing_id = i.listing_id) as shown
      from instances i where instance_id = ${installed.instance.instance_id}`;
    expect([kept?.kid, kept?.shown.includes('client_secret')]).toEqual([expect.any(String), false]);
    // Whoever lost it gets another one, told once as well.
    const another = await store().rotateSecret(where(installed));
    expect(another.client_secret).not.toBe(secret);
    const open = await world.listing(acme, { oauth_defaults: { token_endpoint_auth_method: 'none' } });
    const bare = await install({ listing_id: open.listing_id, ...naming() });
    expect(bare.oauth_client).toEqual({ client_id: expect.any(String), client_id_issued_at: expect.any(Number) });
    expect(await refusal(store().rotateSecret(where(bare)))).toEqual([409, 'client_without_secret']);
  });

  test('APP-041 a secret that lies sealed under the key of before is sealed anew under the key of now', async () => {
    const { instance } = await install(naming());
    const sql = await world.sql('app');
    const kept = async () =>
      (await sql<{ sealed: Sealed }[]>`select client_secret as sealed from instances where instance_id = ${instance.instance_id}`)[0]
        ?.sealed as Sealed;
    const [before, now] = ['test.app.before.key', 'test.app.key'].map(
      name => new SealedBox([Buffer.from(readFileSync(join(world.dataDir, name), 'utf8'), 'base64')]),
    ) as [SealedBox, SealedBox];
    const text = now.open(secretPurpose(instance.instance_id), await kept()) as string;
    await sql`update instances set client_secret = ${sql.json(before.seal(secretPurpose(instance.instance_id), text) as never)}
      where instance_id = ${instance.instance_id}`;
    await expect
      .poll(async () => (await world.clock('5m'), now.open(secretPurpose(instance.instance_id), await kept())), { timeout: 20_000 })
      .toBe(text);
  });

  test('APP-041 a repeat under the same Idempotency-Key installs nothing twice and does not tell the secret again', async () => {
    const persona = await world.person(acme.env_id, ...SCOPES);
    const slug = world.slug('inst');
    const send = () =>
      world.host.fetch(`/v1/app/setup?target_env_id=${acme.env_id}`, {
        method: 'POST',
        persona,
        headers: { 'idempotency-key': 'install-once' },
        body: JSON.stringify({ listing_id: crm.listing_id, ...naming(slug), auth_url: acme.auth_url, public_signup: false }),
      });
    const first = await send();
    expect([first.status, first.headers['location']]).toEqual([201, expect.stringContaining('/v1/app/admin/instances/')]);
    const again = await send();
    expect([again.status, again.text.includes('client_secret')]).toEqual([409, false]);
    expect((await access(slug)).clients).toHaveLength(1);
  });

  test('APP-062 where the listing names its addresses, the gateway’s callback is one of them, or nothing is begun', async () => {
    const slug = world.slug('inst');
    const host = `${slug}.${acme.env_slug}.${acme.org_domain}`;
    const strict = await world.listing(acme, { oauth_defaults: { redirect_uris: [`https://bff.${host}/auth/callback`] } });
    const other = world.slug('inst');
    const asked = await world.asked('auth', async () => {
      expect(await refusal(install({ listing_id: strict.listing_id, ...naming(other) }))).toEqual([400, 'redirect_uri_not_allowed']);
    });
    expect([asked.filter(operation => /^(put|register)/.test(operation)), await access(other)]).toEqual([[], nothing]);
    expect(await refusal(install({ listing_id: strict.listing_id, ...naming(slug), custom_domain: 'crm.elsewhere.example' }))).toEqual([
      400,
      'redirect_uri_not_allowed',
    ]);
    expect(await install({ listing_id: strict.listing_id, ...naming(slug) })).toMatchObject({ instance: { status: 'active' } });
  });

  test('APP-066 APP-067 APP-068 APP-065 without a pin it is the release that was published last on the channel, stable where none is named; a pin is honoured', async () => {
    const app_slug = world.slug('many');
    const roles = { roles: [], default_signup_role: null };
    const release = (version: string, channel = 'stable') => world.listing(acme, { app_slug, version, channel, ...roles });
    const got = async (wanted: Partial<Setup>) => {
      const { instance } = await world.setup(acme, { app_slug, ...naming(), ...wanted });
      return `${instance.channel} ${instance.version}`;
    };
    await release('9.0.0');
    await world.clock('1s');
    await release('1.0.0');
    await release('beta-1', 'beta');
    const draft = await world.listing(acme, { app_slug, version: '10', ...roles }, { publish: false });
    expect(await got({})).toBe('stable 1.0.0');
    expect(await got({ channel: 'beta' })).toBe('beta beta-1');
    expect(await got({ version: '9.0.0' })).toBe('stable 9.0.0');
    expect(await got({ channel: 'beta', version: 'beta-1' })).toBe('beta beta-1');
    for (const wanted of [
      { version: '10' },
      { version: '7' },
      { channel: 'nightly' },
      { channel: 'beta', version: '9.0.0' },
      { app_slug: 'nothing-such' },
    ])
      expect([wanted, await refusal(got(wanted))]).toEqual([wanted, [404, 'version_not_found']]);
    expect(await refusal(install({ listing_id: draft.listing_id }))).toEqual([409, 'listing_not_installable']);
    const newest = (await store().listListings({ query: { app_slug, q: 'Customer' } })).items.find(
      ({ version }) => version === '1.0.0',
    ) as Listing;
    await store().updateListing({ params: { listing_id: newest.listing_id }, body: { status: 'deprecated' } });
    expect(await got({})).toBe('stable 9.0.0');
    expect(await got({ version: '1.0.0' })).toBe('stable 1.0.0');
    expect(await refusal(install({ listing_id: newest.listing_id }))).toEqual([409, 'listing_not_installable']);
    expect(
      await refusal(store().setup({ targetEnvId: acme.env_id, body: { ...naming(), auth_url: acme.auth_url, public_signup: false } })),
    ).toEqual([400, 'listing_ambiguous']);
  });

  test('what cannot be installed is refused before anything is made', async () => {
    const stranger = await world.tenant();
    const hidden = await world.listing(stranger, { visibility: 'env' });
    const cases: [Partial<Setup>, readonly [number, string]][] = [
      [{ listing_id: hidden.listing_id }, [404, 'listing_not_found']],
      [{ auth_url: stranger.auth_url }, [400, 'auth_url_not_owned']],
      [{ auth_url: 'https://evil.example' }, [400, 'auth_url_not_owned']],
      [{ auth_url: `${acme.auth_url}/path` }, [400, 'auth_url_not_owned']],
      [{ auth_url: acme.auth_url.replace('https://', 'https://user:pw@') }, [400, 'auth_url_not_owned']],
      [naming('Bad_Slug'), [400, 'slug_invalid']],
      [naming('bff'), [400, 'slug_reserved']],
      [naming('auth'), [400, 'slug_reserved']],
      [{ custom_domain: '127.0.0.1' }, [400, 'validation_failed']],
    ];
    for (const [change, expected] of cases) expect([change, await refusal(install(change))]).toEqual([change, expected]);
    expect(
      await refusal(
        world.host.by(as.userIn(SYSTEM.envId, ...SCOPES)).setup({
          targetEnvId: SYSTEM.envId,
          body: { listing_id: crm.listing_id, ...naming(), auth_url: acme.auth_url, public_signup: false },
        }),
      ),
    ).toEqual([409, 'tenant_not_installable']);
    const slug = world.slug('raced');
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => refusal(install(naming(slug)))));
    expect(outcomes.filter(outcome => outcome === 'none')).toHaveLength(1);
    expect(outcomes.filter(outcome => outcome !== 'none')).toEqual(Array.from({ length: 3 }, () => [409, 'instance_slug_taken']));
    expect((await access(slug)).clients).toHaveLength(1);
  });
});

describeFailures(() => world);
