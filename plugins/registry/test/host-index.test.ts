import { join } from 'node:path';
import { as, boot, type BootedHost, cacheOn, readRecord } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { registry } from '../contract/index.ts';
import plugin from '../src/plugin.ts';
import { HostIndex } from '../src/resolver/host-index.ts';
import { refusal, World } from './fixtures/world.ts';

let world: World;
/** Another process of the registry, on the same stores. */
let other: BootedHost<typeof registry>;
beforeAll(async () => {
  world = await World.start();
  other = await boot(plugin, {
    stores: world.host.stores,
    environment: World.environment(world.host.stores.dataDir),
    stubs: { identity: world.directory.identity },
  });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const elsewhere = (hostname: string) => other.by(as.machine('proxy', 'sys:instances:read')).resolveHostname({ query: { hostname } });
const everywhere = (hostname: string) => Promise.all([world.resolve(hostname), elsewhere(hostname)]);
const nobodyAnywhere = async (hostname: string) => [await refusal(world.resolve(hostname)), await refusal(elsewhere(hostname))];
const UNRESOLVED = Array(2).fill([404, 'hostname_unresolved']);

describe('the next question after a change', () => {
  test('REG-093 H-31 is answered right on every process, over and over', async () => {
    const { owner, env } = await world.tenant();
    const params = { env_id: env.env_id };
    for (let turn = 0; turn < 20; turn++) {
      const slug = `app-${turn}`;
      const hostname = `${slug}.prod.${(await world.host.by(owner).getOrg({ params: { id: env.org_id } })).org_domain}`;
      // The absence is known everywhere, and must not outlive the create.
      expect(await nobodyAnywhere(hostname)).toEqual(UNRESOLVED);
      const app = await world.app(owner, env.env_id, { slug });
      expect((await everywhere(hostname)).map(({ app_instance_id: id }) => id)).toEqual([app.app_instance_id, app.app_instance_id]);
      await world.host.by(owner).archiveApplication({ params: { ...params, app_instance_id: app.app_instance_id } });
      expect(await nobodyAnywhere(hostname)).toEqual(UNRESOLVED);
    }
  });

  test('REG-093 H-31 whatever changed: environment, organization, domain, service', async () => {
    const { org, owner, env } = await world.tenant();
    const service = `sys.prod.${org.org_domain}`;
    await everywhere(service);
    await world.host.by(world.admin()).updateEnv({ params: { env_id: env.env_id }, body: { status: 'suspended' } });
    expect((await everywhere(service)).map(({ status }) => status)).toEqual(['suspended', 'suspended']);
    await world.host.by(world.admin()).updateEnv({ params: { env_id: env.env_id }, body: { status: 'active' } });
    const login = `login.${org.slug}.example`;
    expect(await nobodyAnywhere(login)).toEqual(UNRESOLVED);
    await world.prove(org, `${org.slug}.example`);
    await world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { auth_domain: login } });
    expect((await everywhere(login)).map(({ service: to }) => to)).toEqual(['auth', 'auth']);
    await world.host.by(owner).updateOrg({ params: { id: org.org_id }, body: { org_domain: `${org.slug}.example` } });
    expect(await nobodyAnywhere(service)).toEqual(UNRESOLVED);
    expect(await nobodyAnywhere(`kiosk.prod.${org.slug}.example`)).toEqual(UNRESOLVED);
    const registration = { service: 'kiosk', label: 'Kiosk', base_path: '/v1', nav: [], pages: [], actions: [], stream_families: [] };
    await world.host.by({ ...as.machine('kiosk', 'sys:verticals:write'), vertical: 'retail' }).registerVertical({
      body: { vertical: 'retail', version: '1', services: [registration], admin_scopes: [], scopes: [], error_codes: [], listings: [] },
    });
    expect((await everywhere(`kiosk.prod.${org.slug}.example`)).map(({ service: to }) => to)).toEqual(['kiosk', 'kiosk']);
    await world.host.by(owner).archiveOrg({ params: { id: org.org_id } });
    expect(await nobodyAnywhere(`kiosk.prod.${org.slug}.example`)).toEqual(UNRESOLVED);
  });
});

describe('what is known', () => {
  test('REG-093 G-K-15 a host in use is answered from memory, for 30 s at most where the word of a change was lost', async () => {
    const { owner, env } = await world.tenant();
    const { hostname } = await world.app(owner, env.env_id);
    await world.resolve(hostname);
    // Behind everybody's back, as when the store lost the version: only memory can still say «active».
    await world.sql`update envs set status = 'suspended' where env_id = ${env.env_id}`;
    expect(await world.resolve(hostname)).toMatchObject({ status: 'active' });
    await world.host.clock.advance('29s');
    expect(await world.resolve(hostname)).toMatchObject({ status: 'active' });
    await world.host.clock.advance('1s');
    expect(await world.resolve(hostname)).toMatchObject({ status: 'suspended' });
  });

  test('REG-147 without the key-value store a change succeeds, and the database answers', async () => {
    const { owner, env, org } = await world.tenant();
    const hostname = `late.prod.${org.org_domain}`;
    expect(await nobodyAnywhere(hostname)).toEqual(UNRESOLVED);
    const { pid } = readRecord(join(world.host.stores.dataDir, 'run', 'kv.json')) as { pid: number };
    process.kill(pid, 'SIGSTOP');
    try {
      const app = await world.app(owner, env.env_id, { slug: 'late' });
      expect((await everywhere(hostname)).map(({ app_instance_id: id }) => id)).toEqual([app.app_instance_id, app.app_instance_id]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  }, 30_000);

  test('REG-093 a flood of names nobody has is bounded, and pushes out nothing in use', async () => {
    const asked: string[] = [];
    const somebody = await world.resolve('console.ops.sys.localhost');
    const index = new HostIndex(
      { kv: world.kv, cache: cacheOn(world.host.clock) },
      {
        find: async hostname => {
          asked.push(hostname);
          return hostname === 'somebody.example' ? somebody : undefined;
        },
      },
    );
    const names = Array.from({ length: 10_001 }, (_, at) => `nobody-${at}.example`);
    await index.find('somebody.example');
    for (let at = 0; at < names.length; at += 500) await Promise.all(names.slice(at, at + 500).map(name => index.find(name)));
    asked.length = 0;
    expect(await index.find('somebody.example')).toBe(somebody);
    await index.find(names.at(-1) as string);
    expect(asked).toEqual([]);
    await index.find(names[0] as string);
    expect(asked).toEqual([names[0]]);
  }, 30_000);

  test('REG-093 everybody who asks for one name at one moment waits for one lookup', async () => {
    let lookups = 0;
    const index = new HostIndex({ kv: world.kv, cache: cacheOn(world.host.clock) }, { find: async () => void (lookups += 1) as undefined });
    await Promise.all(Array.from({ length: 100 }, () => index.find('nobody.example')));
    expect(lookups).toBe(1);
  });
});
