import type { Persona } from '@platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Listing } from '../../contract/schema/listing.ts';
import { jpeg, png, webpExtended } from '../fixtures/images.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

/** Images, with the real object storage. */
export function describeImages(given: () => World): void {
  describe('images of listings', () => {
    let world: World;
    let acme: Tenant;
    let other: Tenant;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      other = await world.tenant();
    });
    const by = (persona: Persona) => world.host.by(persona);
    const idOf = ({ listing_id }: Listing) => ({ params: { listing_id } });
    const upload = (
      listing: Listing,
      bytes: Buffer,
      {
        role = 'icon' as 'icon' | 'hero' | 'screenshot',
        content_type = 'image/png' as 'image/png' | 'image/jpeg' | 'image/webp',
        persona = acme.admin,
      } = {},
    ) => by(persona).addMedia({ ...idOf(listing), body: { role, content_type, data_base64: bytes.toString('base64') } });

    test('APP-036 APP-037 the bytes of an image are an object under its listing, its entry says where, and no table has them', async () => {
      const listing = await world.listing(acme);
      const bytes = Buffer.concat([png(512, 256), Buffer.from('bytes of this image')]);
      const entry = await upload(listing, bytes);
      expect(entry).toEqual({ role: 'icon', resolution: '512x256', storage_key: `app/${listing.listing_id}/icon.png` });
      await upload(listing, jpeg(1_200, 400), { role: 'hero', content_type: 'image/jpeg' });
      expect((await by(acme.admin).getListing(idOf(listing))).media.map(({ storage_key }) => storage_key)).toEqual([
        `app/${listing.listing_id}/hero.jpg`,
        entry.storage_key,
      ]);
      expect(await world.stored()).toEqual(expect.arrayContaining([entry.storage_key, `app/${listing.listing_id}/hero.jpg`]));
      const sql = await world.sql('app');
      const columns = await sql<
        object[]
      >`select 1 from information_schema.columns where table_schema = current_schema() and data_type = 'bytea'
        and table_name in ('listings', 'listing_media', 'instances')`;
      const [row] = await sql<
        { text: string }[]
      >`select (select jsonb_agg(l)::text from listings l) || (select jsonb_agg(m)::text from listing_media m) as text`;
      expect([columns, row?.text.includes('bytes of this image'), row?.text.includes(bytes.toString('base64').slice(0, 40))]).toEqual([
        [],
        false,
        false,
      ]);
      // Another of the same role makes way, with its bytes.
      await upload(listing, webpExtended(64, 64), { content_type: 'image/webp' });
      await expect
        .poll(async () => (await world.clock('5s'), (await world.stored()).filter(key => key.includes(`${listing.listing_id}/icon`))))
        .toEqual([`app/${listing.listing_id}/icon.webp`]);
    });

    test('images go to those who see the listing, as nothing but an image', async () => {
      const listing = await world.listing(acme);
      await upload(listing, png(8, 8));
      const path = `/v1/app/store/listings/${listing.listing_id}/images/icon`;
      const answer = await world.host.fetch(path, { as: await world.captain() });
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        'content-type': 'image/png',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
      });
      expect((await world.host.fetch(path)).status).toBe(401);
      const hidden = await world.listing(acme, { visibility: 'usr' });
      await upload(hidden, png(8, 8));
      expect(
        (await world.host.fetch(`/v1/app/store/listings/${hidden.listing_id}/images/icon`, { as: await world.captain() })).status,
      ).toBe(404);
      expect((await world.host.fetch(path.replace('icon', 'hero'), { as: await world.captain() })).status).toBe(404);
      expect((await world.host.fetch(path, { method: 'DELETE', as: await world.captain() })).status).toBe(405);
    });

    test('what is no image of the kind it says, too large, or of somebody else’s listing is refused, and nothing is stored', async () => {
      const listing = await world.listing(acme);
      const bad: [Buffer, 'image/png' | 'image/jpeg' | 'image/webp'][] = [
        [Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'), 'image/png'],
        [png(8, 8), 'image/jpeg'],
        [jpeg(8, 8), 'image/webp'],
        [png(8_193, 1), 'image/png'],
        [png(8_000, 8_000), 'image/png'],
        [png(0, 8), 'image/png'],
        [Buffer.from('GIF89a0000000'), 'image/png'],
      ];
      for (const [bytes, content_type] of bad)
        expect([bytes.subarray(0, 12), await refusal(upload(listing, bytes, { content_type }))]).toEqual([
          bytes.subarray(0, 12),
          [400, 'media_invalid'],
        ]);
      expect(await refusal(upload(listing, Buffer.concat([png(8, 8), Buffer.alloc(5_242_880)])))).toEqual([413, 'media_too_large']);
      expect(
        await refusal(
          by(acme.admin).addMedia({
            ...idOf(listing),
            body: { role: 'icon', content_type: 'image/svg+xml' as never, data_base64: 'AAAAAAAA' },
          }),
        ),
      ).toEqual([400, 'validation_failed']);
      expect(
        await refusal(
          by(acme.admin).addMedia({
            ...idOf(listing),
            body: { role: 'icon', content_type: 'image/png', data_base64: '!!!! not base64 !!!!' },
          }),
        ),
      ).toEqual([400, 'media_invalid']);
      expect(await refusal(upload(listing, png(8, 8), { persona: other.admin }))).toEqual([404, 'listing_not_found']);
      expect((await world.stored()).filter(key => key.includes(listing.listing_id))).toEqual([]);
    });
  });
}
