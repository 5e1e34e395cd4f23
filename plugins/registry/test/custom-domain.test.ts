import { as, NameServer, type Persona } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AppInstance, CustomDomain } from '../contract/schema/app.ts';
import { refusal, World } from './fixtures/world.ts';

let names: NameServer;
let world: World;
beforeAll(async () => {
  names = await NameServer.start();
  world = await World.start({ PLATFORM_SYS_DNS_SERVERS: names.address });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await names[Symbol.asyncDispose]();
});
beforeEach(() => {
  names.silent = false;
});

let count = 0;
const freshName = () => `shop${(count += 1)}.customer.example`;
interface Claim {
  readonly owner: Persona;
  readonly app: AppInstance;
  readonly params: { env_id: string; app_instance_id: string };
  readonly domain: CustomDomain;
}
const claim = async (fqdn: string): Promise<Claim> => {
  const { owner, env } = await world.tenant();
  const app = await world.app(owner, env.env_id);
  const params = { env_id: env.env_id, app_instance_id: app.app_instance_id };
  return { owner, app, params, domain: await world.host.by(owner).putCustomDomain({ params, body: { fqdn } }) };
};
/** The records the customer sets. */
const publish = ({ domain }: Claim) => {
  names.set(domain.txt_name, { TXT: ['v=spf1 -all', domain.txt_value] });
  names.set(domain.fqdn, { CNAME: [domain.cname_target] });
};
const verify = ({ owner, params }: Claim) => world.host.by(owner).verifyCustomDomain({ params });
const shown = ({ owner, params }: Claim) => world.host.by(owner).getCustomDomain({ params });
const domainOf = async ({ params }: Claim) =>
  world.host
    .by(world.service('proxy', 'sys:instances:read'))
    .appCustomDomain({ params: { id: params.env_id }, query: { app_instance_id: params.app_instance_id } });

describe('verification', () => {
  test('REG-049 REG-086 REG-093 REG-097 a domain takes effect when DNS has its records, and not before', async () => {
    const claimed = await claim(freshName());
    const { domain, app, params } = claimed;
    expect(domain).toEqual({
      fqdn: domain.fqdn,
      status: 'pending',
      txt_name: `_platform-challenge.${domain.fqdn}`,
      txt_value: expect.stringMatching(/^[\w-]{43}$/),
      cname_target: app.hostname,
      verified_at: null,
      last_error: null,
    });
    expect(await refusal(world.resolve(domain.fqdn))).toEqual([404, 'hostname_unresolved']);
    publish(claimed);
    expect(await verify(claimed)).toMatchObject({ status: 'verified', verified_at: expect.any(String), last_error: null });
    const where = { kind: 'custom', env_id: params.env_id, app_instance_id: app.app_instance_id, app_id: 'crm' };
    expect(await world.resolve(domain.fqdn)).toMatchObject({ ...where, service: 'web' });
    expect(await world.resolve(`bff.${domain.fqdn}`)).toMatchObject({ ...where, service: 'bff' });
    expect(await domainOf(claimed)).toEqual({ ...params, fqdn: domain.fqdn, status: 'verified' });
    expect(await world.host.by(claimed.owner).getApplication({ params })).toMatchObject({
      custom_domain: { status: 'verified' },
      version: 3,
    });
    const before = (await world.written('platform:sys:app:updated', params.env_id)).length;
    await verify(claimed);
    expect(await world.written('platform:sys:app:updated', params.env_id)).toHaveLength(before);
  });

  test('REG-086 what is missing is said with what was found, and the domain does not resolve', async () => {
    const claimed = await claim(freshName());
    const { domain, params } = claimed;
    names.set(domain.txt_name, { TXT: ['something else'] });
    names.set(domain.fqdn, { CNAME: ['elsewhere.example'] });
    const ask = () =>
      world.host.fetch(`/v1/env/${params.env_id}/applications/${params.app_instance_id}/custom-domain/verify`, {
        method: 'POST',
        persona: world.admin(),
      });
    expect(await ask()).toMatchObject({
      status: 409,
      json: {
        code: 'domain_not_verified',
        expected: [
          { type: 'TXT', name: domain.txt_name, value: domain.txt_value },
          { type: 'CNAME', name: domain.fqdn, value: domain.cname_target },
        ],
        found: { txt: ['something else'], cname: 'elsewhere.example' },
      },
    });
    expect(await shown(claimed)).toMatchObject({ status: 'pending', last_error: expect.stringContaining(domain.txt_name) });
    // The right value alone is not enough: the domain must lead here, too.
    names.set(domain.txt_name, { TXT: [domain.txt_value] });
    expect(await ask()).toMatchObject({
      status: 409,
      json: { code: 'domain_not_verified', detail: expect.stringContaining(`does not lead to ${domain.cname_target}`) },
    });
    names.set(domain.txt_name, {});
    names.set(domain.fqdn, { CNAME: [domain.cname_target] });
    expect(await ask()).toMatchObject({ status: 409, json: { found: { txt: [], cname: domain.cname_target } } });
    expect(await refusal(world.resolve(domain.fqdn))).toEqual([404, 'hostname_unresolved']);
  });

  test('REG-086 the page of an application verifies its domain the same way', async () => {
    const claimed = await claim(freshName());
    const { params } = claimed;
    const persona = as.userIn(params.env_id, 'sys:app:admin', 'sys:sys:admin');
    const ask = () =>
      world.host.by(persona).verifyApplicationRow({ params: { app_instance_id: params.app_instance_id }, targetEnvId: params.env_id });
    expect(await refusal(ask())).toEqual([409, 'domain_not_verified']);
    publish(claimed);
    expect(await ask()).toMatchObject({ fqdn: claimed.domain.fqdn, status: 'verified' });
  });

  test('a service of the platform brings a challenge of its own, in TXT or as an alias; nobody else does', async () => {
    const { owner, env } = await world.tenant();
    const app = await world.app(owner, env.env_id);
    const params = { env_id: env.env_id, app_instance_id: app.app_instance_id };
    const store = world.host.by(world.service('app', 'sys:domains:challenge', 'sys:app:admin'));
    const fqdn = freshName();
    names.set(fqdn, { CNAME: [app.hostname] });
    const alias = { fqdn, type: 'CNAME' as const, name: `token.${fqdn}`, value: 'target-of-this-one.domains.example' };
    expect(await refusal(world.host.by(owner).challengeCustomDomain({ params, body: alias }))).toEqual([403, 'm2m_required']);
    for (const challenge of [alias, { ...alias, type: 'TXT' as const }, { ...alias, type: 'TXT' as const, name: `another.${fqdn}` }]) {
      await store.challengeCustomDomain({ params, body: challenge });
      expect(await refusal(store.verifyCustomDomain({ params }))).toEqual([409, 'domain_not_verified']);
      names.set(challenge.name, { [challenge.type]: [challenge.value] });
      expect(await store.verifyCustomDomain({ params })).toMatchObject({ status: 'verified' });
      // Asking for the same again takes nothing away.
      await store.challengeCustomDomain({ params, body: challenge });
      expect(await world.resolve(fqdn)).toMatchObject({ app_instance_id: app.app_instance_id });
    }
  });

  test('REG-086 ALIAS: the same addresses stand for the CNAME, others do not', async () => {
    const claimed = await claim(freshName());
    const { domain } = claimed;
    names.set(domain.txt_name, { TXT: [domain.txt_value] });
    names.set(domain.cname_target, { A: ['192.0.2.10', '192.0.2.11'], AAAA: ['2001:db8:0:0:0:0:0:10'] });
    names.set(domain.fqdn, { A: ['192.0.2.11', '192.0.2.66'] });
    expect(await refusal(verify(claimed))).toEqual([409, 'domain_not_verified']);
    names.set(domain.fqdn, { A: ['192.0.2.11'], AAAA: ['2001:db8:0:0:0:0:0:10'] });
    expect(await verify(claimed)).toMatchObject({ status: 'verified' });
  });

  test('D-03 G-SYS-08 asking reserves nothing: of two the first that proves it has the domain', async () => {
    const fqdn = freshName();
    const squatter = await claim(fqdn);
    const rightful = await claim(fqdn);
    expect(squatter.domain.txt_value).not.toBe(rightful.domain.txt_value);
    publish(rightful);
    expect(await refusal(verify(squatter))).toEqual([409, 'domain_not_verified']);
    expect(await verify(rightful)).toMatchObject({ status: 'verified' });
    expect(await refusal(verify(squatter))).toEqual([409, 'hostname_taken']);
    expect(await refusal(claim(fqdn))).toEqual([409, 'hostname_taken']);
    expect(await world.resolve(fqdn)).toMatchObject({ app_instance_id: rightful.app.app_instance_id });
  });

  test('G-SYS-08 two that prove it at once: the database lets one have it', async () => {
    const fqdn = freshName();
    const both = [await claim(fqdn), await claim(fqdn)];
    names.set(`_platform-challenge.${fqdn}`, { TXT: both.map(({ domain }) => domain.txt_value) });
    names.set(fqdn, { A: ['192.0.2.20'] });
    for (const { domain } of both) names.set(domain.cname_target, { A: ['192.0.2.20'] });
    const outcomes = await Promise.all(both.map(claimed => refusal(verify(claimed))));
    expect(outcomes.toSorted()).toEqual([
      [200, 'answered'],
      [409, 'hostname_taken'],
    ]);
  });

  test('F-34 a domain outside the platform’s leads nowhere until its organization shows its value in DNS; of two that ask the first to show it has it', async () => {
    const domain = `corp${freshName()}`;
    const [squatter, mine] = [await world.tenant(), await world.tenant()];
    await world.host.by(squatter.owner).updateEnv({ params: { env_id: squatter.env.env_id }, body: { auth_domain: `id.${domain}` } });
    const by = world.host.by(mine.owner);
    await by.updateOrg({ params: { id: mine.org.org_id }, body: { org_domain: domain } });
    const app = await world.app(mine.owner, mine.env.env_id, { slug: 'shop' });
    const hosts = [app.hostname, `sys.prod.${domain}`, `auth.prod.${domain}`, `id.${domain}`];
    for (const host of hosts) expect([host, ...(await refusal(world.resolve(host)))]).toEqual([host, 404, 'hostname_unresolved']);
    const [listed] = (await by.listDomains({ params: { id: mine.org.org_id } })).items;
    expect(listed).toMatchObject({ domain, status: 'pending', txt_name: `_platform-challenge.${domain}` });
    const target = { params: { id: mine.org.org_id, domain } };
    expect(await refusal(by.verifyDomain(target))).toEqual([409, 'domain_not_verified']);
    expect(await refusal(world.host.by(squatter.owner).verifyDomain(target))).toEqual([403, 'not_org_member']);
    names.set(listed?.txt_name as string, { TXT: [listed?.txt_value as string] });
    const rows = world.host.by(as.userIn(mine.env.env_id, 'sys:read', 'sys:org:admin', 'sys:sys:admin'));
    expect(await rows.verifyDomainRow({ params: { domain }, targetEnvId: mine.env.env_id })).toMatchObject({
      status: 'verified',
      last_error: null,
    });
    expect((await rows.domainRows({ targetEnvId: mine.env.env_id })).items).toMatchObject([{ domain, status: 'verified' }]);
    for (const host of hosts.slice(0, 3)) expect(await world.resolve(host)).toMatchObject({ org_id: mine.org.org_id });
    // What somebody asked for below it stays unproven, and leads nowhere.
    expect(await refusal(world.resolve(`id.${domain}`))).toEqual([404, 'hostname_unresolved']);
    // The same domain, proven by one, is no other's any more.
    await world.sql`insert into domain_proofs (org_id, domain, txt_value)
      values (${squatter.org.org_id}, ${domain}, ${listed?.txt_value ?? ''})`;
    expect(await refusal(world.host.by(squatter.owner).verifyDomain({ params: { id: squatter.org.org_id, domain } }))).toEqual([
      409,
      'hostname_taken',
    ]);
  });

  test('F-34 members verify a domain of their organization by its own path, and the trail says so', async () => {
    const domain = `corp${freshName()}`;
    const { org, owner } = await world.tenant();
    const by = world.host.by(owner);
    await by.updateOrg({ params: { id: org.org_id }, body: { org_domain: domain } });
    const [listed] = (await by.listDomains({ params: { id: org.org_id } })).items;
    names.set(listed?.txt_name as string, { TXT: [listed?.txt_value as string] });
    expect(await by.verifyDomain({ params: { id: org.org_id, domain } })).toMatchObject({ domain, status: 'verified' });
    const trail = await world.sql<object[]>`select actor from audit where details->>'domain' = ${domain} or resource->>'id' = ${domain}`;
    expect(trail).toContainEqual({ actor: { kind: 'user', id: owner.id } });
  });

  test('G-SYS-08 names of the platform, of other organizations and of services are refused when asked for', async () => {
    const [{ org: other, env, owner: stranger }, mine] = [await world.tenant(), await world.tenant()];
    await world.host.by(stranger).updateEnv({ params: { env_id: env.env_id }, body: { auth_domain: `login.${other.slug}.example` } });
    await world.host.by(mine.owner).updateOrg({ params: { id: mine.org.org_id }, body: { org_domain: `${mine.org.slug}.example` } });
    const app = await world.app(mine.owner, mine.env.env_id);
    const params = { env_id: mine.env.env_id, app_instance_id: app.app_instance_id };
    const put = (fqdn: string) => refusal(world.host.by(mine.owner).putCustomDomain({ params, body: { fqdn } }));
    const taken = [
      'console.ops.sys.localhost',
      `shop.${other.org_domain}`,
      `login.${other.slug}.example`,
      `auth.prod.${mine.org.slug}.example`,
      `bff.shop.${mine.org.slug}.example`,
    ];
    for (const fqdn of taken) expect([fqdn, ...(await put(fqdn))]).toEqual([fqdn, 409, 'hostname_taken']);
    for (const fqdn of ['localhost', 'UPPER.example', '192.0.2.1', 'a..example', '-a.example', `${'a'.repeat(64)}.example`])
      expect([fqdn, ...(await put(fqdn))]).toEqual([fqdn, 400, 'validation_failed']);
    for (const fqdn of [`shop.${mine.org.slug}.example`, `www.shop.eu.${mine.org.slug}.example`])
      expect([fqdn, ...(await put(fqdn))]).toEqual([fqdn, 200, 'answered']);
  });

  test('REG-086 given up, a domain resolves no more and anybody may prove it; asking for another starts anew', async () => {
    const fqdn = freshName();
    const first = await claim(fqdn);
    publish(first);
    await verify(first);
    const by = world.host.by(first.owner);
    expect(await by.putCustomDomain({ params: first.params, body: { fqdn } })).toMatchObject({
      status: 'verified',
      txt_value: first.domain.txt_value,
    });
    const moved = await by.putCustomDomain({ params: first.params, body: { fqdn: freshName() } });
    expect(moved).toMatchObject({ status: 'pending', verified_at: null });
    expect(moved.txt_value).not.toBe(first.domain.txt_value);
    expect(await refusal(world.resolve(fqdn))).toEqual([404, 'hostname_unresolved']);
    const next = await claim(fqdn);
    publish(next);
    expect(await verify(next)).toMatchObject({ status: 'verified' });
    await world.host.by(next.owner).deleteCustomDomain({ params: next.params });
    for (const call of [() => shown(next), () => verify(next), () => world.host.by(next.owner).deleteCustomDomain({ params: next.params })])
      expect(await refusal(call())).toEqual([404, 'custom_domain_not_found']);
    expect(await refusal(world.resolve(fqdn))).toEqual([404, 'hostname_unresolved']);
  });

  test('H-29 the proven domain of a deleted tenant goes to nobody else', async () => {
    const claimed = await claim(freshName());
    publish(claimed);
    await verify(claimed);
    await world.host.by(claimed.owner).deleteEnv({ params: { env_id: claimed.params.env_id } });
    expect(await refusal(world.resolve(claimed.domain.fqdn))).toEqual([404, 'hostname_unresolved']);
    expect(await refusal(claim(claimed.domain.fqdn))).toEqual([409, 'hostname_taken']);
  });
});

describe('looking again', () => {
  /** A day later in the records, and the job's hour on the clock. */
  const nextLook = async () => {
    await world.sql`update custom_domains set checked_at = checked_at - interval '1 day', failing_since = failing_since - interval '1 day'`;
    await world.host.clock.leap('1h');
  };

  test('H-32 a domain that leads elsewhere for three days fails, says why and stops resolving; a new proof brings it back', async () => {
    const claimed = await claim(freshName());
    publish(claimed);
    await verify(claimed);
    await nextLook();
    expect(await shown(claimed)).toMatchObject({ status: 'verified', last_error: null });
    names.set(claimed.domain.fqdn, { CNAME: ['elsewhere.example'] });
    for (let day = 0; day < 3; day++) {
      await nextLook();
      expect(await shown(claimed)).toMatchObject({ status: 'verified', last_error: expect.stringContaining('does not lead') });
      expect(await world.resolve(claimed.domain.fqdn)).toMatchObject({ kind: 'custom' });
    }
    await nextLook();
    expect(await shown(claimed)).toMatchObject({ status: 'failed', last_error: expect.stringContaining('does not lead') });
    expect(await refusal(world.resolve(claimed.domain.fqdn))).toEqual([404, 'hostname_unresolved']);
    const audited = await world.sql<
      { actor: object; details: object }[]
    >`select actor, details from audit where action = 'app.domain_failed' and env_id = ${claimed.params.env_id}`;
    expect([...audited]).toEqual([
      { actor: { kind: 'workload', id: 'sys' }, details: { fqdn: claimed.domain.fqdn, reason: expect.stringContaining('does not lead') } },
    ]);
    publish(claimed);
    expect(await verify(claimed)).toMatchObject({ status: 'verified' });
  });

  test('H-32 a day of trouble that ends in time is forgotten', async () => {
    const claimed = await claim(freshName());
    publish(claimed);
    await verify(claimed);
    names.set(claimed.domain.fqdn, {});
    await nextLook();
    await nextLook();
    publish(claimed);
    await nextLook();
    names.set(claimed.domain.fqdn, {});
    for (let day = 0; day < 3; day++) await nextLook();
    expect(await shown(claimed)).toMatchObject({ status: 'verified' });
  });

  test('H-32 name servers that do not answer say nothing about who owns a domain', async () => {
    const claimed = await claim(freshName());
    publish(claimed);
    await verify(claimed);
    names.silent = true;
    await nextLook();
    const [row] = await world.sql`select status, failing_since, last_error from custom_domains
        where app_instance_id = ${claimed.params.app_instance_id}`;
    expect(row).toEqual({ status: 'verified', failing_since: null, last_error: expect.stringContaining('did not answer') });
    expect(await refusal(verify(claimed))).toEqual([409, 'domain_not_verified']);
    expect(await world.resolve(claimed.domain.fqdn)).toMatchObject({ kind: 'custom' });
  }, 60_000);
});
