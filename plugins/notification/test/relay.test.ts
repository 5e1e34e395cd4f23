import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { notification } from '../contract/index.ts';
import { World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

/** Messages that were handed over and of which nobody was told, as after a lost word. */
async function unheard(env_id: string, count: number): Promise<string[]> {
  await world.sql`create
    or replace function keep_back() returns trigger language plpgsql as 'begin new.delivered_at := now(); return new; end'`;
  await world.sql`create trigger keep_back before insert on messages for each row execute function keep_back()`;
  const ids = [];
  try {
    for (let n = 0; n < count; n++)
      ids.push(await world.send({ env_id, idempotency_key: `${env_id} ${n}` }, world.producer(`p${n % 5}-post`)));
  } finally {
    await world.sql`drop trigger keep_back on messages`;
  }
  for (const [n, id] of ids.entries())
    await world.sql`update messages set created_at = ${new Date(Date.now() - (count - n) * 1_000).toISOString()}
      where notification_id = ${id}`;
  await world.sql`update messages set delivered_at = null where env_id = ${env_id}`;
  return ids;
}
const waiting = async (env_id: string) =>
  (await world.sql<object[]>`select 1 from messages where env_id = ${env_id} and delivered_at is null`).length;

describe('the relay', () => {
  test('NTF-009 wakes on the word of a commit: the clock stands still', async () => {
    const id = await world.send({ env_id: world.env() });
    await world.shown(id);
  });

  test('NTF-010 NTF-011 NTF-012 NTF-014 looks every five seconds beside, takes at most fifty rows at once, oldest first, and passes over what is delivered', async () => {
    expect(notification.base.jobs?.relay).toMatchObject({ every: '5s', runs: 'process' });
    const env_id = world.env();
    const ids = await unheard(env_id, 120);
    await world.host.clock.advance('4s');
    // The pace of the look began before this test: at most one more second brings it.
    await world.host.clock.advance('1s');
    await eventually(() => waiting(env_id)).toBe(0);
    const rows = await world.sql<{ tx: string; ids: string[] }[]>`
      select xmin::text as tx, array_agg(notification_id::text order by created_at) as ids from messages where env_id = ${env_id}
        group by 1 order by min(created_at)`;
    expect(rows.map(row => row.ids.length)).toEqual([50, 50, 20]);
    expect(rows.flatMap(row => row.ids)).toEqual(ids);
    // A later pass: it takes what came after them, and would have taken them first.
    await world.shown(await world.send({ env_id: world.env() }));
    const again = await world.sql<{ tx: string }[]>`select distinct xmin::text as tx from messages where env_id = ${env_id}`;
    expect(again.map(({ tx }) => tx).sort()).toEqual(rows.map(({ tx }) => tx).sort());
  });

  test('G-POST-03 a row that cannot be delivered holds up nobody, is tried on, and after ten passes somebody is told', async () => {
    const env_id = world.env();
    const [bad, good] = [await world.send({ env_id }), await world.send({ env_id })];
    for (const id of [bad, good]) await world.shown(id);
    await world.sql`update messages set delivered_at = null, shown_at = null, content = jsonb_set(content, '{kid}', '"00000000"')
      where notification_id = ${bad}`;
    await world.sql`delete from deliveries where notification_id = ${bad}`;
    const passes = async () =>
      (
        await world.sql<
          { failed_passes: number; last_error: string }[]
        >`select failed_passes, last_error from messages where notification_id = ${bad}`
      )[0];
    for (let pass = 1; pass <= 11; pass++) {
      await world.host.clock.advance('5s');
      await eventually(async () => (await passes())?.failed_passes).toBeGreaterThanOrEqual(pass);
    }
    expect((await passes())?.last_error).toBe('sealed under another key');
    await world.shown(await world.send({ env_id }));
  });

  test('NTF-013 what waited while nobody ran is delivered at the start, and two processes deliver it once', async () => {
    const env_id = world.env();
    const ids = await unheard(env_id, 60);
    const second = await World.start({}, world.stores);
    try {
      await eventually(() => waiting(env_id)).toBe(0);
      for (let n = 0; n < 60; n++) ids.push(await world.send({ env_id, idempotency_key: `${env_id} more ${n}` }, world.producer('q-post')));
      await eventually(() => waiting(env_id)).toBe(0);
      const told = await world.sql<{ n: number; ids: number }[]>`
        select count(*)::int as n, count(distinct payload->>'notification_id')::int as ids from outbox where env_id = ${env_id}
          and event_type = 'platform:notification:received'`;
      expect([...told]).toEqual([{ n: 120, ids: 120 }]);
      expect(await world.sql`select 1 from deliveries where env_id = ${env_id} and channel = 'view'`).toHaveLength(120);
    } finally {
      await second.host[Symbol.asyncDispose]();
    }
  });
});
