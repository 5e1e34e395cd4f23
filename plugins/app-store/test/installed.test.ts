import { registry } from '@platform/registry/contract';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Installed, Setup } from '../contract/schema/instance.ts';
import type { Listing } from '../contract/schema/listing.ts';
import { accessOf } from './fixtures/access.ts';
import { refusal, type Tenant, World } from './fixtures/world.ts';
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

describeFailures(() => world);

describe('installed applications', () => {
  test('APP-048 APP-049 APP-050 are listed by environment, shown, and uninstalled with all that they had; they can be installed again', async () => {
    const mine = await world.env(acme);
    const slug = world.slug('gone');
    const installed = await install(naming(slug), mine);
    const admin = world.host.by(mine.admin);
    const listed = await admin.listInstances({ query: { envId: mine.env_id } });
    expect(listed.items).toEqual([await admin.getInstance(where(installed))]);
    expect(await refusal(admin.deleteListing({ params: { listing_id: crm.listing_id } }))).toEqual([404, 'listing_not_found']);
    expect(await refusal(store().deleteListing({ params: { listing_id: crm.listing_id } }))).toEqual([409, 'listing_installed']);
    await admin.deleteInstance(where(installed));
    expect(await access(slug, mine.env_id)).toEqual(nothing);
    expect(await refusal(world.at(registry, captain).resolveHostname({ query: { hostname: installed.instance.domain } }))).toEqual([
      404,
      'hostname_unresolved',
    ]);
    expect([await admin.getInstance(where(installed)), await refusal(admin.deleteInstance(where(installed)))]).toMatchObject([
      { status: 'uninstalled' },
      [404, 'instance_not_found'],
    ]);
    expect((await admin.listInstances({ query: { envId: mine.env_id } })).items).toEqual([]);
    expect(await world.told(installed.instance.instance_id)).toEqual([
      'platform:app:instance:created',
      'platform:app:instance:activated',
      'platform:app:instance:deleted',
    ]);
    expect(await install(naming(slug), mine)).toMatchObject({ instance: { status: 'active', domain: installed.instance.domain } });
  });

  test('an uninstall that a neighbour breaks goes on by itself', async () => {
    const slug = world.slug('gone');
    const installed = await install(naming(slug));
    {
      using _ = world.failing('sys', operation => operation === 'deleteApplication');
      expect(await refusal(store().deleteInstance(where(installed)))).toEqual([502, 'deprovisioning_failed']);
      expect(await store().getInstance(where(installed))).toMatchObject({ status: 'uninstalling' });
    }
    await expect
      .poll(async () => (await world.clock('1m'), (await store().getInstance(where(installed))).status), { timeout: 20_000 })
      .toBe('uninstalled');
    expect(await access(slug)).toEqual(nothing);
  });

  test('APP-057 APP-058 APP-059 every call names its environment, to which the caller has access; none is taken from the token', async () => {
    const stranger = await world.tenant();
    const installed = await install(naming());
    const { params } = where(installed);
    const body = { listing_id: crm.listing_id, ...naming(), auth_url: acme.auth_url, public_signup: false };
    const calls = (persona: typeof acme.admin, target: object) => {
      const by = world.host.by(persona);
      return [
        () => by.setup({ body, ...target }),
        () => by.listInstances({ ...target }),
        () => by.getInstance({ params, ...target }),
        () => by.deleteInstance({ params, ...target }),
        () => by.rotateSecret({ params, ...target }),
        () => by.bindDomain({ params, body: { fqdn: 'x.example' }, ...target }),
        () => by.getDomain({ params, ...target }),
        () => by.unbindDomain({ params, ...target }),
      ];
    };
    for (const call of calls(acme.admin, {})) expect(await refusal(call())).toEqual([400, 'target_env_required']);
    for (const call of calls(stranger.admin, { targetEnvId: acme.env_id })) expect(await refusal(call())).toEqual([403, 'target_denied']);
    for (const call of calls(acme.admin, { targetEnvId: acme.env_id, query: { envId: stranger.env_id } }).slice(1, 3))
      expect(await refusal(call())).toEqual([400, 'target_mismatch']);
    // Somebody else's number in the own environment is nobody's.
    for (const call of calls(stranger.admin, { targetEnvId: stranger.env_id }).slice(2))
      expect(await refusal(call())).toEqual([404, 'instance_not_found']);
    expect(await store().getInstance(where(installed))).toMatchObject({ status: 'active' });
  });

  test('they rest while their environment or organization does, and say so', async () => {
    const mine = await world.tenant();
    const installed = await install(naming(), mine);
    const status = async () => (await world.clock('5s'), (await world.host.by(mine.admin).getInstance(where(installed))).status);
    const administer = world.at(registry, as.user('sys:sys:admin', 'sys:env:admin', 'sys:org:admin', 'sys:read'));
    await administer.updateEnv({ params: { env_id: mine.env_id }, body: { status: 'suspended' } });
    await expect.poll(status, { timeout: 20_000 }).toBe('suspended');
    expect(await refusal(install(naming(), mine))).toEqual([409, 'env_suspended']);
    await administer.updateEnv({ params: { env_id: mine.env_id }, body: { status: 'active' } });
    await expect.poll(status, { timeout: 20_000 }).toBe('active');
    await administer.updateOrg({ params: { id: mine.org_id }, body: { status: 'suspended' } });
    await expect.poll(status, { timeout: 20_000 }).toBe('suspended');
    expect((await world.told(installed.instance.instance_id)).filter(name => name.endsWith('updated'))).toHaveLength(3);
  });

  test('they go with their environment, which says before how many there are', async () => {
    const mine = await world.tenant();
    const installed = await install(naming(), mine);
    const preview = await world.at(registry, captain).previewEnvDeletion({ params: { env_id: mine.env_id } });
    expect(JSON.stringify(preview)).toContain('installed applications');
    await world.at(registry, captain).deleteEnv({ params: { env_id: mine.env_id } });
    const sql = await world.sql('app');
    const left = () =>
      sql<object[]>`select 1 from instances where instance_id = ${installed.instance.instance_id} union all select 1 from provisioning_steps
        where instance_id = ${installed.instance.instance_id}`;
    await expect.poll(async () => (await world.clock('10s'), (await left()).length), { timeout: 20_000 }).toBe(0);
  });
});
