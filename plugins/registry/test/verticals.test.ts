import { SYSTEM } from '@platform/sdk';
import { as, eventually, type Persona } from '@platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { registration, retail } from './fixtures/registration.ts';
import { refusal, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
  await world.host.by(retail('till')).registerVertical({ body: registration('retail', ['till', 'shelf']) });
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => world.directory.down.clear());

describe('verticals', () => {
  test('REG-006 REG-007 REG-008 REG-100 what registers at run time is served back', async () => {
    const { items } = await world.host.by(world.stranger()).listVerticals({});
    expect(items.find(({ service }) => service === 'till')).toMatchObject({
      vertical: 'retail',
      admin_scopes: ['retail:till:admin'],
      error_codes: [{ code: 'till_jammed' }],
      listings: [{ page: 'tills' }],
      health: 'down',
    });
    expect(items.find(({ service }) => service === 'shelf')?.error_codes).toEqual([]);
  });

  test('REG-007 a workload registers its own vertical only', async () => {
    expect(await refusal(world.host.by(retail('till', 'other')).registerVertical({ body: registration('retail', ['till']) }))).toEqual([
      403,
      'vertical_mismatch',
    ]);
    expect(
      await world.host.fetch('/v1/verticals/register', {
        method: 'POST',
        persona: as.user('sys:verticals:write'),
        body: JSON.stringify(registration('platform', ['till'])),
      }),
    ).toMatchObject({
      status: 403,
      json: { code: 'm2m_required' },
    });
  });

  test('REG-007 the same again is a no-op, a change replaces and is told', async () => {
    const by = world.host.by(retail('lab', 'science'));
    const put = async (services: string[], version: string) =>
      (await by.registerVertical({ body: registration('science', services, version) })).changed;
    expect([await put(['lab', 'bench'], '1'), await put(['lab', 'bench'], '1'), await put(['lab'], '2')]).toEqual([true, false, true]);
    expect((await world.written('platform:sys:vertical:registered', 'science')).map(({ payload }) => payload['version'])).toEqual([
      '1',
      '2',
    ]);
    const { items } = await world.host.by(world.stranger()).listVerticals({});
    expect(items.filter(({ vertical }) => vertical === 'science').map(({ service }) => service)).toEqual(['lab']);
  });

  test('registered services come in pages, and pages of the platform itself only to its administrators', async () => {
    const nav = [
      { page: 'tills', label: 'Tills', scope: 'env' },
      { page: 'hosts', label: 'Hosts', scope: 'platform' },
    ];
    const paged = registration('paged', ['aone', 'btwo', 'cthree']);
    await world.host
      .by(retail('aone', 'paged'))
      .registerVertical({ body: { ...paged, services: paged.services.map(service => ({ ...service, nav })) } });
    const seen: string[] = [];
    const by = world.host.by(world.stranger());
    for (let cursor: string | null = ''; cursor !== null; ) {
      const {
        items,
        next_cursor: next,
      }: { items: { service: string; nav: { page: string }[]; vertical: string }[]; next_cursor: string | null } = await by.listVerticals({
        query: { limit: 2, ...(cursor ? { cursor } : {}) },
      });
      for (const { service, vertical, nav: offered } of items) {
        seen.push(service);
        if (vertical === 'paged') expect(offered.map(({ page }) => page)).toEqual(['tills']);
      }
      cursor = next;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining(['aone', 'btwo', 'cthree']));
    const { items } = await world.host.by(world.admin()).listVerticals({ query: { limit: 200 } });
    expect(items.find(({ service }) => service === 'btwo')?.nav.map(({ page }) => page)).toEqual(['tills', 'hosts']);
    expect(await refusal(by.listVerticals({ query: { cursor: '!!' } }))).toEqual([400, 'invalid_cursor']);
  });

  test('REG-028 its grants reach identity before the answer, without those of machines; when identity is away nothing is registered', async () => {
    await world.host.by(retail('oven', 'bakery')).registerVertical({ body: registration('bakery', ['oven']) });
    expect(world.directory.asked('putGrants').at(-1)?.input).toMatchObject({
      params: { vertical: 'bakery' },
      body: { scopes: [{ scope: 'bakery:till:read', grants: 'read' }] },
    });
    world.directory.down.add('putGrants');
    expect((await refusal(world.host.by(retail('mill', 'grain')).registerVertical({ body: registration('grain', ['mill']) })))[0]).toBe(
      503,
    );
    const rows = await world.sql<object[]>`select 1 from verticals where vertical = 'grain'`;
    expect(rows).toHaveLength(0);
  });

  test('REG-099 the scope catalog needs no token, and its ETag moves with what is registered', async () => {
    const first = await world.host.fetch('/v1/scopes/catalog');
    expect(first).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'public, max-age=60', etag: `"${String(first.json['version'])}"` },
    });
    expect(first.json['scopes']).toEqual(
      expect.arrayContaining([
        { scope: 'sys:org:admin', service: 'sys', vertical: 'platform', title: 'Create and change organizations', admin: true },
        { scope: 'retail:till:read', service: 'till', vertical: 'retail', title: 'Read tills', admin: false },
      ]),
    );
    await world.host.by(retail('pump', 'fuel')).registerVertical({ body: registration('fuel', ['pump']) });
    expect((await world.host.fetch('/v1/scopes/catalog')).headers['etag']).not.toBe(first.headers['etag']);
  });
});

describe('the life of a service of a vertical', () => {
  const machine = (): Persona => as.machine('host', 'sys:verticals:found');
  const find = (service: string, vertical: string, version = '1.0.0') =>
    world.host.by(machine()).findVertical({ params: { service }, body: { vertical, version, label: `The ${service}` } });
  const lives = async (vertical: string) =>
    Object.fromEntries(
      (await world.host.by(world.admin()).listLives({})).items
        .filter(each => each.vertical === vertical)
        .map(each => [each.service, each.life]),
    );
  const told = async (service: string) =>
    (await world.written('platform:sys:vertical:changed', service)).map(({ payload }) => [payload['before'], payload['life']]);
  const running = (service: string) => world.kv.call('HSET', `captain:svc:${service}`, '127.0.0.1:1', '{}');
  const seeOut = () => world.settled(['seeOut'], { now: true });

  test('goes from known to enabled, draining and gone, each step told on the bus, and leaves nothing behind but its name', async () => {
    const heard: string[] = [];
    await using _heard = await world.kv.subscribe('sys:verticals:changed', () => void heard.push('changed'));
    expect(await find('lathe', 'works')).toMatchObject({ life: 'known', instances: 0, next: 'take_out' });
    await world.host.by(retail('lathe', 'works')).registerVertical({ body: registration('works', ['lathe', 'press']) });
    expect(await lives('works')).toEqual({ lathe: 'enabled', press: 'enabled' });
    const { env, owner } = await world.tenant();
    await world.host
      .by(owner)
      .updateServices({ params: { env_id: env.env_id }, body: { services: [{ service: 'lathe', enabled: false }] } });
    await world.sql`insert into policy_relations (relation_id, env_id, service, subject, relation, object)
      values (${env.env_id}, ${env.env_id}, 'lathe', 'user:a', 'owner', 'thing:b')`;

    await running('lathe');
    await world.host.by(world.admin()).takeOutVertical({ params: { service: 'lathe' } });
    await seeOut();
    expect(await lives('works')).toEqual({ lathe: 'draining', press: 'enabled' });
    await world.kv.call('DEL', 'captain:svc:lathe');
    await seeOut();
    expect(await lives('works')).toEqual({ lathe: 'gone', press: 'enabled' });
    const left = (await world.host.by(world.admin()).listLives({})).items.find(({ service }) => service === 'lathe');
    expect(left).toMatchObject({ label: 'The lathe', instances: 0, next: 'bring_back' });
    expect(await told('lathe')).toEqual([
      [null, 'known'],
      ['known', 'enabled'],
      ['enabled', 'draining'],
      ['draining', 'gone'],
    ]);
    await eventually(() => heard.length).toBeGreaterThanOrEqual(4);

    const { items } = await world.host.by(world.admin()).listVerticals({ query: { limit: 200 } });
    expect(items.filter(({ vertical }) => vertical === 'works').map(({ service }) => service)).toEqual(['press']);
    expect((await world.host.fetch('/v1/scopes/catalog')).text).not.toContain('works:till:');
    expect(
      (await world.host.by(owner).listServices({ params: { env_id: env.env_id } })).services.map(({ service }) => service),
    ).not.toContain('lathe');
    expect(await world.sql`select 1 from service_enablement where service = 'lathe'`).toHaveLength(0);
    expect(await world.sql`select 1 from policy_relations where service = 'lathe'`).toHaveLength(0);
    const trail = await world.host.by(world.admin()).listAudit({ query: { env_id: SYSTEM.envId, action: 'vertical.taken_out' } });
    expect(trail.items[0]).toMatchObject({
      resource: { type: 'vertical_service', id: 'lathe' },
      details: { vertical: 'works', before: 'enabled' },
    });
  });

  test('what was taken out stays out, however often its plugin is found or registers, until somebody brings it back', async () => {
    await world.host.by(retail('kiln', 'pottery')).registerVertical({ body: registration('pottery', ['kiln']) });
    await world.host.by(world.admin()).takeOutVertical({ params: { service: 'kiln' } });
    const { items } = await world.host.by(world.admin()).listVerticals({ query: { limit: 200 } });
    expect(items.find(({ service }) => service === 'kiln')?.nav).toEqual([]);
    await seeOut();
    expect(await find('kiln', 'pottery', '2.0.0')).toMatchObject({ life: 'gone', next: 'bring_back' });
    expect(await world.host.by(retail('kiln', 'pottery')).registerVertical({ body: registration('pottery', ['kiln'], '2') })).toMatchObject(
      { changed: false },
    );
    expect(await lives('pottery')).toEqual({ kiln: 'gone' });
    expect(await world.host.by(world.admin()).bringBackVertical({ params: { service: 'kiln' } })).toMatchObject({ life: 'known' });
    await world.host.by(retail('kiln', 'pottery')).registerVertical({ body: registration('pottery', ['kiln'], '2') });
    expect(await lives('pottery')).toEqual({ kiln: 'enabled' });
    // Twice is once.
    await world.host.by(world.admin()).bringBackVertical({ params: { service: 'kiln' } });
    expect(await lives('pottery')).toEqual({ kiln: 'enabled' });
  });

  test('brought back while it drains, it goes on; a machine that died with its process is waited for two minutes', async () => {
    await world.host.by(retail('loom', 'weaving')).registerVertical({ body: registration('weaving', ['loom']) });
    await running('loom');
    const by = world.host.by(world.admin());
    await by.takeOutVertical({ params: { service: 'loom' } });
    await by.bringBackVertical({ params: { service: 'loom' } });
    await seeOut();
    expect(await lives('weaving')).toEqual({ loom: 'known' });
    const heard = Promise.withResolvers<void>();
    await using _heard = await world.kv.subscribe('sys:verticals:changed', () => heard.resolve());
    // What it registers is what it was: its life alone has changed, and that is told as well.
    expect(await world.host.by(retail('loom', 'weaving')).registerVertical({ body: registration('weaving', ['loom']) })).toMatchObject({
      changed: false,
    });
    await heard.promise;
    expect(await lives('weaving')).toEqual({ loom: 'enabled' });
    await by.takeOutVertical({ params: { service: 'loom' } });
    await seeOut();
    expect(await lives('weaving')).toEqual({ loom: 'draining' });
    await world.sql`update vertical_services set since = now() - interval '121 s' where service = 'loom'`;
    await seeOut();
    expect(await lives('weaving')).toEqual({ loom: 'gone' });
    expect(await world.kv.call('EXISTS', 'captain:svc:loom')).toBe(0);
  });

  test('a service that its vertical registers no longer is gone when none of its processes is left, and comes back when it is registered', async () => {
    const put = (services: string[], version: string) =>
      world.host.by(retail('oar', 'boats')).registerVertical({ body: registration('boats', services, version) });
    await put(['oar', 'sail', 'keel'], '1');
    await running('keel');
    await put(['oar'], '2');
    expect(await lives('boats')).toEqual({ oar: 'enabled', sail: 'gone', keel: 'enabled' });
    await put(['oar', 'sail'], '3');
    expect(await lives('boats')).toEqual({ oar: 'enabled', sail: 'enabled', keel: 'enabled' });
  });

  test('only an administrator decides it, only a machine finds it, and a name is its first owner’s until that is gone', async () => {
    const by = world.host.by(world.admin());
    expect(await refusal(world.host.by(world.stranger()).takeOutVertical({ params: { service: 'till' } }))).toEqual([403, 'policy_denied']);
    expect(await refusal(by.takeOutVertical({ params: { service: 'sys' } }))).toEqual([409, 'service_required']);
    expect(await refusal(by.takeOutVertical({ params: { service: 'nobody' } }))).toEqual([404, 'vertical_not_found']);
    expect(await refusal(by.bringBackVertical({ params: { service: 'nobody' } }))).toEqual([404, 'vertical_not_found']);
    expect(await refusal(find('till', 'thieves'))).toEqual([409, 'service_taken']);
    expect(await refusal(find('sys', 'thieves'))).toEqual([409, 'service_taken']);
    const stolen = world.host.by(retail('till', 'thieves')).registerVertical({ body: registration('thieves', ['till']) });
    expect(await refusal(stolen)).toEqual([409, 'service_taken']);
    expect(
      (
        await refusal(
          world.host.by(world.admin()).findVertical({ params: { service: 'x' }, body: { vertical: 'y', version: '1', label: 'Y' } }),
        )
      )[0],
    ).toBe(403);
  });
});
