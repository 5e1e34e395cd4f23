import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { claimsOf, type Tokens, World } from '../fixtures/world.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const OTHERS = 40_000;
const EMAIL = 'one-of-many@example.org';

let world: World;
let tokens: Tokens;
beforeAll(async () => {
  world = await World.start();
  await world.person(EMAIL);
  // Nothing has counted them yet, as after a busy hour.
  await world.sql`
    with new as (insert into users (user_id, env_id, email, email_ci) select id, ${SYSTEM.envId}, id, id
      from (select gen_random_uuid() as id from generate_series(1, 1000)) new returning user_id)
    insert into authenticators (user_id, sealed, confirmed_at) select user_id, '{}', now() from new`;
  await world.sql`
    insert into oidc_state (env_id, model, id_hash, payload, uid, account_id, grant_id, expires_at)
    select ${SYSTEM.envId}, model, sha256(convert_to(model || n, 'UTF8')), case
      when model like '%Token' then '{"sessionUid": "another"}'::jsonb else '{"loginTs": 1}' end,
      case when model = 'Session' then '0' || n end, u.user_id, 'another', now() + interval '1 day'
    from (select user_id, row_number() over () as u from users) u, generate_series(1, ${OTHERS}) n,
      lateral (select (array['Session', 'Grant', 'Interaction', 'RefreshToken'])[1 + n % 4] as model) m
    where u.u = 1 + n % 1000`;
});
afterAll(() => world[Symbol.asyncDispose]());
const browser = () => world.browser();

/** Rows read so far; a session of the database has said so for certain when it has ended, or is made to. */
async function rowsRead(): Promise<number> {
  const ended = await world.sql<{ pid: number }[]>`
    with mine as materialized (select pid from pg_stat_activity where usename = current_user and pid <> pg_backend_pid())
    select pid, pg_stat_force_next_flush()::text from mine where pg_terminate_backend(pid)`;
  const pids = ended.map(({ pid }) => pid);
  while ((await world.sql<object[]>`select 1 from pg_stat_activity where pid = any(${pids}::int[])`).length > 0)
    await new Promise(resolve => setImmediate(resolve));
  const [row] = await world.sql<[{ rows: number }]>`select sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables
    where relname in ('oidc_state', 'users', 'authenticators', 'passwords', 'session_devices', 'account_devices', 'grant_selections')`;
  return row.rows;
}

const operator = () => world.host.by(as.user('auth:users:read', 'auth:users:admin'));
const mine = browser;
test.each<[string, () => Promise<unknown>]>([
  ['a sign-in and its tokens', async () => (tokens = await world.tokens(mine(), EMAIL))],
  [
    'their renewal',
    async () => expect((tokens = (await world.refresh(tokens.refresh_token)).json as unknown as Tokens).refresh_token).toBeDefined(),
  ],
  ['a page of everybody’s sessions', async () => expect((await operator().listSessions({ query: { limit: 10 } })).items).toHaveLength(10)],
  ['the end of a session', () => operator().revokeSession({ params: { session_id: String(claimsOf(tokens.access_token)['sid']) } })],
  [
    'a sign-in and a sign-out',
    async () => {
      const signing = browser();
      await world.tokens(signing, EMAIL);
      expect((await signing.get('/v1/account/sessions')).status).toBe(200);
      expect((await signing.post('/v1/sign-out', {})).status).toBe(204);
    },
  ],
])('of everything that an environment keeps, %s reads what is its own', async (_, act) => {
  const before = await rowsRead();
  await act();
  const read = (await rowsRead()) - before;
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(150);
});
