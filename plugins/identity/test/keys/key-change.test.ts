import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { as, SealedBox } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Recoverer } from '../fixtures/recoverer.ts';
import { CLIENT, SECRET, Upstream } from '../fixtures/upstream.ts';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start({ environment: { PLATFORM_AUTH_ACCOUNT_RECOVERY: 'wait' } });
});
afterAll(() => world[Symbol.asyncDispose]());

const HOST = 'auth.prod.sealed.localhost';
const sealed = async () =>
  (
    await world.sql<{ kid: string }[]>`
    select wrapped ->> 'kid' as kid from signing_keys union select sealed ->> 'kid' from authenticators
    union select client_secret ->> 'kid' from upstream_providers union select cancel_sealed ->> 'kid' from account_recoveries
      where cancel_sealed is not null
    union select payload -> 'sealed' ->> 'kid' from work_tasks where name = 'mail'`
  ).map(({ kid }) => kid);

test('another key opens what the one before has sealed, seals it anew within minutes, and then stands alone', async () => {
  await using upstream = await Upstream.open([`https://${HOST}:8443/sso`]);
  const envId = await world.environment(HOST);
  const admin = () => world.host.by(as.userIn(envId, 'auth:users:admin'));
  await admin().putUpstream({ body: { issuer: upstream.issuer, client_id: CLIENT, client_secret: SECRET, label: 'Guild' } });
  const person = await Recoverer.open(world);
  await person.begin();
  const [before] = await sealed();
  // More than two batches of them, and one that stands under somebody else's seal.
  const box = new SealedBox([Buffer.from(readFileSync(join(world.dataDir, 'test.kek'), 'utf8'), 'base64')]);
  const users = await world.sql<{ user_id: string }[]>`
    insert into users (user_id, env_id, email, email_ci) select gen_random_uuid(), ${envId}, 'many-' || n || '@example.org',
      'many-' || n || '@example.org' from generate_series(1, 251) n returning user_id`;
  const many = users.map(({ user_id }, index) => ({
    user_id,
    sealed: box.seal(index === 0 ? 'of somebody else' : `auth:authenticator:${user_id}`, 'a secret'),
  }));
  await world.sql`insert into authenticators (user_id, sealed) select user_id, sealed
    from jsonb_to_recordset(${world.sql.json(many)}) as row(user_id uuid, sealed jsonb)`;

  const path = join(world.dataDir, 'next.kek');
  writeFileSync(path, randomBytes(32).toString('base64'), { mode: 0o600 });
  const next = { PLATFORM_AUTH_KEY_ENCRYPTION_REF: `file://${path}` };
  await expect(world.another(next)).rejects.toThrow('auth failed to set up');
  {
    await using both = await world.another({
      ...next,
      PLATFORM_AUTH_PREVIOUS_KEY_ENCRYPTION_REFS: `file://${join(world.dataDir, 'test.kek')}`,
    });
    await both.clock.advance('5m');
    // What opens for nobody holds up nothing.
    expect(await world.sql`select user_id from authenticators where sealed ->> 'kid' = ${before as string}`).toEqual([
      { user_id: many[0]?.user_id },
    ]);
    await world.sql`delete from authenticators where user_id = ${many[0]?.user_id as string}`;
    const kids = await sealed();
    expect([kids.length, kids.includes(before as string)]).toEqual([1, false]);
    // Mail that waits goes out with the key of now too.
    expect((await world.sql<object[]>`select 1 from work_tasks where name = 'mail' and state = 'waiting'`).length).toBeGreaterThan(0);
  }
  await using alone = await world.another(next);
  const at = (path_: string, body: object) =>
    world.reach(path_, {
      method: 'POST',
      at: alone,
      headers: { 'content-type': 'application/json', origin: world.issuer },
      body: JSON.stringify(body),
    });
  const signedIn = await at('/v1/sign-in', { email: person.email, password: 'a sentence nobody has guessed', oauth: {} });
  expect(signedIn.json['status']).toBe('mfa_required');
  const cookie = [signedIn.headers['set-cookie'] ?? []]
    .flat()
    .map(line => line.split(';')[0])
    .join('; ');
  const verified = await world.reach('/v1/mfa/verify', {
    method: 'POST',
    at: alone,
    headers: { 'content-type': 'application/json', origin: world.issuer, cookie },
    body: JSON.stringify({
      challenge_id: (signedIn.json['mfa'] as { challenge_id: string }).challenge_id,
      method: 'totp',
      code: await person.app.next(),
    }),
  });
  expect([verified.status, verified.json['status']]).toEqual([200, 'ok']);
  await alone.by(as.userIn(envId, 'auth:users:admin')).getUpstream({});
});
