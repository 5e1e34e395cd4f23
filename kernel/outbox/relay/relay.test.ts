import { describe, expect, test, vi } from 'vitest';
import { A, B, C, FAULT, OK, RelayGround } from '../fixtures/relay-ground.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { newId } from '../../base/ids.ts';
import { drop, release } from '../outbox.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const ground = RelayGround.use();

describe('what leaves, and in which order', () => {
  test('a committed event is carried at once, by notification alone, with everything it was written with', async () => {
    await ground.relay.attach('shop', ground.pool);
    await ground.emit(A, ['one']);
    const call = await ground.bus.next();
    const [row] = await ground.pool.raw`select id, created_at from outbox`;
    expect(call.batch).toEqual([
      {
        id: row?.['id'],
        idempotency_key: row?.['id'],
        env_id: A,
        event_type: 'platform:shop:order:created',
        stream_family: 'app',
        payload: { name: 'one' },
        correlation_id: 'c-1',
        publisher_subject: 'm2m-shop',
        publisher_id_token: null,
        created_at: row?.['created_at'],
        attempts: 0,
        refusals: 0,
      },
    ]);
    call.ok();
    await eventually(() => ground.column('relayed', ['one'])).toEqual([true]);
  });

  test('KRN-010 the outbox is drained environment by environment: no call mixes them, each is in order, one is under way per environment', async () => {
    await ground.emit(A, ['a1', 'a2']);
    await ground.emit(B, ['b1']);
    await ground.emit(A, ['a3']);
    await ground.emit(B, ['b2']);
    await ground.relay.attach('shop', ground.pool);
    const [first, second] = [await ground.bus.next(), await ground.bus.next()];
    expect([first, second].map(({ names }) => names).sort()).toEqual([
      ['a1', 'a2', 'a3'],
      ['b1', 'b2'],
    ]);
    for (const call of [first, second]) expect(new Set(call.batch.map(({ env_id }) => env_id)).size).toBe(1);
    // While A's call is under way nothing of A is sent, though B moves on.
    const [ofA, ofB] = first.names[0] === 'a1' ? [first, second] : [second, first];
    await ground.emit(A, ['a4']);
    ofB.ok();
    await ground.settled('b1', 1);
    await ground.emit(B, ['b3']);
    const third = await ground.bus.next();
    expect(third.names).toEqual(['b3']);
    third.ok();
    ofA.ok();
    expect((await ground.bus.next().then(call => (call.ok(), call))).names).toEqual(['a4']);
  });

  test('what is committed while its environment has a call under way follows right behind it, without the poll', async () => {
    await ground.relay.attach('shop', ground.pool);
    await ground.emit(A, ['one']);
    const first = await ground.bus.next();
    await ground.emit(A, ['two']);
    await ground.emit(B, ['other']);
    // Notifications come in the order of their commits: this one was heard after that of «two».
    const other = await ground.bus.next();
    expect(other.names).toEqual(['other']);
    first.ok();
    const second = await ground.bus.next();
    expect(second.names).toEqual(['two']);
    second.ok();
    other.ok();
    await ground.settled('two', 1);
  });

  test('at most a hundred rows are in a call', async () => {
    await ground.emit(
      A,
      Array.from({ length: 250 }, (_, n) => `n${n}`),
    );
    await ground.relay.attach('shop', ground.pool);
    expect((await ground.answerAll(3)).map(names => names.length)).toEqual([100, 100, 50]);
    expect(ground.bus.calls.flatMap(({ names }) => names)).toEqual(Array.from({ length: 250 }, (_, n) => `n${n}`));
  });

  test('more environments than calls at once are all served', async () => {
    for (let n = 0; n < 12; n++) await ground.emit(newId(), [`n${n}`]);
    await ground.relay.attach('shop', ground.pool);
    const open = [await ground.bus.next(), await ground.bus.next(), await ground.bus.next(), await ground.bus.next()];
    expect(ground.bus.unasked).toBe(0);
    for (const call of open) call.ok();
    await ground.answerAll(8);
    expect(ground.bus.calls.map(({ names }) => names[0]).sort()).toEqual(Array.from({ length: 12 }, (_, n) => `n${n}`).sort());
  });

  test('without notifications the poll finds what was committed', async () => {
    await ground.relay.attach('shop', ground.pool, { pollMs: 5_000 });
    await ground.relay.drain(60_000); // the first look is over
    await ground.pool.raw`select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and usename = current_user`;
    await ground.pool.raw`insert into outbox (id, env_id, event_type, stream_family, payload, correlation_id, publisher_subject)
                   values (${newId()}, ${A}, 'x', 'app', '{"name":"silent"}', 'c', 's')`;
    ground.clock.advance(5_000);
    expect((await ground.answerAll(1))[0]).toEqual(['silent']);
  });
});

describe('holds', () => {
  test('a held event waits for its release and holds up nobody', async () => {
    await ground.emit(A, ['held'], 'h');
    await ground.emit(A, ['free']);
    await ground.relay.attach('shop', ground.pool);
    expect(await ground.answerAll(1)).toEqual([['free']]);
    await ground.settled('free', 1);
    ground.clock.advance(60_000);
    await ground.relay.drain(1_000);
    expect(await ground.column('relayed', ['held', 'free'])).toEqual([false, true]);
    await ground.pool.tx(sql => release(sql, 'h'));
    expect(await ground.answerAll(1)).toEqual([['held']]);
  });

  test('a dropped event is never sent', async () => {
    await ground.emit(A, ['held'], 'h');
    await ground.relay.attach('shop', ground.pool);
    await ground.pool.tx(sql => drop(sql, 'h'));
    await ground.emit(A, ['next']);
    expect(await ground.answerAll(1)).toEqual([['next']]);
    await ground.relay.drain(1_000);
    expect(ground.bus.calls).toHaveLength(1);
  });
});

describe('care', () => {
  test('the database may go and come back', async () => {
    await ground.relay.attach('shop', ground.pool);
    await ground.relay.drain(60_000);
    await ground.cluster.postgres.admin()`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'platform_shop'`;
    // Until the pool has noticed every connection it lost.
    await eventually(async () => (await Promise.all(Array.from({ length: 12 }, () => ground.pool.healthy()))).every(Boolean)).toBe(true);
    await ground.emit(C, ['after']);
    await eventually(() => (ground.clock.advance(2_000), ground.bus.calls.length)).toBeGreaterThan(0);
    expect(await ground.answerAll(1)).toEqual([['after']]);
  });

  test('drain sends what is due and waits for it, then for nothing that has to wait', async () => {
    await ground.emit(A, ['one']);
    await ground.emit(B, ['two']);
    await ground.relay.attach('shop', ground.pool);
    const drained = ground.relay.drain(30_000);
    for (const call of [await ground.bus.next(), await ground.bus.next()]) call.answer(call.names[0] === 'one' ? OK : FAULT);
    await drained;
    expect(await ground.column('relayed', ['one', 'two'])).toEqual([true, false]);
    expect(await ground.column('attempts', ['one', 'two'])).toEqual([1, 1]);
  });

  test('drain gives up calls at its deadline, and their rows stay', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    const call = await ground.bus.next();
    const drained = ground.relay.drain(30_000);
    ground.clock.advance(30_000);
    await drained;
    expect(call.signal.aborted).toBe(true);
    expect(await ground.column('relayed', ['one'])).toEqual([false]);
  });

  test('metrics tell the age of the oldest waiting event', async () => {
    await ground.emit(A, ['one', 'two']);
    await ground.emit(A, ['held'], 'h');
    await ground.pool.raw`update outbox set created_at = ${new Date(ground.clock.now().getTime() - 90_000)} where payload->>'name' = 'one'`;
    await ground.relay.attach('shop', ground.pool);
    const call = await ground.bus.next();
    expect((await ground.relay.metrics()).get('shop')).toEqual({ pending: 2, parked: 0, oldest_age_s: 90 });
    call.ok();
  });

  test('relayed rows are forgotten after seven days, inbox marks after thirty; parked, held and waiting rows stay', async () => {
    const old = new Date(ground.clock.now().getTime() - 40 * 86_400_000);
    await ground.emit(A, ['young', 'old', 'parked', 'waiting']);
    await ground.pool.raw`update outbox set created_at = ${old}`;
    await ground.pool.raw`update outbox set relayed = true, relayed_at = case payload->>'name' when 'old' then ${old}
      else ${ground.clock.now()}::timestamptz end where payload->>'name' in ('old', 'young')`;
    await ground.pool.raw`update outbox set parked = true where payload->>'name' = 'parked'`;
    await ground.pool.raw`update outbox set hold = 'h' where payload->>'name' = 'waiting'`;
    await ground.pool.raw`insert into inbox values ('c', 'old', ${old}), ('c', 'young', ${ground.clock.now()})`;
    await ground.relay.attach('shop', ground.pool);
    expect(await ground.relay.sweep()).toBe(2);
    expect((await ground.pool.raw`select payload->>'name' as name from outbox order by 1`).map(row => row['name'])).toEqual([
      'parked',
      'waiting',
      'young',
    ]);
    expect(await ground.pool.raw`select idempotency_key from inbox`).toEqual([{ idempotency_key: 'young' }]);
  });
});
