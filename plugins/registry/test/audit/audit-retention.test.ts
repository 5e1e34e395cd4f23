import { afterAll, beforeAll, expect, test } from 'vitest';
import { Trail } from '../fixtures/trail.ts';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const left = async ({ envId }: Trail) =>
  (await world.sql<{ position: number }[]>`select position from audit where env_id = ${envId} order by position`).map(
    ({ position }) => position,
  );

test('G-SYS-13 REG-004 it cuts whole days behind a signed anchor, and what remains verifies from there', async () => {
  const [trail, quiet] = [new Trail(world), new Trail(world)];
  await trail.aged(402, 3);
  await quiet.aged(402, 1);
  await trail.aged(401, 1);
  await trail.aged(399, 2);
  await trail.record(1);
  // 1 Every day is signed at its last row, and the days past their time go.
  await trail.signed();
  const anchors = await world.sql<
    { position: number; previous: number }[]
  >`select position, previous from audit_anchors where env_id = ${trail.envId} order by position`;
  expect([...anchors]).toEqual([
    { position: 3, previous: 0 },
    { position: 4, previous: 3 },
    { position: 6, previous: 4 },
    { position: 7, previous: 6 },
  ]);
  await world.host.clock.leap('1h');
  expect(await left(trail)).toEqual([5, 6, 7]);
  expect(await left(quiet)).toEqual([]);
  expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 3, anchors: 2, position: 7, cut: { position: 4 } });
  expect(await quiet.verify()).toMatchObject({ status: 'intact', rows: 0, position: 1, cut: { position: 1 } });
  // 2 A chain that was cut to nothing goes on behind its cut.
  await quiet.record(1);
  await quiet.signed();
  expect(await quiet.verify()).toMatchObject({ status: 'intact', rows: 1, anchors: 1, position: 2 });
  // 3 An anchor taken from between is missed.
  await trail.tamper(sql => sql`delete from audit_anchors where env_id = ${trail.envId} and position = 6`);
  expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'anchor_missing', position: 7 } });
  // 4 A cut that nobody signed hides nothing.
  await trail.tamper(async sql => {
    await sql`delete from audit where env_id = ${trail.envId} and position = 5`;
    await sql`update audit_cuts set position = 5 where env_id = ${trail.envId}`;
  });
  expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'signature_invalid', position: 5 } });
});

test('REG-004 behind an anchor of another hand nothing is thrown away', async () => {
  const trail = new Trail(world);
  // The clock of the trail never goes back: these rows stand at the newest moment and become old with the clock of the anchor alone.
  await trail.record(2);
  await trail.signed();
  await trail.tamper(sql => sql`update audit_anchors set day = day - 401, signature = '' where env_id = ${trail.envId}`);
  await world.host.clock.leap('1h');
  expect(await left(trail)).toEqual([1, 2]);
});
