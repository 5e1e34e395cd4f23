import { identity } from '@platform/identity/contract';
import { as } from '@platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Installed, Setup } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import { accessOf } from '../fixtures/access.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

const nothing = { roles: [], groups: [], clients: [], signup: [], apps: [] };

/** What becomes of installs when a neighbour fails, or the process dies. */
export function describeFailures(given: () => World): void {
  describe('an install that fails', () => {
    let world: World;
    let acme: Tenant;
    let crm: Listing;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      crm = await world.listing(acme);
    });
    const naming = (slug: string) => ({ instance: { name: 'Our customers', slug } });
    const install = (changes: Partial<Setup>): Promise<Installed> => world.setup(acme, { listing_id: crm.listing_id, ...changes });
    const store = () => world.host.by(acme.admin);
    const access = (slug: string) => accessOf(world, acme.env_id, slug);

    const failures: readonly [service: string, operation: string][] = [
      ['auth', 'putGroup'],
      ['auth', 'putGroupRole'],
      ['auth', 'putSignUpRole'],
      ['auth', 'registerClient'],
      ['sys', 'createApplication'],
      ['stat', 'provision'],
    ];
    test.each(failures)('is taken back in reverse when %s fails %s, and the slug is free again', async (service, operation) => {
      const slug = world.slug('undone');
      {
        using _ = world.failing(service, asked => asked === operation);
        expect(await refusal(install(naming(slug)))).toEqual([502, 'provisioning_failed']);
      }
      expect(await access(slug)).toEqual(nothing);
      const { items } = await store().listInstances({ targetEnvId: acme.env_id, query: { status: 'failed' } });
      const [failed] = items.filter(item => item.slug === slug);
      expect(failed).toMatchObject({ status: 'failed', oauth_client: null, last_error: expect.any(String) });
      expect(await world.told(failed?.instance_id as string)).toEqual(['platform:app:instance:created', 'platform:app:instance:failed']);
      expect(await install(naming(slug))).toMatchObject({ instance: { status: 'active' } });
    });

    test('what cannot be taken back at once is taken back later, and holds its slug until then', async () => {
      const slug = world.slug('undone');
      {
        using _ = world.failing('auth', asked => asked === 'deleteGroup' || asked === 'putSignUpRole');
        expect(await refusal(install(naming(slug)))).toEqual([502, 'provisioning_failed']);
        expect((await access(slug)).groups).toHaveLength(3);
        expect(await refusal(install(naming(slug)))).toEqual([409, 'instance_slug_taken']);
      }
      await expect.poll(async () => (await world.clock('30s'), access(slug)), { timeout: 20_000 }).toEqual(nothing);
      expect(await install(naming(slug))).toMatchObject({ instance: { status: 'active' } });
    });

    test('what a neighbour does after its call was given up is taken back later, unless another install has the slug', async () => {
      const [free, taken] = [world.slug('late'), world.slug('late')];
      {
        using _ = world.failing('auth', asked => asked === 'putSignUpRole');
        for (const slug of [free, taken]) expect(await refusal(install(naming(slug)))).toEqual([502, 'provisioning_failed']);
      }
      // As calls that the store gave up on, and that the identity service ends all the same.
      const late = world.at(identity, as.machine('app', 'auth:membership:write'));
      const targetEnvId = acme.env_id;
      for (const { name, scopes } of crm.roles)
        await late.putRole({ params: { role: `app:${free}:${name}` }, body: { scopes: [...scopes] }, targetEnvId });
      await late.putGroup({ params: { group: `app:${free}:users` }, body: {}, targetEnvId });
      expect(await install(naming(taken))).toMatchObject({ instance: { status: 'active' } });
      const before = await access(taken);
      await expect.poll(async () => (await world.clock('1m'), access(free)), { timeout: 20_000 }).toEqual(nothing);
      expect(await access(taken)).toEqual(before);
      expect(await install(naming(free))).toMatchObject({ instance: { status: 'active' } });
    });

    test('a process that dies in the middle leaves nothing half: another one finishes it, without a second client', async () => {
      const slug = world.slug('crashed');
      const sql = await world.sql('app');
      // From the registration of the client on, nothing that is written comes to stand: as when the process had ended there.
      await sql.unsafe(`create function dies() returns trigger language plpgsql as $$ begin raise exception 'the process is gone'; end $$`);
      await sql.unsafe(
        `create trigger dies before update on provisioning_steps for each row when (old.step = 'client') execute function dies()`,
      );
      await sql.unsafe(`create trigger dies before update of status on instances for each row execute function dies()`);
      await expect(install(naming(slug))).rejects.toThrow();
      await sql.unsafe(`drop trigger dies on provisioning_steps; drop trigger dies on instances; drop function dies()`);
      const [left] = (await store().listInstances({ targetEnvId: acme.env_id, query: { status: 'provisioning' } })).items.filter(
        item => item.slug === slug,
      );
      expect([left?.oauth_client, (await access(slug)).clients.length]).toEqual([null, 1]);
      const done = async () => {
        await world.clock('1m');
        return (await store().getInstance({ params: { instance_id: left?.instance_id as string }, targetEnvId: acme.env_id })).status;
      };
      await expect.poll(done, { timeout: 20_000 }).toBe('active');
      const { oauth_client } = await store().getInstance({
        params: { instance_id: left?.instance_id as string },
        targetEnvId: acme.env_id,
      });
      expect((await access(slug)).clients).toEqual([oauth_client?.client_id]);
    });
  });
}
