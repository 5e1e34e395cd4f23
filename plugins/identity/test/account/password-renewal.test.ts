import { hash } from '@node-rs/argon2';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Passwords } from '../../src/people/passwords.ts';
import type { Answer } from '../fixtures/world.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const CHEAP = { algorithm: 2 /* argon2id */, memoryCost: 8_192, timeCost: 1, parallelism: 1 };
const TODAY = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

/** Somebody whose password was hashed at another cost. */
async function hashedBefore(cost: Parameters<typeof hash>[1] = CHEAP): Promise<{ email: string; userId: string; stored: string }> {
  const email = `hashed-before-${(count += 1)}@example.org`;
  const [userId, stored] = [await world.person(email), await hash(CHOSEN, cost)];
  await world.sql`update passwords set hash = ${stored} where user_id = ${userId}`;
  return { email, userId, stored };
}
const hashOf = async (userId: string) =>
  (await world.sql<[{ hash: string }]>`select hash from passwords where user_id = ${userId}`)[0].hash;
const waiting = async () => {
  while (
    (await world.sql<object[]>`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`).length === 0
  )
    await new Promise(resolve => setImmediate(resolve));
};

/** Signs in at a process of its own, which has done all it began when this is over. */
async function signIn(
  email: string,
  password = CHOSEN,
  meanwhile: (answer: Promise<Answer>) => Promise<unknown> = async answer => answer,
): Promise<Answer> {
  await using another = await world.another();
  const answer = world.reach('/v1/sign-in', {
    method: 'POST',
    at: another,
    headers: { origin: world.issuer },
    body: JSON.stringify({ email, password, oauth: {} }),
  });
  await meanwhile(answer);
  return answer;
}

describe('a password hashed at a lower cost', () => {
  test('is hashed anew when its owner signs in, and is the same password', async () => {
    const { email, userId, stored } = await hashedBefore();
    expect((await signIn(email, 'a wrong password')).status).toBe(401);
    expect(await hashOf(userId)).toBe(stored);
    expect((await signIn(email)).json['status']).toBe('ok');
    const renewed = await hashOf(userId);
    expect(renewed).toMatch(TODAY);
    expect(await new Passwords().verify(renewed, CHOSEN)).toBe(true);
    expect((await signIn(email)).json['status']).toBe('ok');
    expect(await hashOf(userId)).toBe(renewed);
  });

  test('that is changed between the proof and the new hash stays changed; the answer waits for neither', async () => {
    const { email, userId } = await hashedBefore();
    const changed = await new Passwords().hash('another sentence altogether');
    const answer = await signIn(email, CHOSEN, async answered => {
      await world.tx(async sql => {
        await sql`select 1 from passwords where user_id = ${userId} for update`;
        expect((await answered).status).toBe(200);
        // The new hash is made, and meets the change that is under way.
        await waiting();
        await sql`update passwords set hash = ${changed}, changed_at = now() where user_id = ${userId}`;
      });
    });
    expect(answer.json['status']).toBe('ok');
    expect(await hashOf(userId)).toBe(changed);
  });

  test('lets everybody in who proved it before it was hashed anew', async () => {
    const { email, userId } = await hashedBefore();
    const renewed = await new Passwords().hash(CHOSEN);
    const answer = await world.tx(async sql => {
      await sql`select 1 from users where user_id = ${userId} for update`;
      const answered = world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} });
      await waiting();
      await sql`update passwords set hash = ${renewed} where user_id = ${userId}`;
      return { answered };
    });
    expect((await answer.answered).json['status']).toBe('ok');
    expect(await hashOf(userId)).toBe(renewed);
  });

  test('does until the next time where the new hash cannot be written', async () => {
    const { email, userId, stored } = await hashedBefore();
    await world.statement(`alter table passwords add constraint no_renewal check (user_id <> '${userId}' or hash = '${stored}')`);
    expect((await signIn(email)).json['status']).toBe('ok');
    expect(await hashOf(userId)).toBe(stored);
    await world.statement('alter table passwords drop constraint no_renewal');
    await signIn(email);
    expect(await hashOf(userId)).toMatch(TODAY);
  });
});

test.each([
  ['more memory', { ...CHEAP, memoryCost: 32_768, timeCost: 1 }],
  ['more passes', { ...CHEAP, timeCost: 3 }],
])('a password hashed with %s than today keeps its hash', async (_, cost) => {
  const { email, userId, stored } = await hashedBefore(cost);
  expect((await signIn(email)).json['status']).toBe('ok');
  expect(await hashOf(userId)).toBe(stored);
});

test('while everybody hashes for somebody who waits, no hash is made for nobody', async () => {
  const passwords = new Passwords();
  const [people, aside] = [Array.from({ length: 4 }, () => passwords.hash(CHOSEN)), passwords.hashAside(CHOSEN)];
  expect(await aside).toBeUndefined();
  await Promise.all(people);
  expect(await passwords.hashAside(CHOSEN)).toMatch(TODAY);
});
