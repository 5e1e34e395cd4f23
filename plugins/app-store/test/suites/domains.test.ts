import { registry } from '@platform/registry/contract';
import { as } from '@platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { DomainBinding } from '../../contract/schema/domain.ts';
import type { Instance } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

const resolver = as.machine('captain', 'sys:instances:read');

/** Domains of applications, proven against a name server that speaks real packets. */
export function describeDomains(given: () => World): void {
  describe('domains of applications', () => {
    let world: World;
    let acme: Tenant;
    let listing: Listing;
    let count = 0;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      listing = await world.listing(acme);
    });
    const fresh = () => `shop${(count += 1)}.customer.example`;
    const installed = async (tenant = acme): Promise<Instance> => (await world.setup(tenant, { listing_id: listing.listing_id })).instance;
    const at = (instance: Instance) => ({ params: { instance_id: instance.instance_id }, targetEnvId: instance.env_id });
    const by = (tenant = acme) => world.host.by(tenant.admin);
    const ask = (instance: Instance, fqdn: string, more: object = {}) => by().bindDomain({ ...at(instance), body: { fqdn, ...more } });
    const publishText = ({ txt_name, txt_record }: DomainBinding) => world.names.set(txt_name, { TXT: ['v=spf1 -all', txt_record] });
    const publishAlias = ({ cname_token, cname_target, fqdn }: DomainBinding) =>
      world.names.set(`${cname_token}.${fqdn}`, { CNAME: [cname_target] });
    const lead = (instance: Instance, fqdn: string) => world.names.set(fqdn, { CNAME: [instance.domain] });
    const returns = async ({ oauth_client }: Instance): Promise<string[]> => {
      const [client] = await (await world.sql('auth'))<
        { uris: string[] }[]
      >`select metadata -> 'redirect_uris' as uris from oauth_clients where client_id = ${oauth_client?.client_id as string}`;
      return client?.uris ?? [];
    };
    const leads = (hostname: string) => refusal(world.at(registry, resolver).resolveHostname({ query: { hostname } }));

    test('APP-042 APP-053 APP-061 a domain is asked for, proven by a text in DNS, and mapped; each change has its event in its transaction', async () => {
      const instance = await installed();
      const fqdn = fresh();
      const binding = await ask(instance, fqdn);
      expect(binding).toMatchObject({
        ...{
          instance_id: instance.instance_id,
          fqdn,
          method: null,
          txt_name: `_platform-challenge.${fqdn}`,
          status: 'pending',
          attempts: 0,
          verified_at: null,
        },
        ...{
          txt_record: expect.stringMatching(/^platform-verify=[0-9a-f]{64}$/),
          cname_token: expect.stringMatching(/^[a-z0-9-]{1,63}$/),
          cname_target: expect.stringContaining('.'),
        },
      });
      expect(await ask(instance, fqdn)).toEqual(binding);
      const proof = { txt_record: binding.txt_record };
      expect(await refusal(ask(instance, fqdn, proof))).toEqual([409, 'domain_not_verified']);
      publishText(binding);
      // Proven, but it leads elsewhere: nothing is routed there.
      expect(await ask(instance, fqdn, proof)).toMatchObject({
        status: 'verified',
        method: 'txt',
        verified_at: expect.any(String),
        last_error: expect.stringContaining(instance.domain),
      });
      expect(await leads(fqdn)).toEqual([404, 'hostname_unresolved']);
      lead(instance, fqdn);
      expect(await ask(instance, fqdn, proof)).toMatchObject({ status: 'active', last_error: null });
      expect(await leads(fqdn)).toBe('none');
      expect(await by().getInstance(at(instance))).toMatchObject({ domain: fqdn, gateway_domain: `bff.${fqdn}` });
      const own = await returns(instance);
      expect(own).toEqual(expect.arrayContaining([`https://bff.${fqdn}/auth/callback`, `https://bff.${instance.domain}/auth/callback`]));
      expect(await world.told(binding.binding_id)).toEqual(['platform:app:domain:bound', 'platform:app:domain:verified']);
      await by().unbindDomain(at(instance));
      expect([await leads(fqdn), await refusal(by().getDomain(at(instance))), (await by().getInstance(at(instance))).domain]).toEqual([
        [404, 'hostname_unresolved'],
        [404, 'binding_not_found'],
        instance.domain,
      ]);
      expect((await world.told(binding.binding_id)).at(-1)).toBe('platform:app:domain:removed');
      // Who has the domain next is sent nobody who signed in here.
      expect(await returns(instance)).toEqual(own.filter(uri => !uri.includes(fqdn)));
    });

    test('APP-061 a change of a domain whose event cannot be written is not made', async () => {
      const instance = await installed();
      const sql = await world.sql('app');
      await sql.unsafe(
        `create function no_event() returns trigger language plpgsql as $$ begin raise exception 'the outbox is full'; end $$`,
      );
      await sql.unsafe(
        `create trigger no_event before insert on outbox for each row
          when (new.event_type = 'platform:app:domain:bound') execute function no_event()`,
      );
      try {
        await expect(ask(instance, fresh())).rejects.toThrow();
      } finally {
        await sql.unsafe('drop trigger no_event on outbox; drop function no_event()');
      }
      expect(await refusal(by().getDomain(at(instance)))).toEqual([404, 'binding_not_found']);
    });

    test('APP-053 APP-054 with the members of an alias in the body the alias decides, and the text is not looked at', async () => {
      const instance = await installed();
      const fqdn = fresh();
      const binding = await ask(instance, fqdn);
      const { txt_record, cname_token, cname_target } = binding;
      publishText(binding);
      lead(instance, fqdn);
      // The text alone would do; the alias is not there.
      expect(await refusal(ask(instance, fqdn, { txt_record, cname_token, cname_target }))).toEqual([409, 'domain_not_verified']);
      publishAlias(binding);
      expect(await ask(instance, fqdn, { txt_record: 'nonsense', cname_token, cname_target })).toMatchObject({
        status: 'active',
        method: 'cname',
      });
      expect(await leads(fqdn)).toBe('none');
    });

    test('APP-007 APP-038 an install takes a custom domain with the rest of its request; it is usable once DNS has proven it, which the five-minute look finds by itself', async () => {
      const fqdn = fresh();
      const naming = { name: 'Our own shop', slug: world.slug('shop') };
      const request = {
        listing_id: listing.listing_id,
        instance: naming,
        auth_url: acme.auth_url,
        public_signup: false,
        custom_domain: fqdn,
      };
      const { instance, domain_binding, sdk_snippet } = await world.setup(acme, request);
      expect(instance).toMatchObject({ listing_id: listing.listing_id, ...naming });
      const { client_id = '' } = instance.oauth_client ?? {};
      expect(await world.at(registry, resolver).appInstanceAuthMode({ query: { client_id } })).toMatchObject({ allow_signup: false });
      const kept = await (await world.sql(
        'app',
      ))`select auth_url, public_signup from instances where instance_id = ${instance.instance_id}`;
      expect([...kept]).toEqual([{ auth_url: acme.auth_url, public_signup: false }]);
      for (const member of ['instance', 'auth_url'])
        expect([member, await refusal(world.setup(acme, { ...request, [member]: undefined }))]).toEqual([
          member,
          [400, 'validation_failed'],
        ]);
      expect([instance.domain, domain_binding?.status, sdk_snippet?.includes(`https://bff.${fqdn}/`)]).toEqual([fqdn, 'pending', true]);
      expect(await leads(fqdn)).toEqual([404, 'hostname_unresolved']);
      publishText(domain_binding as DomainBinding);
      world.names.set(fqdn, { CNAME: [`${instance.slug}.${acme.env_slug}.${acme.org_domain}`] });
      await expect
        .poll(async () => (await world.clock('5m'), (await by().getDomain(at(instance))).status), { timeout: 20_000 })
        .toBe('active');
      expect(await leads(fqdn)).toBe('none');
    });

    test('a domain that nobody proves in 72 hours has failed, and can be asked for again', async () => {
      const instance = await installed();
      const fqdn = fresh();
      const binding = await ask(instance, fqdn);
      await expect
        .poll(async () => (await world.clock('5m'), (await by().getDomain(at(instance))).attempts), { timeout: 20_000 })
        .toBeGreaterThan(0);
      const sql = await world.sql('app');
      await sql`update domain_bindings set created_at = created_at - interval '73 hours' where binding_id = ${binding.binding_id}`;
      await expect
        .poll(async () => (await world.clock('5m'), (await by().getDomain(at(instance))).status), { timeout: 20_000 })
        .toBe('failed');
      expect(await world.told(binding.binding_id)).toEqual(['platform:app:domain:bound', 'platform:app:domain:failed']);
      const again = await ask(instance, fqdn);
      expect([again.status, again.txt_record === binding.txt_record]).toEqual(['pending', false]);
    });

    test('a domain has one application; asking for it holds it against nobody of another organization', async () => {
      const [first, second] = [await installed(), await installed()];
      const stranger = await world.tenant();
      const theirs = await installed(stranger);
      const fqdn = fresh();
      const wish = await ask(first, fqdn);
      expect(await refusal(ask(second, fqdn))).toEqual([409, 'fqdn_taken']);
      expect(await refusal(ask(first, fresh()))).toEqual([409, 'binding_exists']);
      const own = await by(stranger).bindDomain({ ...at(theirs), body: { fqdn } });
      publishText(own);
      lead(theirs, fqdn);
      expect(await by(stranger).bindDomain({ ...at(theirs), body: { fqdn, txt_record: own.txt_record } })).toMatchObject({
        status: 'active',
      });
      world.names.set(wish.txt_name, { TXT: [wish.txt_record] });
      expect(await refusal(ask(first, fqdn, { txt_record: wish.txt_record }))).toEqual([409, 'fqdn_taken']);
      // Values that were given to somebody else prove nothing.
      expect(await refusal(ask(first, fqdn, { txt_record: own.txt_record }))).toEqual([409, 'domain_not_verified']);
      for (const bad of ['localhost', '10.0.0.1', 'UPPER.example', `${'a'.repeat(200)}.example`, 'a..b'])
        expect([bad, await refusal(ask(second, bad))]).toEqual([bad, [400, 'validation_failed']]);
    });
  });
}
