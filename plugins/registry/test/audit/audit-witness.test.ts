import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AuditChain } from '../../src/audit/proof/audit-chain.ts';
import { draft, Trail } from '../fixtures/trail.ts';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

// First: the clock of the trail never goes back, and the oldest rows are here.
describe('what is no fault', () => {
  test('REG-004 G-SYS-13 what retention cuts is not missed, and the witness forgets it with the trail', async () => {
    const trail = new Trail(world);
    await trail.aged(402, 3);
    await trail.signed();
    await trail.aged(399, 1);
    await trail.witnessed();
    await world.host.clock.leap('61m');
    expect(await trail.verify()).toMatchObject({ status: 'intact', position: 4, cut: { position: 3 }, witnessed: { position: 4 } });
    await trail.tamper(sql => sql`delete from audit_cuts where env_id = ${trail.envId}`);
    expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'rows_missing', position: 1 } });
  });

  test('REG-004 what was not signed by the registry is not taken note of', async () => {
    const trail = new Trail(world);
    await trail.record(2);
    const [{ key_id: keyId }] = await world.sql<[{ key_id: string }]>`select key_id from audit_keys`;
    await world.sql`
      insert into audit_anchors (env_id, day, position, previous, audit_id, hash, signed_at, key_id, signature)
      select env_id, ts::date, position, 0, audit_id, hash, now(), ${keyId}, '' from audit_heads where env_id = ${trail.envId}`;
    await trail.witnessed();
    const { witnessed, fault } = await trail.verify();
    expect([witnessed, fault?.kind]).toEqual([undefined, 'signature_invalid']);
  });
});

describe('an earlier state, whole and with its signatures', () => {
  test('REG-004 put back, it is found out, before anything is recorded anew and after', async () => {
    const trail = new Trail(world);
    await trail.record(3);
    await trail.witnessed();
    const putBack = await trail.backup();
    await trail.record(2);
    await trail.witnessed();
    expect(await trail.verify()).toMatchObject({ status: 'intact', position: 5, witnessed: { position: 5 } });
    await putBack();
    expect(await trail.verify()).toMatchObject({ status: 'broken', position: 3, fault: { kind: 'rolled_back', position: 4 } });
    // The chain goes on from the earlier state, is signed there and grows past what was seen: no signature says otherwise.
    await trail.record(4);
    await trail.witnessed();
    expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'rolled_back', position: 5 } });
  });

  test('REG-004 an environment that is gone without a trace is still asked for, and named', async () => {
    const trail = new Trail(world);
    await trail.record(2);
    await trail.witnessed();
    await trail.vanish();
    const { items } = await world.host.by(world.admin()).listAuditChains({ query: {} });
    expect(items).toContainEqual({ env_id: trail.envId, position: 2 });
    expect(await trail.verify()).toMatchObject({ status: 'broken', rows: 0, fault: { kind: 'rolled_back', position: 1 } });
  });

  test('REG-004 a state of an earlier day is found out when another was recorded up to the same row', async () => {
    const trail = new Trail(world);
    await trail.aged(2, 2);
    await trail.witnessed();
    const putBack = await trail.backup();
    await trail.record(1);
    await trail.witnessed();
    await putBack();
    // Somebody appends a row of the same number, by the very code that appends.
    await world.tx(sql =>
      new AuditChain({ clock: world.host.clock }).append({ sql, emitAll: async () => undefined }, [draft(trail.envId, 'forged')]),
    );
    await trail.witnessed();
    expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'rolled_back', position: 3 } });
  });
});
