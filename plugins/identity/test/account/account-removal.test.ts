import { as } from '@platform/testing';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuthenticatorApp } from '../fixtures/authenticator.ts';
import { Directory, USER } from '../fixtures/directory.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const CYCLES = 200;
const AT_ONCE = 50;
/**
 * What outlives an account on purpose: the trail, what was said about it, and the mark that its sessions are void, each until its own time.
 */
const KEPT = ['outbox', 'inbox', 'own_audit', 'work_tasks', 'revocations'];
let world: World;
let directory: Directory;
beforeAll(async () => {
  world = await World.start();
  directory = await Directory.open(world, 'scim:read', 'scim:write');
  const realm = { targetEnvId: SYSTEM.envId };
  await world.registry.putGroup({ params: { group: 'test:removal' }, body: {}, ...realm });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const admin = () => world.host.by(as.user('auth:users:admin', 'auth:users:read'));

async function rows(): Promise<Record<string, number>> {
  const tables = await world.sql<
    { name: string }[]
  >`select table_name as name from information_schema.tables where table_schema = current_schema() and table_type = 'BASE TABLE'`;
  const counted: Record<string, number> = {};
  for (const { name } of tables.filter(each => !KEPT.includes(each.name))) {
    const [row] = await world.sql<
      { n: number }[]
    >`select (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I', ${name}::text), false, true,
      '')))[1]::text::int as n`;
    counted[name] = row?.n ?? -1;
  }
  return counted;
}

describe('the end of an account', () => {
  test('takes everything that hangs on it along: sessions, tokens, factors, memberships, roles', async () => {
    const before = await rows();
    const email = 'whole@example.org';
    const user_id = await world.person(email);
    const realm = { targetEnvId: SYSTEM.envId };
    await world.registry.putGroupMember({ params: { group: 'test:removal', user_id }, ...realm });
    await world.registry.putRole({ params: { role: 'test:removal' }, body: { scopes: ['auth:users:read'] }, ...realm });
    await world.registry.putUserRole({ params: { user_id, role: 'test:removal' }, ...realm });
    const browser = world.browser();
    const tokens = await world.tokens(browser, email);
    await AuthenticatorApp.enrol(world, browser, CHOSEN);
    await world.browser().post('/v1/password/reset-request', { email });
    await world.answered();
    expect((await rows())['oidc_state']).toBeGreaterThan(before['oidc_state'] as number);

    await admin().deleteUser({ params: { user_id } });
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    expect((await browser.get('/v1/account')).status).toBe(401);
    // What a client pushed before anybody signed in is the client's, for a minute.
    await world.sql`delete from oidc_state where model = 'PushedAuthorizationRequest'`;
    expect(await rows()).toEqual({ ...before, roles: (before['roles'] as number) + 1, role_scopes: (before['role_scopes'] as number) + 1 });
    expect((await world.host.events('platform:auth:user:deleted')).map(({ payload }) => payload)).toEqual([
      { user_id, env_id: SYSTEM.envId },
    ]);
    expect((await world.host.events('platform:auth:session:revoked')).some(({ payload }) => payload['user_id'] === user_id)).toBe(true);
    await world.audited('auth.user.deleted', user_id);
    await expect(admin().deleteUser({ params: { user_id } })).rejects.toMatchObject({ status: 404, code: 'user_not_found' });
    await world.sql`delete from roles where name = 'test:removal'`;
  });

  test('is not brought about by oneself, nor from another environment, and is one with its event', async () => {
    const user_id = await world.person('stays@example.org');
    const params = { user_id };
    await expect(world.host.by({ ...as.user('auth:users:admin'), id: user_id }).deleteUser({ params })).rejects.toMatchObject({
      code: 'own_account',
    });
    await expect(
      world.host.by(as.userIn('018f0000-0000-7000-8000-00000000e009', 'auth:users:admin')).deleteUser({ params }),
    ).rejects.toMatchObject({ code: 'user_not_found' });
    await world.sql`alter table outbox add constraint full_up check (event_type <> 'platform:auth:user:deleted') not valid`;
    await expect(admin().deleteUser({ params })).rejects.toBeDefined();
    await world.sql`alter table outbox drop constraint full_up`;
    expect((await admin().getUser({ params })).status).toBe('active');
    await admin().deleteUser({ params });
  });

  test(`H-33 ${CYCLES} accounts that come and go leave no row behind`, async () => {
    const before = await rows();
    const places = Array.from({ length: AT_ONCE }, (_, place) => `cycle-${place}@example.org`);
    const run = async (operations: object[]) =>
      ((await directory.bulk(operations)).json['Operations'] as { status: string; location: string }[]).map(({ status, location }) => ({
        status,
        id: location?.split('/').at(-1) as string,
      }));
    for (let cycle = 0; cycle < CYCLES; cycle += AT_ONCE) {
      const made = await run(
        places.map(userName => ({
          method: 'POST',
          path: '/Users',
          bulkId: userName,
          data: { schemas: [USER], userName, emails: [{ value: userName }], title: 'Guest' },
        })),
      );
      expect(new Set(made.map(({ status }) => status))).toEqual(new Set(['201']));
      for (const { id } of made)
        await world.registry.putGroupMember({ params: { group: 'test:removal', user_id: id }, targetEnvId: SYSTEM.envId });
      const gone = await run(made.map(({ id }) => ({ method: 'DELETE', path: `/Users/${id}` })));
      expect(new Set(gone.map(({ status }) => status))).toEqual(new Set(['204']));
    }
    expect(await rows()).toEqual(before);
    expect(
      await world.kv('KEYS', 'authz:person:*').then(keys => Promise.all((keys as string[]).map(key => world.kv('TTL', key)))),
    ).not.toContain(-1);
  }, 60_000);
});
