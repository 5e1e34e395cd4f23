import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { ProtocolState } from '../../src/protocol/protocol-state.ts';
import { ProtocolTurn } from '../../src/protocol/protocol-turn.ts';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const envId = newId();
const state = (model: string) =>
  new ProtocolState({
    ctx: { db: { sql: world.sql } } as never,
    box: { seal: (_purpose: string, text: string) => ({ text }) } as never,
    clients: undefined as never,
    envId,
    model,
    grantEnded: async () => undefined,
  });
const turn = async (work: () => Promise<unknown>) => {
  const made = new ProtocolTurn(world.sql, envId);
  await made.run(work);
  await made.write();
};
const kept = async () =>
  (await world.sql<{ uid: string }[]>`select payload ->> 'uid' as uid from oidc_state where env_id = ${envId}`).map(({ uid }) => uid);

test('H-13 of two requests that use up the same row one writes what it got for it, and of the other nothing is there', async () => {
  await turn(() => state('AuthorizationCode').upsert('code', { jti: 'code', accountId: newId() }, 60));
  const redeem = (uid: string) =>
    turn(async () => {
      expect(await state('AuthorizationCode').find('code')).toBeDefined();
      await state('AuthorizationCode').consume('code');
      await state('RefreshToken').upsert(uid, { jti: uid, uid }, 60);
    });
  const outcomes = await Promise.allSettled([redeem('one'), redeem('two')]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(outcomes.find(outcome => outcome.status === 'rejected')?.reason).toMatchObject({ error: 'invalid_grant' });
  const tokens = await world.sql<{ uid: string }[]>`select uid from oidc_state where env_id = ${envId} and model = 'RefreshToken'`;
  expect(tokens.map(({ uid }) => uid)).toEqual([outcomes[0]?.status === 'fulfilled' ? 'one' : 'two']);
  await world.sql`delete from oidc_state where env_id = ${envId}`;
});

test('what somebody ends while a request that had read it is under way stays ended; what a request makes itself is there', async () => {
  await turn(() => state('Session').upsert('id', { jti: 'id', uid: 'first' }, 60));
  expect(await kept()).toEqual(['first']);
  await turn(async () => {
    const session = await state('Session').find('id');
    await world.sql`delete from oidc_state where env_id = ${envId}`;
    await state('Session').upsert('id', { ...session, uid: 'again' }, 60);
    await state('Interaction').upsert('other', { jti: 'other', uid: 'made' }, 60);
  });
  expect(await kept()).toEqual(['made']);
  await turn(async () => {
    const interaction = await state('Interaction').find('other');
    await state('Interaction').upsert('other', { ...interaction, uid: 'changed' }, 60);
  });
  expect(await kept()).toEqual(['changed']);
});
