import { createPublicKey } from 'node:crypto';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AuditChain } from '../../src/audit/proof/audit-chain.ts';
import { draft, Trail } from '../fixtures/trail.ts';
import { refusal, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

describe('verification', () => {
  test('REG-004 an untouched trail is intact: every row, every signed anchor, up to the head', async () => {
    const trail = new Trail(world);
    expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 0, position: 0, head: 0 });
    await trail.record(3, {
      resource: { type: 'run', id: 'a' },
      occurred_at: '2026-01-02T03:04:05.678Z',
      details: { text: 'é "quoted"\n', number: 1e21, nested: [{}, null] },
    });
    await trail.signed();
    await trail.record(2);
    await trail.signed();
    await trail.record(1);
    expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 6, anchors: 1, position: 6, head: 6 });
  });

  test('REG-004 what the registry itself records is in the same chain', async () => {
    const { owner, org } = await world.org();
    const env = await world.env(owner, org.org_id);
    const [row] = await world.sql<
      { position: number }[]
    >`select position from audit where env_id = ${env.env_id} and action = 'env.created'`;
    expect(row).toEqual({ position: 1 });
    const verdict = await world.host.by(world.admin()).verifyAudit({ query: { env_id: env.env_id } });
    expect(verdict).toMatchObject({ status: 'intact', position: 1 });
  });

  test('REG-004 a workload of a vertical, which has no environment of its own, reads and proves no trail, and the system’s least of all', async () => {
    const vertical = { ...as.machine('m2m-shop', 'audit:read'), vertical: 'acme' };
    const asked = world.host.by(vertical);
    expect(await refusal(asked.verifyAudit({ query: {} }))).toEqual([400, 'audit_env_required']);
    expect(await refusal(asked.listAudit({ query: {} }))).toEqual([400, 'audit_env_required']);
  });

  const cases: readonly [string, (sql: World['sql'], ids: readonly string[], envId: string) => Promise<unknown>, object][] = [
    [
      'a changed action',
      (sql, ids) => sql`update audit set action = 'forged' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a changed time',
      (sql, ids) => sql`update audit set ts = ts - interval '1 millisecond' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a changed blank in the details',
      (sql, ids) => sql`update audit set details = '{"index": 3}' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a changed actor',
      (sql, ids) => sql`update audit set actor = '{"kind":"user","id":"eve"}' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a changed outcome',
      (sql, ids) => sql`update audit set outcome = 'denied' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a resource that was not there',
      (sql, ids) => sql`update audit set resource = '{}' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'a service that was another',
      (sql, ids) => sql`update audit set service = 'sys' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'another correlation id',
      (sql, ids) => sql`update audit set correlation_id = 'x' where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'another moment of the event',
      (sql, ids) => sql`update audit set occurred_at = now() where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    [
      'another delivery key',
      (sql, ids) => sql`update audit set delivery_key = ${ids[0]} where audit_id = ${ids[3]}`,
      { kind: 'row_changed', position: 4 },
    ],
    ['a row taken from the middle', (sql, ids) => sql`delete from audit where audit_id = ${ids[3]}`, { kind: 'rows_missing', position: 4 }],
    ['the first row taken', (sql, ids) => sql`delete from audit where audit_id = ${ids[0]}`, { kind: 'rows_missing', position: 1 }],
    [
      'a row moved to another environment',
      (sql, ids) => sql`update audit set env_id = ${SYSTEM.envId} where audit_id = ${ids[3]}`,
      { kind: 'rows_missing', position: 4 },
    ],
    [
      'the tail taken, behind the last signature',
      (sql, ids) => sql`delete from audit where audit_id = any(${ids.slice(6)}::uuid[])`,
      { kind: 'rows_missing', position: 7 },
    ],
    [
      'the tail taken together with the head’s word',
      async (sql, ids, envId) => {
        await sql`delete from audit where audit_id = any(${ids.slice(4)}::uuid[])`;
        await sql`update audit_heads set position = 4, hash = (select hash from audit where audit_id = ${ids[3]}) where env_id = ${envId}`;
      },
      { kind: 'rows_missing', position: 5 },
    ],
    [
      'two rows that changed places',
      async (sql, ids) => {
        await sql`update audit set action = case audit_id when ${ids[2]}::uuid then 'step.3' else 'step.2' end
          where audit_id = any(${[ids[2], ids[3]]}::uuid[])`;
      },
      { kind: 'row_changed', position: 3 },
    ],
    [
      'a row put in between',
      (sql, ids) => sql`insert into audit
        select (left(audit_id::text, 35) || translate(right(audit_id::text, 1), '0123456789abcdef', '123456789abcdeff'))::uuid, position,
        ts, service, env_id, 'forged', actor, resource, outcome,
        details, correlation_id, occurred_at, delivery_key, hash from audit where audit_id = ${ids[3]} and right(audit_id::text, 1) <> 'f'
          or audit_id = ${ids[4]} and not exists (select 1 from audit where audit_id = ${ids[3]} and right(audit_id::text, 1) <> 'f')`,
      { kind: 'row_inserted' },
    ],
    [
      'an anchor of another hand',
      (sql, _, envId) =>
        sql`update audit_anchors set signature = set_byte(signature, 0, 255 - get_byte(signature, 0)) where env_id = ${envId}`,
      { kind: 'signature_invalid', position: 6 },
    ],
    [
      'a head that was moved back',
      (sql, _, envId) => sql`update audit_heads set position = 7 where env_id = ${envId}`,
      { kind: 'head_changed' },
    ],
    ['a head taken away', (sql, _, envId) => sql`delete from audit_heads where env_id = ${envId}`, { kind: 'head_changed' }],
  ];
  for (const [name, change, fault] of cases) {
    test(`REG-004 it names ${name}`, async () => {
      const trail = new Trail(world);
      const ids = await trail.record(6);
      await trail.signed();
      ids.push(...(await trail.record(3)));
      await trail.tamper(sql => change(sql, ids, trail.envId));
      expect(await trail.verify()).toMatchObject({ status: 'broken', next_cursor: null, fault });
    });
  }

  test('REG-004 a chain written anew with right hashes does not fit the signed anchor', async () => {
    const [trail, other] = [new Trail(world), new Trail(world)];
    const ids = await trail.record(4);
    await trail.signed();
    // Everything an attacker with every right on the database can do: the rows and the head are recomputed, the anchor cannot be.
    const chain = new AuditChain({ clock: { now: () => new Date() } });
    await trail.tamper(async sql => {
      await sql`delete from audit where env_id = ${trail.envId}`;
      await sql`delete from audit_heads where env_id = ${trail.envId}`;
      await chain.append(
        { sql, emitAll: async () => undefined },
        Array.from(ids, () => draft(trail.envId, 'forged')),
      );
    });
    expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'chain_rewritten', position: 1 } });
    // Nor does the anchor of another chain.
    await other.record(4);
    await other.signed();
    await trail.tamper(async sql => {
      const [mine] = await sql<
        { audit_id: string; hash: Uint8Array }[]
      >`select audit_id, hash from audit_heads where env_id = ${trail.envId}`;
      await sql`update audit_anchors set audit_id = ${mine?.audit_id}, hash = ${mine?.hash}, signature = (select signature
        from audit_anchors where env_id = ${other.envId}) where env_id = ${trail.envId}`;
    });
    expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'signature_invalid', position: 4 } });
  });

  test('REG-102 whoever is no administrator verifies the own environment; services and the nameless are told what to name', async () => {
    const trail = new Trail(world);
    await trail.record(1);
    const mine = as.userIn(trail.envId, 'audit:read');
    expect(await world.host.by(mine).verifyAudit({ query: { env_id: SYSTEM.envId } })).toMatchObject({ env_id: trail.envId, position: 1 });
    expect(await refusal(world.host.by(world.admin()).verifyAudit({ query: {} }))).toEqual([400, 'audit_env_required']);
    expect(await refusal(world.host.by(world.admin()).verifyAudit({ query: { env_id: trail.envId, cursor: '1.2.3' } }))).toEqual([
      400,
      'invalid_cursor',
    ]);
    expect(await refusal(world.host.by(mine).listAuditChains({ query: {} }))).toEqual([403, 'platform_admin_required']);
    const { items } = await world.host.by(world.admin()).listAuditChains({ query: {} });
    expect(items).toContainEqual({ env_id: trail.envId, position: 1 });
    const { algorithm, public_key: pem } = await world.host.by(mine).auditKey();
    expect([algorithm, createPublicKey(pem).asymmetricKeyType]).toEqual(['ML-DSA-65', 'ml-dsa-65']);
  });
});

describe('the database', () => {
  test('REG-004 G-SYS-13 it refuses to change, delete or empty any part of the trail', async () => {
    const trail = new Trail(world);
    await trail.record(2);
    await trail.signed();
    const { sql } = world;
    const attempts = [
      () => sql`update audit set action = 'x' where env_id = ${trail.envId}`,
      () => sql`delete from audit where env_id = ${trail.envId}`,
      () => sql`truncate audit`,
      () => sql`update audit_heads set position = 1 where env_id = ${trail.envId}`,
      () => sql`update audit_heads set env_id = ${SYSTEM.envId}, position = 9 where env_id = ${trail.envId}`,
      () => sql`delete from audit_heads where env_id = ${trail.envId}`,
      () => sql`truncate audit_heads`,
      () => sql`update audit_anchors set signature = '' where env_id = ${trail.envId}`,
      () => sql`delete from audit_anchors where env_id = ${trail.envId}`,
      () => sql`truncate audit_anchors`,
      () => sql`delete from audit_cuts`,
      () => sql`truncate audit_cuts`,
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toThrow('append-only');
    expect(await trail.verify()).toMatchObject({ status: 'intact', position: 2 });
  });
});

describe('commit order', () => {
  test('H-20 REG-152 a row that commits late is behind what committed before it and ahead of what follows, for pages and for polls', async () => {
    const trail = new Trail(world);
    const chain = new AuditChain({ clock: world.host.clock });
    const reader = world.host.by(world.admin());
    const seen = async (query: object = {}) =>
      (await reader.listAudit({ query: { env_id: trail.envId, ...query } })).items.map(({ action }) => action);
    const [first] = await trail.record(1, { action: 'before' });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: appended, resolve: slowHasIt } = Promise.withResolvers<void>();
    // 1 A slow transaction has its row, uncommitted.
    const slow = world.tx(async sql => {
      await chain.append({ sql, emitAll: async () => undefined }, [draft(trail.envId, 'slow')]);
      slowHasIt();
      await released;
    });
    await appended;
    // 2 A quick one starts after it, in this environment and another, and is not let past.
    const quick = trail.record(1, { action: 'quick' });
    const elsewhere = new Trail(world).record(1, { action: 'elsewhere' });
    expect(await seen()).toEqual(['before']);
    // 3 Both commit; whoever polls sees them in the order of the pages, and the later page has lost nothing.
    release();
    const [, [last], [other]] = await Promise.all([slow, quick, elsewhere]);
    expect(await seen()).toEqual(['quick', 'slow', 'before']);
    const rows = await world.sql<
      { audit_id: string; ts: string; position: number }[]
    >`select audit_id, ts, position from audit where env_id = ${trail.envId} order by position`;
    const keys = rows.map(({ ts, audit_id }) => `${ts} ${audit_id}`);
    expect(keys).toEqual([...keys].sort());
    expect([rows[0]?.audit_id, rows[2]?.audit_id]).toEqual([first, last]);
    // Ids follow commit order over environments too, which is what the listing of all of them goes by.
    expect((other as string) > (rows[1]?.audit_id as string)).toBe(true);
    expect(await seen({ after_ts: rows[2]?.ts, after_id: rows[2]?.audit_id })).toEqual(['slow', 'before']);
  });

  test('H-20 transactions that audit in several environments in any order end, none waiting for another', async () => {
    const { owner, org } = await world.org();
    const env = await world.env(owner, org.org_id);
    const put = (turn: boolean) =>
      world.host.by(owner).updateServices({
        params: { env_id: env.env_id },
        body: { services: ['auth', 'web'].map(service => ({ service, enabled: true, config: { turn } })) },
      });
    await Promise.all([put(false), put(true), put(false), put(true), new Trail(world).record(5)]);
    expect(await world.host.by(world.admin()).verifyAudit({ query: { env_id: env.env_id } })).toMatchObject({ status: 'intact' });
  });
});

describe('group commit', () => {
  test('REG-103 REG-139 what arrives at once is stored once each, in few transactions, and every row is told', async () => {
    const trail = new Trail(world);
    const by = world.host.by(world.service('func-worker', 'audit:write'));
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, index) => by.recordAudit({ body: { env_id: trail.envId, action: `many.${index}` } })),
    );
    const rows = await world.sql<
      { audit_id: string; xmin: string }[]
    >`select audit_id, xmin::text from audit where env_id = ${trail.envId} order by position`;
    expect(new Set(rows.map(({ audit_id }) => audit_id))).toEqual(new Set(answers.map(({ audit_id }) => audit_id)));
    expect(new Set(rows.map(({ xmin }) => xmin)).size).toBeLessThan(100);
    const told = await world.sql<
      object[]
    >`select 1 from outbox where event_type = 'platform:sys:audit:recorded' and payload->>'env_id' = ${trail.envId}`;
    expect(told).toHaveLength(300);
    expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 300 });
  });

  test('REG-103 an event the database could not hold is refused by name and spoils nobody else’s', async () => {
    const trail = new Trail(world);
    const bad = trail.record(1, { details: { text: 'a\u0000b' } });
    const good = trail.record(1, { details: { text: String.raw`a\u0000b` } });
    expect(await refusal(bad)).toEqual([400, 'audit_unstorable']);
    await good;
    expect(await refusal(trail.record(1, { details: { text: '\ud800' } }))).toEqual([400, 'audit_unstorable']);
    expect(await trail.verify()).toMatchObject({ status: 'intact', rows: 1 });
  });

  test('REG-103 more events than can wait are refused with the time to come back, while those that wait are stored', async () => {
    const trail = new Trail(world);
    const by = world.host.by(world.service('func-worker', 'audit:write'));
    const details = { text: 'x'.repeat(60_000) };
    let outcomes: Promise<[number, string][]> | undefined;
    await world.tx(async sql => {
      await sql`lock table audit in share row exclusive mode`;
      const asked = Array.from({ length: 1_200 }, () =>
        refusal(by.recordAudit({ body: { env_id: trail.envId, action: 'flood', details } })),
      );
      outcomes = Promise.all(asked);
      await Promise.race(asked);
    });
    const answers = (await outcomes)?.map(([status, code]) => `${status} ${code}`) ?? [];
    expect(new Set(answers)).toEqual(new Set(['200 answered', '503 audit_overloaded']));
    const [kept] = await world.sql<{ n: number }[]>`select count(*)::int as n from audit where env_id = ${trail.envId}`;
    expect(kept?.n).toBe(answers.filter(answer => answer === '200 answered').length);
  });

  test('REG-103 REG-139 a batch is stored whole and in its order; what was delivered before is not stored again', async () => {
    const trail = new Trail(world);
    const by = world.host.by(world.service('func-worker', 'audit:write'));
    const key = crypto.randomUUID();
    const events = ['one', 'two', 'three'].map((action, index) => ({
      env_id: trail.envId,
      action,
      ...(index === 1 ? { idempotency_key: key } : {}),
    }));
    const first = await by.recordAudits({ body: { events } });
    const again = await by.recordAudits({ body: { events: events.slice(1, 2) } });
    expect(again.audit_ids).toEqual([first.audit_ids[1]]);
    const rows = await world.sql<{ action: string }[]>`select action from audit where env_id = ${trail.envId} order by position`;
    expect(rows.map(({ action }) => action)).toEqual(['one', 'two', 'three']);
    const told = await world.sql<
      { action: string }[]
    >`select payload->>'action' as action from outbox where event_type = 'platform:sys:audit:recorded' and payload->>'env_id' = ${trail.envId}`;
    expect(told.map(({ action }) => action).sort()).toEqual(['one', 'three', 'two']);
  });
});

// Last: it moves the clock past the time that a row may wait.
test('REG-004 rows that nobody signed for an hour are named', async () => {
  const [trail, later] = [new Trail(world), new Trail(world)];
  await trail.record(2);
  await trail.signed();
  await later.record(1);
  await later.signed();
  await trail.tamper(sql => sql`delete from audit_anchors where env_id = ${trail.envId}`);
  expect(await trail.verify()).toMatchObject({ status: 'intact', anchors: 0 });
  await world.host.clock.leap('61m');
  expect(await trail.verify()).toMatchObject({ status: 'broken', fault: { kind: 'anchor_missing', position: 1 } });
});
