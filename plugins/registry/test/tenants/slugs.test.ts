import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVERYTHING, refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe('slugs', () => {
  test.each([
    ['Acme', 'invalid'],
    ['a', 'invalid'],
    ['ab', 'invalid'],
    ['-abc', 'invalid'],
    ['abc-', 'invalid'],
    ['1abc', 'invalid'],
    ['a_bc', 'invalid'],
    ['a.bc', 'invalid'],
    ['a'.repeat(41), 'invalid'],
    ['äbc', 'invalid'],
    ['sys', 'reserved'],
    ['auth', 'reserved'],
    ['bff', 'reserved'],
    ['www', 'reserved'],
    ['abc', null],
    ['a-1', null],
    ['a'.repeat(40), null],
  ])('REG-080 G-K-03 %s is %s', async (slug, reason) => {
    const by = world.host.by(world.stranger());
    expect(await by.slugAvailable({ params: { slug } })).toEqual({ slug, available: reason === null, reason });
    if (reason) expect(await refusal(by.createOrg({ body: { slug, display_name: 'X' } }))).toEqual([400, `slug_${reason}`]);
  });

  test('REG-080 a slug in use is taken, one of an environment only within its organization', async () => {
    const { org, owner } = await world.org();
    await world.env(owner, org.org_id, 'prod');
    const ask = async (slug: string, query: object = {}) => (await world.host.by(owner).slugAvailable({ params: { slug }, query })).reason;
    expect([
      await ask(org.slug),
      await ask('prod', { kind: 'env', org_id: org.org_id }),
      await ask('prod'),
      await ask('prod', { kind: 'env', org_id: (await world.org(owner)).org.org_id }),
    ]).toEqual(['taken', 'taken', null, null]);
  });

  test('F-28 a slug of an environment without its organization is a question nobody can answer: 400', async () => {
    const asked = world.host.by(world.stranger()).slugAvailable({ params: { slug: 'prod' }, query: { kind: 'env' } });
    expect(await refusal(asked)).toEqual([400, 'org_required']);
  });
});

test('REG-062 REG-063 REG-070 REG-073 REG-074 REG-075 REG-078 REG-079 REG-111 each write asks for its own scope', async () => {
  const { org } = await world.org();
  const id = { params: { id: org.org_id } };
  const env = { params: { env_id: SYSTEM.envId } };
  const without = (scope: string) => world.host.by(as.user('sys:sys:admin', ...EVERYTHING.filter(other => other !== scope)));
  const [org_, env_] = [without('sys:org:admin'), without('sys:env:admin')];
  const calls = [
    () => org_.createOrg({ body: { slug: 'no-scope', display_name: 'X' } }),
    () => org_.updateOrg({ ...id, body: {} }),
    () => org_.archiveOrg(id),
    () => org_.deleteOrg(id),
    () => env_.createEnv({ body: { org_id: org.org_id, slug: 'no-scope', display_name: 'X' } }),
    () => env_.updateEnv({ ...env, body: {} }),
    () => env_.archiveEnv(env),
    () => env_.deleteEnv(env),
  ];
  for (const call of calls) expect(await refusal(call())).toEqual([403, 'policy_denied']);
});
