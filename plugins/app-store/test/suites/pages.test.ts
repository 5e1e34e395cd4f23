import { beforeAll, describe, expect, test } from 'vitest';
import type { Instance } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import { png } from '../fixtures/images.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

/** What pages of the console read and post, which no path of the store's interface names. */
export function describePages(given: () => World): void {
  describe('pages of the store', () => {
    let world: World;
    let acme: Tenant;
    let other: Tenant;
    let crm: Listing;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      other = await world.tenant();
      crm = await world.listing(acme);
    });
    const by = ({ admin }: Tenant = acme) => world.host.by(admin);
    const idOf = ({ listing_id }: Listing) => ({ params: { listing_id } });
    const at = ({ instance_id, env_id }: Instance) => ({ params: { instance_id }, targetEnvId: env_id });
    const installed = async (): Promise<Instance> => (await world.setup(acme, { listing_id: crm.listing_id })).instance;
    const upload = (listing: Listing) =>
      by().addMedia({ ...idOf(listing), body: { role: 'icon', content_type: 'image/png', data_base64: png(8, 8).toString('base64') } });

    test('a listing is shown with its releases, roles and images to its environment, and to nobody who does not see it', async () => {
      const hidden = await world.listing(acme, { visibility: 'env', channel: 'beta' });
      const next = await world.listing(acme, { app_slug: hidden.app_slug, channel: 'beta', version: '2.0.0', visibility: 'env' });
      await upload(hidden);
      const { media, ...shown } = await by().listingRow(idOf(hidden));
      expect(shown).toMatchObject({ listing_id: hidden.listing_id, channel: 'beta', version: '1.0.0' });
      expect((await by().listingVersions(idOf(hidden))).items.map(({ version }) => version)).toEqual([next.version]);
      expect((await by().listingRoles(idOf(hidden))).items).toEqual([
        { name: `${hidden.app_slug}.editor`, scopes: 'crm:deals:write', signup: false },
        { name: `${hidden.app_slug}.reader`, scopes: 'crm:deals:read', signup: true },
      ]);
      expect((await by().listingImages(idOf(hidden))).items).toEqual(media);
      expect(media).toMatchObject([{ role: 'icon', resolution: '8x8' }]);
      const their = by(other);
      for (const read of [their.listingRow, their.listingVersions, their.listingRoles, their.listingImages])
        expect(await refusal(read(idOf(hidden)))).toEqual([404, 'listing_not_found']);
    });

    test('the tables of listings and instances are sorted as their heads ask, page after page', async () => {
      const mine = await world.tenant();
      const made = await Promise.all(['Beta', 'Alpha', 'Gamma'].map(name => world.listing(mine, { name, visibility: 'env' })));
      for (const name of ['Two', 'One'])
        await world.setup(mine, { listing_id: made[0]?.listing_id as string, instance: { name, slug: world.slug('sorted') } });
      const named = async (order: 'asc' | 'desc') => {
        const names: string[] = [];
        for (let cursor: string | null | undefined; cursor !== null; ) {
          const query = { sort: 'name' as const, order, limit: 2, ...(cursor ? { cursor } : {}) };
          const page = await by(mine).listingRows({ query });
          names.push(...page.items.map(({ name }) => name));
          cursor = page.next_cursor;
        }
        return names.filter(name => ['Alpha', 'Beta', 'Gamma'].includes(name));
      };
      expect([await named('asc'), await named('desc')]).toEqual([
        ['Alpha', 'Beta', 'Gamma'],
        ['Gamma', 'Beta', 'Alpha'],
      ]);
      const { items } = await by(mine).listInstances({ targetEnvId: mine.env_id, query: { sort: 'name' } });
      expect(items.map(({ name }) => name)).toEqual(['One', 'Two']);
    });

    test('an image is taken away with its bytes by the listing’s environment alone, and each time the trail says so', async () => {
      const listing = await world.listing(acme);
      const { storage_key } = await upload(listing);
      const one = { params: { ...idOf(listing).params, role: 'icon' as const } };
      expect(await refusal(by(other).removeMedia(one))).toEqual([404, 'listing_not_found']);
      await by().removeMedia(one);
      expect((await by().listingImages(idOf(listing))).items).toEqual([]);
      expect(await refusal(by().removeMedia(one))).toEqual([404, 'media_not_found']);
      await expect.poll(async () => (await world.clock('5s'), await world.stored()), { timeout: 20_000 }).not.toContain(storage_key);
      expect((await world.told(listing.listing_id)).at(-1)).toBe('platform:app:listing:updated');
    });

    test('an image whose bytes object storage cannot take or give is a 502 that says to try again', async () => {
      const listing = await world.listing(acme);
      await upload(listing);
      const sql = await world.sql('storage');
      await sql.unsafe('alter table objects rename to objects_away');
      try {
        expect(await refusal(upload(listing))).toEqual([502, 'media_unreachable']);
        const path = `/v1/app/store/listings/${listing.listing_id}/images/icon`;
        const answer = await world.host.fetch(path, { as: await world.captain() });
        expect([answer.status, answer.json['code']]).toEqual([502, 'media_unreachable']);
      } finally {
        await sql.unsafe('alter table objects_away rename to objects');
      }
      expect((await upload(listing)).role).toBe('icon');
    });

    test('a listing is deprecated and archived with a word each, by its environment alone', async () => {
      const listing = await world.listing(acme);
      expect(await refusal(by(other).deprecateListing(idOf(listing)))).toEqual([404, 'listing_not_found']);
      expect(await by().deprecateListing(idOf(listing))).toMatchObject({ status: 'deprecated' });
      expect(await by().archiveListing(idOf(listing))).toMatchObject({ status: 'archived' });
      for (const move of [by().deprecateListing, by().publishListing])
        expect(await refusal(move(idOf(listing)))).toEqual([409, 'listing_status_refused']);
    });

    test('the form of an install offers the addresses where its people sign in, and shows the secret first', async () => {
      const target = { targetEnvId: acme.env_id };
      const { items } = await by().authUrls(target);
      expect(items).toContainEqual({ value: acme.auth_url, label: acme.auth_url });
      const slug = world.slug('form');
      const body = { listing_id: crm.listing_id, name: 'From a form', slug, auth_url: acme.auth_url, public_signup: false };
      const shown = await by().install({ ...target, body });
      expect(Object.keys(shown)[0]).toBe('client_secret');
      expect(shown).toMatchObject({ status: 'active', host: `${slug}.${acme.env_slug}.${acme.org_domain}`, client_id: expect.any(String) });
      expect(await refusal(by().install({ ...target, body }))).toEqual([409, 'instance_slug_taken']);
      expect(await refusal(by(other).install({ ...target, body }))).toEqual([403, 'target_denied']);
    });

    test('an instance is shown with its roles and groups at the identity service', async () => {
      const instance = await installed();
      expect((await by().instanceAccess(at(instance))).items).toEqual([
        ...instance.roles.map(name => ({ name, kind: 'role' })),
        ...instance.groups.map(name => ({ name, kind: 'group' })),
      ]);
      expect(await refusal(by(other).instanceAccess({ ...at(instance), targetEnvId: other.env_id }))).toEqual([404, 'instance_not_found']);
    });

    test('a domain is asked for, looked at and listed by the page of its instance', async () => {
      const instance = await installed();
      const fqdn = `${instance.slug}.pages.example`;
      expect((await by().instanceDomains(at(instance))).items).toEqual([]);
      expect(await refusal(by().checkDomain(at(instance)))).toEqual([404, 'binding_not_found']);
      const binding = await by().useDomain({ ...at(instance), body: { fqdn } });
      expect(binding).toMatchObject({ fqdn, status: 'pending' });
      expect((await by().instanceDomains(at(instance))).items).toMatchObject([{ binding_id: binding.binding_id }]);
      expect(await refusal(by().checkDomain(at(instance)))).toEqual([409, 'domain_not_verified']);
      world.names.set(binding.txt_name, { TXT: [binding.txt_record] });
      world.names.set(fqdn, { CNAME: [instance.domain] });
      expect(await by().checkDomain(at(instance))).toMatchObject({ fqdn, status: 'active' });
    });

    test('an instance that waits for its onboarding takes no domain and gives no secret', async () => {
      const { listing_id } = await world.listing(acme, { onboarding: ['ApprovalReviewStep'] });
      const { instance } = await world.setup(acme, { listing_id });
      for (const ask of [
        () => by().rotateSecret(at(instance)),
        () => by().useDomain({ ...at(instance), body: { fqdn: 'early.pages.example' } }),
        () => by().checkDomain(at(instance)),
      ])
        expect(await refusal(ask())).toEqual([409, 'instance_not_active']);
    });
  });
}
