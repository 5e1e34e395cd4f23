import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe('operators', () => {
  test('IDN-023 read one person of their environment, with the groups', async () => {
    const env = await world.environment('auth.prod.acme.localhost');
    const ada = await world.person('ada@acme.example', { envId: env });
    const reader = world.host.by(as.userIn(env, 'auth:users:read'));
    expect(await reader.getUser({ params: { user_id: ada } })).toEqual({
      user_id: ada,
      email: 'ada@acme.example',
      email_verified: true,
      display_name: 'ada',
      status: 'active',
      groups: [],
      mfa_enrolled: false,
      created_at: expect.any(String),
      last_sign_in_at: null,
    });
    await expect(world.host.by(as.user('auth:users:read')).getUser({ params: { user_id: ada } })).rejects.toMatchObject({
      code: 'user_not_found',
    });
    await expect(reader.getUser({ params: { user_id: 'x' } })).rejects.toMatchObject({ code: 'validation_failed' });
    expect((await reader.listUsers()).items.map(({ user_id }) => user_id)).toEqual([ada]);
  });

  test('page through people without missing one', async () => {
    const reader = world.host.by(as.user('auth:users:read'));
    for (let made = 0; made < 7; made++) await world.person(`page-${made}@example.org`);
    const seen: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await reader.listUsers({ query: { limit: 3, ...(cursor ? { cursor } : {}) } });
      seen.push(...page.items.map(({ user_id }) => user_id));
      cursor = page.next_cursor;
    }
    const [{ count } = { count: 0 }] = await world.sql<
      { count: number }[]
    >`select count(*)::int as count from users where env_id = ${SYSTEM.envId}`;
    expect([seen.length, new Set(seen).size]).toEqual([count, count]);
    // Sorted, page after page, either way, and narrowed to words.
    const sorted = async (order: 'asc' | 'desc') => {
      const emails: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const query = { q: 'page-', sort: 'email' as const, order, limit: 3, ...(cursor ? { cursor } : {}) };
        const page = await reader.listUsers({ query });
        emails.push(...page.items.map(({ email }) => email));
        cursor = page.next_cursor;
      }
      return emails;
    };
    const emails = Array.from({ length: 7 }, (_, made) => `page-${made}@example.org`);
    expect([await sorted('asc'), await sorted('desc')]).toEqual([emails, emails.toReversed()]);
    const { next_cursor } = await reader.listUsers({ query: { limit: 3, sort: 'email' } });
    for (const query of [{ sort: 'email', order: 'desc' }, { sort: 'created_at' }, {}] as const)
      await expect(reader.listUsers({ query: { ...query, limit: 3, cursor: next_cursor as string } })).rejects.toMatchObject({
        code: 'invalid_cursor',
      });
    await expect(reader.listUsers({ query: { sort: 'password' as never } })).rejects.toMatchObject({ code: 'validation_failed' });
  });
});
