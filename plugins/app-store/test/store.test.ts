import { registry } from '@platform/registry/contract';
import { as, manifestOf, type Persona } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { appStore } from '../contract/index.ts';
import type { Listing, NewListing } from '../contract/schema/listing.ts';
import { png } from './fixtures/images.ts';
import { refusal, SCOPES, type Tenant, World } from './fixtures/world.ts';
import { describeDomains } from './suites/domains.test.ts';
import { describeImages } from './suites/images.test.ts';
import { describeOnboarding } from './suites/onboarding.test.ts';
import { describePages } from './suites/pages.test.ts';
import { describeRuntime } from './suites/runtime.test.ts';
import { describeUsage } from './suites/usage.test.ts';

let world: World;
let acme: Tenant;
let other: Tenant;
beforeAll(async () => {
  world = await World.start();
  acme = await world.tenant();
  other = await world.tenant();
}, 60_000);
afterAll(() => world[Symbol.asyncDispose]());

const by = (persona: Persona) => world.host.by(persona);
const draft = (changes: Partial<NewListing> = {}) => world.listing(acme, changes, { publish: false });
const idOf = ({ listing_id }: Listing) => ({ params: { listing_id } });
const names = async (persona: Persona, query: object = {}) =>
  (await by(persona).listListings({ query: { limit: 200, ...query } })).items.map(({ app_slug }) => app_slug);
const move = (listing: Listing, status: 'published' | 'deprecated' | 'archived' | 'draft', persona = acme.admin) =>
  by(persona).updateListing({ ...idOf(listing), body: { status } });

describe('listings', () => {
  test('APP-001 APP-031 APP-033 APP-045 a developer lists a release with its roles and a visibility, and publishes it', async () => {
    const body = {
      ...{
        app_slug: 'ledger-book',
        channel: 'beta',
        version: '2.0.0-rc1',
        name: 'Ledger',
        summary: 'Keeps books',
        description: 'All of them',
        categories: ['finance'],
      },
      ...{
        backend_url: 'https://ledger.example.com',
        dcr_supported: true,
        oauth_defaults: { redirect_uris: ['https://bff.x.example/auth/callback'], scopes: ['openid'] },
        visibility: 'env' as const,
      },
      ...{
        roles: [{ name: 'ledger.clerk', scopes: ['ledger:entries:write'] }],
        default_signup_role: 'ledger.clerk',
        onboarding: ['ApprovalReviewStep' as const],
      },
    };
    const listing = await by(acme.admin).createListing({ body });
    const { env_id, org_id } = acme;
    expect(listing).toMatchObject({
      ...body,
      env_id,
      org_id,
      owner_user_id: acme.admin.id,
      status: 'draft',
      media: [],
      published_at: null,
      statistics_property_id: null,
      row_version: 1,
    });
    expect(await move(listing, 'published')).toMatchObject({ status: 'published', published_at: expect.any(String), row_version: 2 });
    expect(await world.told(listing.listing_id)).toEqual(['platform:app:listing:created', 'platform:app:listing:published']);
    const audit = await (await world.sql('app'))<
      { action: string }[]
    >`select payload ->> 'action' as action from outbox where event_type = 'audit' or payload ->> 'action' like 'listing.%' order by created_at, id`;
    expect(audit.map(({ action }) => action)).toEqual(expect.arrayContaining(['listing.created', 'listing.published']));
  });

  test('APP-032 APP-043 there are three visibilities and no fourth; what a caller does not see is not there', async () => {
    const colleague = as.userIn(acme.env_id, ...SCOPES);
    for (const [visibility, seen] of [
      ['usr', [true, false, false]],
      ['env', [true, true, false]],
      ['public', [true, true, true]],
    ] as const) {
      const listing = await world.listing(acme, { visibility });
      for (const [index, persona] of [acme.admin, colleague, other.admin].entries()) {
        expect([visibility, index, (await names(persona)).includes(listing.app_slug)]).toEqual([visibility, index, seen[index]]);
        expect([visibility, index, await refusal(by(persona).getListing(idOf(listing)))]).toEqual([
          visibility,
          index,
          seen[index] ? 'none' : [404, 'listing_not_found'],
        ]);
      }
    }
    for (const visibility of ['org', 'private', '', 'PUBLIC', null])
      expect(await refusal(draft({ visibility: visibility as never }))).toEqual([400, 'validation_failed']);
  });

  test('APP-043 a draft is the business of its environment, however public it will be', async () => {
    const listing = await draft();
    expect([await names(acme.admin), await names(other.admin)].map(seen => seen.includes(listing.app_slug))).toEqual([true, false]);
    expect(await refusal(by(other.admin).getListing(idOf(listing)))).toEqual([404, 'listing_not_found']);
  });

  test('APP-044 the catalog is filtered by category, application, channel and words, and comes in pages', async () => {
    const mine = await Promise.all(
      ['alpha', 'beta', 'gamma'].map(word => world.listing(acme, { name: `Zebra ${word}`, categories: ['herd', word] })),
    );
    expect(await names(other.admin, { category: 'herd' })).toHaveLength(3);
    expect(await names(other.admin, { category: 'alpha' })).toEqual([mine[0]?.app_slug]);
    expect(await names(other.admin, { q: 'ZEBRA b' })).toEqual([mine[1]?.app_slug]);
    expect(await names(other.admin, { q: '100%_\\' })).toEqual([]);
    expect(await names(other.admin, { app_slug: mine[2]?.app_slug, channel: 'stable' })).toEqual([mine[2]?.app_slug]);
    expect(await names(other.admin, { app_slug: mine[2]?.app_slug, channel: 'beta' })).toEqual([]);
    const pages: string[] = [];
    for (let cursor: string | null = null, turn = 0; turn < 5; turn++) {
      const page: { items: Listing[]; next_cursor: string | null } = await by(other.admin).listListings({
        query: { category: 'herd', limit: 1, ...(cursor ? { cursor } : {}) },
      });
      pages.push(...page.items.map(({ app_slug }) => app_slug));
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
    expect(pages.toSorted()).toEqual(mine.map(({ app_slug }) => app_slug).toSorted());
    expect(await refusal(by(other.admin).listListings({ query: { cursor: 'bm9wZQ' } }))).toEqual([400, 'invalid_cursor']);
  });

  test('APP-034 the role of who signs up is one of the declared ones, on the way in and later', async () => {
    expect(await refusal(draft({ default_signup_role: 'owner' }))).toEqual([400, 'signup_role_undeclared']);
    const listing = await draft();
    const { name, backend_url, visibility } = listing;
    expect(
      await refusal(
        by(acme.admin).updateListing({
          ...idOf(listing),
          body: { name, backend_url, visibility, roles: [], default_signup_role: 'editor' },
        }),
      ),
    ).toEqual([400, 'signup_role_undeclared']);
  });

  test('APP-063 a role name belongs to one application of an environment; its releases share it, other environments have their own', async () => {
    const roles = [{ name: 'shared.role', scopes: [] }];
    const first = await draft({ roles, default_signup_role: null });
    expect(await refusal(draft({ roles, default_signup_role: null }))).toEqual([409, 'role_name_taken']);
    expect(await draft({ app_slug: first.app_slug, version: '1.1.0', roles, default_signup_role: null })).toMatchObject({
      status: 'draft',
    });
    expect(await world.listing(other, { roles, default_signup_role: null })).toMatchObject({ status: 'published' });
    expect(await refusal(draft({ roles: [...roles, ...roles], default_signup_role: null }))).toEqual([409, 'role_name_taken']);
    const raced = await Promise.all(
      Array.from({ length: 4 }, () => refusal(draft({ roles: [{ name: 'raced.role', scopes: [] }], default_signup_role: null }))),
    );
    expect(raced.filter(outcome => outcome === 'none')).toHaveLength(1);
  });

  test('an application hands on no right to run the platform, nor administration to whoever signs up', async () => {
    const refused = (scope: string) =>
      refusal(draft({ roles: [{ name: world.slug('role'), scopes: [scope] }], default_signup_role: null }));
    for (const scope of ['sys:sys:admin', 'platform:sys:sys:admin', 'sys:org:admin', 'stat:measure', 'auth:membership:write'])
      expect([scope, await refused(scope)]).toEqual([scope, [400, 'role_scope_refused']]);
    for (const scope of ['sys:read', 'app:listings:admin', 'acme:lending:decide', 'crm:anything'])
      expect([scope, await refused(scope)]).toEqual([scope, 'none']);
    const role = { name: world.slug('role'), scopes: ['app:listings:admin'] };
    expect(await refusal(draft({ roles: [role], default_signup_role: role.name }))).toEqual([400, 'role_scope_refused']);
  });

  test('APP-046 a replacement replaces everything that may change, under If-Match', async () => {
    const listing = await draft({ summary: 'before', categories: ['x'] });
    const { name, backend_url, visibility } = listing;
    const changed = await by(acme.admin).updateListing({
      ...idOf(listing),
      body: { name: 'Renamed', backend_url, visibility },
      headers: { 'if-match': '"1"' },
    } as never);
    expect(changed).toMatchObject({ name: 'Renamed', summary: '', categories: [], roles: [], default_signup_role: null, row_version: 2 });
    expect(
      await refusal(
        by(acme.admin).updateListing({
          ...idOf(listing),
          body: { name, backend_url, visibility },
          headers: { 'if-match': '"1"' },
        } as never),
      ),
    ).toEqual([412, 'precondition_failed']);
    expect(
      await refusal(by(acme.admin).updateListing({ ...idOf(listing), body: { name, backend_url, visibility, version: '9' } })),
    ).toEqual([400, 'immutable_field']);
    expect(await refusal(by(acme.admin).updateListing({ ...idOf(listing), body: { summary: 'alone' } }))).toEqual([400, 'immutable_field']);
    expect(await world.told(listing.listing_id)).toEqual(['platform:app:listing:created', 'platform:app:listing:updated']);
  });

  test('a listing goes draft, published, deprecated, archived, or straight from draft to archived, and no other way', async () => {
    const [first, second] = [await draft(), await draft()];
    for (const status of ['deprecated'] as const) expect(await refusal(move(first, status))).toEqual([409, 'listing_status_refused']);
    // Two who publish at once: one of them has, the other finds it so.
    const outcomes = await Promise.all([
      refusal(by(acme.admin).publishListing(idOf(first))),
      refusal(by(acme.admin).publishListing(idOf(first))),
    ]);
    expect(outcomes.toSorted()).toEqual([[409, 'listing_status_refused'], 'none']);
    expect((await world.told(first.listing_id)).filter(name => name.endsWith('published'))).toHaveLength(1);
    for (const status of ['draft', 'archived'] as const)
      expect(await refusal(move(first, status))).toEqual([409, 'listing_status_refused']);
    await move(first, 'deprecated');
    await move(first, 'archived');
    expect(await refusal(move(first, 'published'))).toEqual([409, 'listing_status_refused']);
    expect(await move(second, 'archived')).toMatchObject({ status: 'archived' });
  });

  test('APP-035 APP-065 a release is unique by application, channel and version, and an application belongs to one organization', async () => {
    const listing = await draft();
    const { app_slug } = listing;
    expect(await refusal(draft({ app_slug }))).toEqual([409, 'listing_exists']);
    expect(await draft({ app_slug, channel: 'beta' })).toMatchObject({ channel: 'beta', version: '1.0.0' });
    expect(await draft({ app_slug, version: 'whatever+7' })).toMatchObject({ version: 'whatever+7' });
    expect(await refusal(world.listing(other, { app_slug, version: '3' }))).toEqual([409, 'app_slug_taken']);
    const raced = await Promise.all(Array.from({ length: 4 }, () => refusal(draft({ app_slug, version: 'raced' }))));
    expect(raced.filter(outcome => outcome === 'none')).toHaveLength(1);
  });

  test('APP-047 a listing is deleted by its environment alone, with its images', async () => {
    const listing = await world.listing(acme);
    await by(acme.admin).addMedia({
      ...idOf(listing),
      body: { role: 'icon', content_type: 'image/png', data_base64: png(64, 64).toString('base64') },
    });
    for (const attempt of [() => by(other.admin).deleteListing(idOf(listing)), () => move(listing, 'deprecated', other.admin)])
      expect(await refusal(attempt())).toEqual([404, 'listing_not_found']);
    await by(acme.admin).deleteListing(idOf(listing));
    expect(await refusal(by(acme.admin).getListing(idOf(listing)))).toEqual([404, 'listing_not_found']);
    expect(await world.told(listing.listing_id)).toContain('platform:app:listing:deleted');
    await expect
      .poll(async () => (await world.clock('5s'), (await world.stored()).filter(key => key.includes(listing.listing_id))))
      .toEqual([]);
  });

  test('APP-055 APP-056 the policy engine alone says who administers the store; anybody with a valid credential reads it', async () => {
    const listing = await world.listing(acme);
    const reader = as.userIn(acme.env_id);
    expect(await by(reader).getListing(idOf(listing))).toMatchObject({ listing_id: listing.listing_id });
    expect((await by(as.machine('probe')).listListings({})).items.length).toBeGreaterThan(0);
    expect((await world.host.fetch('/v1/app/store/listings')).status).toBe(401);
    const attempts = (persona: Persona) => [
      () =>
        by(persona).createListing({
          body: { app_slug: world.slug(), version: '1', name: 'x', backend_url: 'https://x.example', visibility: 'env' },
        }),
      () => move(listing, 'deprecated', persona),
      () => by(persona).deleteListing(idOf(listing)),
      () =>
        by(persona).setup({
          targetEnvId: acme.env_id,
          body: { listing_id: listing.listing_id, instance: { name: 'x', slug: 'xxx' }, auth_url: acme.auth_url, public_signup: false },
        }),
      () => by(persona).listInstances({ targetEnvId: acme.env_id }),
      () => by(persona).deleteInstance({ params: { instance_id: listing.listing_id }, targetEnvId: acme.env_id }),
    ];
    for (const attempt of attempts(as.userIn(acme.env_id, 'app:listings:read')))
      expect(await refusal(attempt())).toEqual([403, 'policy_denied']);
    // Scopes are those that somebody has now: a token that says more is none.
    const [has, says] = [await world.person(acme.env_id, 'app:listings:admin'), await world.person(acme.env_id, 'app:listings:read')];
    const path = `/v1/app/store/listings/${(await draft()).listing_id}?target_env_id=${acme.env_id}`;
    const deleted = (persona: Persona) =>
      world.host.fetch(path, { method: 'DELETE', token: world.host.mint.token(persona, 'app', { scope: 'platform:app:listings:admin' }) });
    expect([(await deleted(says)).json['code'], (await deleted(has)).status]).toEqual(['policy_denied', 204]);
    // The scope in either spelling is all that is asked: who made it, and what else somebody is, counts for nothing.
    for (const [scope, status] of [
      ['app:listings:admin', 'deprecated'],
      ['platform:app:listings:admin', 'archived'],
    ] as const)
      expect([scope, await refusal(move(listing, status, as.userIn(acme.env_id, scope)))]).toEqual([scope, 'none']);
  });

  test('hostile input is refused in words: U+0000, oversize, wrong types, ids that are none', async () => {
    const listing = await draft();
    const persona = await world.person(acme.env_id, ...SCOPES);
    const refusals: Partial<Record<keyof NewListing, unknown>>[] = [
      { name: 'a\u0000b' },
      { name: 'x'.repeat(121) },
      { name: 7 },
      { description: 'x'.repeat(10_001) },
      { app_slug: 'Up' },
      { channel: '9' },
      { version: '../x' },
      { backend_url: 'javascript:alert(1)' },
      { backend_url: 'https://x.example/ y' },
      { categories: ['a', 'a'] },
      { roles: [{ name: 'a'.repeat(65), scopes: [] }] },
      { roles: Array.from({ length: 51 }, (_, index) => ({ name: `r${index}`, scopes: [] })) },
      { oauth_defaults: { redirect_uris: ['not an address'] } },
      { onboarding: ['Anything'] },
      { listing_id: listing.listing_id } as never,
    ];
    for (const change of refusals) {
      const answer = await world.host.fetch(`/v1/app/store/listings?target_env_id=${acme.env_id}`, {
        method: 'POST',
        persona,
        body: JSON.stringify({
          app_slug: world.slug(),
          version: '1',
          name: 'x',
          backend_url: 'https://x.example',
          visibility: 'env',
          ...change,
        }),
      });
      expect([JSON.stringify(change).slice(0, 60), answer.status]).toEqual([JSON.stringify(change).slice(0, 60), 400]);
    }
    const { listing_id } = listing;
    for (const path of [
      `/v1/app/store/listings/%00`,
      `/v1/app/store/listings/${listing_id}/images/%00`,
      `/v1/app/store/listings/${listing_id}/images/${'x'.repeat(500)}`,
      '/v1/app/store/listings?q=%00',
      '/v1/app/store/listings?category=a%00',
    ]) {
      const { status } = await world.host.fetch(path, { persona });
      expect([path, status >= 400 && status < 500]).toEqual([path, true]);
    }
    for (const id of ['nothing', 'null', '%00', "1' or '1'='1"])
      expect(await refusal(by(acme.admin).getListing({ params: { listing_id: id } }))).toEqual([400, 'validation_failed']);
    expect(await refusal(by(other.admin).createListing({ targetEnvId: acme.env_id, body: {} as never }))).toEqual([403, 'target_denied']);
  });
});

test('APP-023 the consumer of usage says that it asks a bus it could not reach again after two seconds', () => {
  expect(manifestOf(appStore, '0.0.0-test').consumes['app-usage']).toMatchObject({ reconnect_s: 2 });
});

test('APP-064 every path of the store is under /v1', async () => {
  const { json } = await world.host.fetch('/openapi.json');
  const paths = Object.keys(json['paths'] as object);
  expect(paths).toEqual(expect.arrayContaining(['/v1/app/setup', '/v1/app/store/listings', '/v1/app/runtime/context']));
  expect(paths.filter(path => !path.startsWith('/v1/') && !path.startsWith('/openapi') && path !== '/subscribe')).toEqual([]);
});

test('listings go with their environment, which says before how many there are', async () => {
  const gone = await world.tenant();
  const listing = await world.listing(gone, { visibility: 'env' });
  const captain = as.machine('captain', 'sys:org:admin', 'sys:env:admin', 'sys:read');
  const preview = await world.at(registry, captain).previewEnvDeletion({ params: { env_id: gone.env_id } });
  expect(JSON.stringify(preview)).toContain('listings');
  await world.at(registry, captain).deleteEnv({ params: { env_id: gone.env_id } });
  const sql = await world.sql('app');
  await expect
    .poll(
      async () => (await world.clock('10s'), (await sql<object[]>`select 1 from listings where listing_id = ${listing.listing_id}`).length),
      { timeout: 20_000 },
    )
    .toBe(0);
});

describeImages(() => world);
describeOnboarding(() => world);
describeDomains(() => world);
describeUsage(() => world);
describeRuntime(() => world);
describePages(() => world);
