import { registry } from '@platform/registry/contract';
import { as } from '@platform/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Instance } from '../../contract/schema/instance.ts';
import type { Listing } from '../../contract/schema/listing.ts';
import type { Tenant, World } from '../fixtures/world.ts';

/** What frontends are told. */
export function describeRuntime(given: () => World): void {
  describe('the runtime context', () => {
    let world: World;
    let acme: Tenant;
    let listing: Listing;
    let instance: Instance;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      listing = await world.listing(acme, { version: '4.2' });
      ({ instance } = await world.setup(acme, { listing_id: listing.listing_id }));
    });
    const ask = (host: string, headers: Record<string, string> = {}) =>
      world.host.fetch('/v1/app/runtime/context', { headers: { 'x-platform-hostname': host, ...headers } });

    test('APP-052 APP-060 is told by the host alone, to whoever asks, and holds no token, secret or backend', async () => {
      const captain = as.machine('captain', 'sys:app:admin', 'sys:env:admin', 'sys:read');
      const params = { env_id: acme.env_id, app_instance_id: instance.app_instance_id as string };
      await world.at(registry, captain).updateApplication({ params, body: { feature_flags: { dark: true } } });
      const answer = await ask(instance.domain);
      expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store']);
      expect(answer.json).toEqual({
        ...{
          app_instance_id: instance.app_instance_id,
          app_slug: listing.app_slug,
          version: '4.2',
          env_id: acme.env_id,
          org_id: acme.org_id,
          hostname: instance.domain,
        },
        ...{
          gateway_url: `https://bff.${instance.domain}:8443`,
          feature_flags: { dark: true },
          auth: { auth_mode: 'self_service', allow_signup: true },
          branding: expect.any(Object),
        },
      });
      for (const word of [listing.backend_url, 'secret', 'token', instance.oauth_client?.client_id as string])
        expect(answer.text).not.toContain(word);
      // The gateway's name, other spellings, and a credential that is none change nothing.
      for (const host of [`bff.${instance.domain}`, `${instance.domain.toUpperCase()}.`, `${instance.domain}:8443`])
        expect((await ask(host)).json['hostname']).toBe(instance.domain);
      expect((await ask(instance.domain, { authorization: 'Bearer nonsense' })).status).toBe(200);
    });

    test('a host that is no application’s, and one that is no host, is 404', async () => {
      for (const host of [
        'nobody.example',
        `auth.${acme.env_slug}.${acme.org_domain}`,
        'a b',
        '../etc/passwd',
        'x'.repeat(300),
        '%00',
        `gone.${acme.env_slug}.${acme.org_domain}`,
      ])
        expect([host, (await ask(host)).json['code']]).toEqual([host, 'app_unmapped']);
      expect((await world.host.fetch('/v1/app/runtime/context')).json['code']).toBe('app_unmapped');
    });

    test('strangers who ask about many hosts are held up; hosts that are known are answered meanwhile, and the registry is not asked', async () => {
      await ask(instance.domain);
      const asked = await world.asked('sys', async () => {
        const answers = await Promise.all(Array.from({ length: 160 }, (_, index) => ask(`host${index}.example`)));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404, 429]));
        expect(answers.find(({ status }) => status === 429)?.headers['retry-after']).toBeDefined();
        expect((await ask(instance.domain)).status).toBe(200);
      });
      expect(asked.filter(operation => operation === 'resolveHostname').length).toBeLessThanOrEqual(120);
    });
  });
}
