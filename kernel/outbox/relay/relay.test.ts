import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { newId } from '../../base/ids.ts';
import { TestCluster } from '../../storage/fixtures/test-cluster.ts';
import { migrate } from '../../storage/schema/migrations.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import type { DeliveryResult } from './delivery.ts';
import { type Call, FakeBus } from '../fixtures/fake-bus.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { drop, insertEvents, type OutboxEvent, release } from '../outbox.ts';
import { OUTBOX_MIGRATIONS } from '../outbox-schema.ts';
import { Relay } from './relay.ts';
import type { RelayOptions } from './relay-options.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const [A, B, C] = ['00000000-0000-7000-8000-00000000000a', '00000000-0000-7000-8000-00000000000b', '00000000-0000-7000-8000-00000000000c'];
const [NO_ANSWER, FAULT, REFUSED, OK]: DeliveryResult[] = [
  { ok: false, status: null, error: 'connect ECONNREFUSED' },
  { ok: false, status: 500, error: 'fault' },
  { ok: false, status: 422, error: 'unknown event' },
  { ok: true },
] as DeliveryResult[] as [DeliveryResult, DeliveryResult, DeliveryResult, DeliveryResult];

let cluster: TestCluster;
let pool: PostgresPool;
let clock: ManualClock;
let bus: FakeBus;
let relay: Relay;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];
beforeAll(async () => {
  cluster = await TestCluster.start();
  pool = await cluster.pool('shop');
  await migrate({ sql: pool, service: 'shop', builtins: OUTBOX_MIGRATIONS });
});
afterAll(() => cluster[Symbol.asyncDispose]());
beforeEach(async () => {
  await pool.raw`truncate outbox, inbox`;
  // The database stamps rows with its own time: start the relay's beside it.
  clock = new ManualClock();
  bus = new FakeBus();
  logged = [];
  relay = newRelay(bus);
});
afterEach(() => relay[Symbol.asyncDispose]());

function newRelay(to: FakeBus, changes: Partial<RelayOptions> = {}): Relay {
  const log =
    (level: string) =>
    (fields: object, message: string): void =>
      void logged.push({ level, fields: { ...fields }, message });
  return new Relay({ deliver: to.deliver, log: { warn: log('warn'), error: log('error') }, clock, ...changes });
}

const eventOf = (env_id: string, name: string, hold?: string): OutboxEvent => ({
  id: newId(),
  env_id,
  event_type: 'platform:shop:order:created',
  stream_family: 'app',
  payload: { name },
  correlation_id: 'c-1',
  publisher_subject: 'm2m-shop',
  ...(hold !== undefined && { hold }),
});

/** Commits events of one environment, named in their payloads. */
const emit = (envId: string, names: string[], hold?: string): Promise<void> =>
  pool.tx(sql =>
    insertEvents(
      sql,
      names.map(name => eventOf(envId, name, hold)),
    ),
  );

/** Commits an event that was held until the end of its transaction. */
const emitReleased = (envId: string, name: string): Promise<void> =>
  pool.tx(async sql => {
    await insertEvents(sql, [eventOf(envId, name, 'held')]);
    await release(sql, 'held');
  });

async function column<T>(name: 'relayed' | 'parked' | 'attempts' | 'last_error', order: string[]): Promise<T[]> {
  const rows = await pool.raw<Record<string, unknown>[]>`select payload->>'name' as name, ${pool.raw(name)} as value from outbox`;
  return order.map(wanted => rows.find(row => row['name'] === wanted)?.['value'] as T);
}

/** Waits until the relay has written what became of a call, which is when the row's attempts count. */
async function settled(name: string, attempts: number): Promise<void> {
  await eventually(async () => (await column<number>('attempts', [name]))[0]).toBe(attempts);
}

const waitOf = async (name: string): Promise<number> => {
  const [row] = await pool.raw<{ at: string }[]>`select next_retry_at as at from outbox where payload->>'name' = ${name}`;
  return Math.round((Date.parse(row?.at ?? '') - clock.now().getTime()) / 1_000);
};

/** Answers calls as they come until `count` did. */
async function answerAll(count: number, answer: (call: Call) => void = call => call.ok()): Promise<string[][]> {
  const seen: string[][] = [];
  for (let i = 0; i < count; i++) {
    const call = await bus.next();
    seen.push(call.names);
    answer(call);
  }
  return seen;
}

describe('what leaves, and in which order', () => {
  test('a committed event is carried at once, by notification alone, with everything it was written with', async () => {
    await relay.attach('shop', pool);
    await emit(A, ['one']);
    const call = await bus.next();
    const [row] = await pool.raw`select id, created_at from outbox`;
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
    await eventually(() => column('relayed', ['one'])).toEqual([true]);
  });

  test('KRN-010 the outbox is drained environment by environment: no call mixes them, each is in order, one is under way per environment', async () => {
    await emit(A, ['a1', 'a2']);
    await emit(B, ['b1']);
    await emit(A, ['a3']);
    await emit(B, ['b2']);
    await relay.attach('shop', pool);
    const [first, second] = [await bus.next(), await bus.next()];
    expect([first, second].map(({ names }) => names).sort()).toEqual([
      ['a1', 'a2', 'a3'],
      ['b1', 'b2'],
    ]);
    for (const call of [first, second]) expect(new Set(call.batch.map(({ env_id }) => env_id)).size).toBe(1);
    // While A's call is under way nothing of A is sent, though B moves on.
    const [ofA, ofB] = first.names[0] === 'a1' ? [first, second] : [second, first];
    await emit(A, ['a4']);
    ofB.ok();
    await settled('b1', 1);
    await emit(B, ['b3']);
    const third = await bus.next();
    expect(third.names).toEqual(['b3']);
    third.ok();
    ofA.ok();
    expect((await bus.next().then(call => (call.ok(), call))).names).toEqual(['a4']);
  });

  test('what is committed while its environment has a call under way follows right behind it, without the poll', async () => {
    await relay.attach('shop', pool);
    await emit(A, ['one']);
    const first = await bus.next();
    await emit(A, ['two']);
    await emit(B, ['other']);
    // Notifications come in the order of their commits: this one was heard after that of «two».
    const other = await bus.next();
    expect(other.names).toEqual(['other']);
    first.ok();
    const second = await bus.next();
    expect(second.names).toEqual(['two']);
    second.ok();
    other.ok();
    await settled('two', 1);
  });

  test('at most a hundred rows are in a call', async () => {
    await emit(
      A,
      Array.from({ length: 250 }, (_, n) => `n${n}`),
    );
    await relay.attach('shop', pool);
    expect((await answerAll(3)).map(names => names.length)).toEqual([100, 100, 50]);
    expect(bus.calls.flatMap(({ names }) => names)).toEqual(Array.from({ length: 250 }, (_, n) => `n${n}`));
  });

  test('more environments than calls at once are all served', async () => {
    for (let n = 0; n < 12; n++) await emit(newId(), [`n${n}`]);
    await relay.attach('shop', pool);
    const open = [await bus.next(), await bus.next(), await bus.next(), await bus.next()];
    expect(bus.unasked).toBe(0);
    for (const call of open) call.ok();
    await answerAll(8);
    expect(bus.calls.map(({ names }) => names[0]).sort()).toEqual(Array.from({ length: 12 }, (_, n) => `n${n}`).sort());
  });

  test('without notifications the poll finds what was committed', async () => {
    await relay.attach('shop', pool, { pollMs: 5_000 });
    await relay.drain(60_000); // the first look is over
    await pool.raw`select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and usename = current_user`;
    await pool.raw`insert into outbox (id, env_id, event_type, stream_family, payload, correlation_id, publisher_subject)
                   values (${newId()}, ${A}, 'x', 'app', '{"name":"silent"}', 'c', 's')`;
    clock.advance(5_000);
    expect((await answerAll(1))[0]).toEqual(['silent']);
  });
});

describe('holds', () => {
  test('a held event waits for its release and holds up nobody', async () => {
    await emit(A, ['held'], 'h');
    await emit(A, ['free']);
    await relay.attach('shop', pool);
    expect(await answerAll(1)).toEqual([['free']]);
    await settled('free', 1);
    clock.advance(60_000);
    await relay.drain(1_000);
    expect(await column('relayed', ['held', 'free'])).toEqual([false, true]);
    await pool.tx(sql => release(sql, 'h'));
    expect(await answerAll(1)).toEqual([['held']]);
  });

  test('a dropped event is never sent', async () => {
    await emit(A, ['held'], 'h');
    await relay.attach('shop', pool);
    await pool.tx(sql => drop(sql, 'h'));
    await emit(A, ['next']);
    expect(await answerAll(1)).toEqual([['next']]);
    await relay.drain(1_000);
    expect(bus.calls).toHaveLength(1);
  });
});

describe('answers', () => {
  test('KRN-023 after a failed produce the row stays, and the relay tries again until it is taken', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    for (const [attempt, answer] of [NO_ANSWER, FAULT, { ok: false, status: 503, error: 'full' } as DeliveryResult].entries()) {
      (await bus.next()).answer(answer as DeliveryResult);
      await settled('one', attempt + 1);
      expect(await column('relayed', ['one'])).toEqual([false]);
      clock.advance(60_000);
    }
    (await bus.next()).ok();
    await settled('one', 4);
    expect(await column('relayed', ['one'])).toEqual([true]);
    expect(await column('last_error', ['one'])).toEqual([null]);
  });

  test('KRN-011 the row’s id is the idempotency key, the same at every try and for every process', async () => {
    await emit(A, ['one', 'two']);
    const ids = (await pool.raw<{ id: string }[]>`select id from outbox order by id`).map(({ id }) => id);
    await relay.attach('shop', pool);
    (await bus.next()).fail(new Error('socket hang up'));
    await settled('one', 1);
    await relay.detach('shop');
    clock.advance(2_000);
    await using other = newRelay(bus);
    await other.attach('shop', pool);
    (await bus.next()).ok();
    expect(bus.calls.map(({ batch }) => batch.map(row => row.idempotency_key))).toEqual([ids, ids]);
    await settled('one', 2);
  });

  test('no answer and faults are tried again after 2 s, doubling to 60 s, for ever', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 12; attempt++) {
      const call = await bus.next();
      if (attempt % 2 === 0) call.answer(FAULT);
      else call.fail(new Error('connect ECONNREFUSED'));
      await settled('one', attempt);
      waits.push(await waitOf('one'));
      clock.advance((waits.at(-1) as number) * 1_000);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60]);
    expect(await column('parked', ['one'])).toEqual([false]);
    (await bus.next()).ok();
  });

  test('a row is not tried before its time', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    (await bus.next()).answer(FAULT);
    await settled('one', 1);
    clock.advance(1_900);
    await relay.drain(1_000);
    expect(bus.calls).toHaveLength(1);
    clock.advance(100);
    (await bus.next()).ok();
  });

  test('a busy bus says when to come back; without a word it is 2 s', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    const waits: number[] = [];
    const answers: DeliveryResult[] = [
      { ok: false, status: 429, retryAfterS: 7, error: 'slow' },
      { ok: false, status: 503, retryAfterS: 0, error: 'now' },
      { ok: false, status: 503, error: 'full' },
      { ok: false, status: 429, error: 'slow' },
    ];
    for (const [index, answer] of answers.entries()) {
      (await bus.next()).answer(answer);
      await settled('one', index + 1);
      waits.push(await waitOf('one'));
      clock.advance((waits.at(-1) as number) * 1_000);
    }
    expect(waits).toEqual([7, 0, 2, 2]);
    (await bus.next()).ok();
  });

  test('a refused row is parked after ten refusals with its error and an alert, stays, and blocks nobody', async () => {
    await emit(A, ['bad', 'good']);
    await relay.attach('shop', pool);
    // An outage before does not count as refusals.
    (await bus.next()).fail(new Error('socket hang up'));
    await settled('bad', 1);
    clock.advance(60_000);
    for (let refusal = 1; refusal <= 10; refusal++) {
      const call = await bus.next();
      expect(call.names[0]).toBe('bad');
      call.answer(REFUSED, OK);
      await settled('bad', refusal + 1);
      expect(await column('parked', ['bad'])).toEqual([refusal === 10]);
      clock.advance(60_000);
    }
    expect(await column('last_error', ['bad'])).toEqual(['422: unknown event']);
    expect(logged).toEqual([
      {
        level: 'error',
        message: 'event parked',
        fields: expect.objectContaining({ alert: 'outbox_parked', service: 'shop', env_id: A, last_error: '422: unknown event' }),
      },
    ]);
    await emit(A, ['later']);
    expect(await answerAll(1)).toEqual([['later']]);
    expect((await relay.metrics()).get('shop')).toMatchObject({ parked: 1 });
  });

  test('the answer to one row touches only that row', async () => {
    await emit(A, ['one', 'two', 'three']);
    await relay.attach('shop', pool);
    (await bus.next()).answer(OK, FAULT, OK);
    await settled('two', 1);
    expect(await column('relayed', ['one', 'two', 'three'])).toEqual([true, false, true]);
    clock.advance(2_000);
    expect(await answerAll(1)).toEqual([['two']]);
  });

  test('a waiting row holds up the later ones of its environment, and no other environment', async () => {
    await emit(A, ['a1']);
    await relay.attach('shop', pool);
    (await bus.next()).answer(FAULT);
    await settled('a1', 1);
    await emit(A, ['a2']);
    await emit(B, ['b1']);
    expect(await answerAll(1)).toEqual([['b1']]);
    await settled('b1', 1);
    clock.advance(2_000);
    expect(await answerAll(1)).toEqual([['a1', 'a2']]);
  });

  test('a call without an answer in time counts as unanswered, and is told to stop', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    const call = await bus.next();
    clock.advance(30_000);
    await settled('one', 1);
    expect(call.signal.aborted).toBe(true);
    expect(await column('last_error', ['one'])).toEqual(['no answer: no answer in time']);
  });

  test('an answer shorter than its batch leaves the rest to be sent again', async () => {
    await emit(A, ['one', 'two']);
    await relay.attach('shop', pool);
    (await bus.next()).answer(OK);
    await settled('two', 1);
    expect(await column('relayed', ['one', 'two'])).toEqual([true, false]);
  });
});

describe('several processes', () => {
  test('an environment is never sent by two at once, and the second goes on when the first is done', async () => {
    await emit(A, ['one']);
    const secondBus = new FakeBus();
    await using second = newRelay(secondBus);
    await relay.attach('shop', pool);
    const call = await bus.next();
    await second.attach('shop', await cluster.pool('shop'));
    await second.drain(60_000);
    expect(secondBus.calls).toEqual([]);
    call.ok();
    await settled('one', 1);
    await relay.detach('shop');
    await emit(A, ['two']);
    clock.advance(2_000);
    const next = await secondBus.next();
    expect(next.names).toEqual(['two']);
    next.ok();
  });

  test('one of them carries, and every event is sent once', async () => {
    const envs = Array.from({ length: 20 }, () => newId());
    for (const env of envs) await emit(env, ['x', 'y']);
    const sent: string[] = [];
    const options: RelayOptions = {
      log: { warn: () => {}, error: () => {} },
      deliver: async batch => batch.map(({ id }) => (sent.push(id), { ok: true })),
    };
    await using one = new Relay(options);
    await using two = new Relay(options);
    await Promise.all([one.attach('shop', pool), two.attach('shop', await cluster.pool('shop'))]);
    await eventually(async () => (await one.metrics()).get('shop')?.pending).toBe(0);
    expect(sent).toHaveLength(40);
    expect(new Set(sent).size).toBe(40);
  });

  test('when the session of the one that leads ends, another goes on, and the first stands by', async () => {
    const secondBus = new FakeBus();
    await using second = newRelay(secondBus);
    await relay.attach('shop', pool);
    await relay.drain(60_000);
    await second.attach('shop', await cluster.pool('shop'));
    await second.drain(60_000);
    const [ended] = await cluster.postgres.admin()<
      { pid: number }[]
    >`select pid, pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted`;
    // Who asks first has it, once the session that ends has let go.
    await eventually(
      async () => (
        await second.drain(60_000),
        await pool.raw`select 1 from pg_locks where locktype = 'advisory' and granted and pid <> ${ended?.pid ?? 0}`
      ),
    ).toHaveLength(1);
    await emit(A, ['one']);
    const call = await secondBus.next();
    await relay.drain(1_000);
    expect(bus.calls).toEqual([]);
    call.ok();
    await settled('one', 1);
  });

  test('what an earlier leader still hears from the bus does not bring a carried event back', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    const call = await bus.next();
    await pool.raw`update outbox set relayed = true, relayed_at = now()`;
    call.answer(FAULT);
    await relay.drain(60_000);
    expect(await column('relayed', ['one'])).toEqual([true]);
  });
});

describe('many environments', () => {
  test('those that wait hold up none that is due, and all have their turn', async () => {
    const waiting = Array.from({ length: 300 }, () => newId());
    for (const env of waiting) await emit(env, ['waits']);
    await pool.raw`update outbox set next_retry_at = ${new Date(clock.now().getTime() + 60_000)}`;
    const due = Array.from({ length: 150 }, () => newId());
    for (const env of due) await emit(env, ['due']);
    await emit('ffffffff-0000-7000-8000-000000000000', ['last']);
    await emit('00000000-0000-7000-8000-000000000001', ['first']);
    await relay.attach('shop', pool);
    const names = (await answerAll(152)).flat();
    expect(names.filter(name => name === 'due')).toHaveLength(150);
    expect(names).toEqual(expect.arrayContaining(['first', 'last']));
    await relay.drain(60_000);
    expect(bus.calls).toHaveLength(152);
    clock.advance(60_000);
    expect((await answerAll(300)).flat()).toEqual(Array.from({ length: 300 }, () => 'waits'));
  });
});

describe('calls for the relay', () => {
  test('none is lost while others are looked at and carried: everything leaves without the poll', async () => {
    await relay.attach('shop', pool);
    for (let burst = 0; burst < 150; burst++) {
      // What was held calls for nobody by name.
      const commits = [() => emit(A, ['a']), () => emitReleased(A, 'b'), () => emit(B, ['c']), () => emitReleased(B, 'd')].slice(burst % 3);
      const committed = commits.map(commit => commit());
      for (let missing = committed.length; missing > 0; ) {
        const call = await bus.next();
        missing -= call.names.length;
        call.ok();
      }
      await Promise.all(committed);
    }
    await eventually(async () => (await pool.raw`select 1 from outbox where not relayed`).length).toBe(0);
  });

  test('who calls is looked at without the others', async () => {
    await using watched = pool.sibling({});
    const asked: string[] = [];
    watched.sibling = changes => {
      const session = pool.sibling(changes);
      const raw = new Proxy(session.raw, {
        apply: (tag, self, input: unknown[]) => {
          asked.push((input[0] as string[]).join('?'));
          return Reflect.apply(tag, self, input) as unknown;
        },
      });
      return Object.defineProperty(session, 'raw', { value: raw });
    };
    await emit(A, ['waits']);
    await relay.attach('shop', watched);
    (await bus.next()).answer(NO_ANSWER);
    await settled('waits', 1);
    await relay.drain(60_000);
    asked.length = 0;
    await emit(B, ['calls']);
    (await bus.next()).ok();
    await settled('calls', 1);
    await relay.detach('shop');
    expect(asked.flatMap(sql => /with (?:recursive )?\w+|update|unlock/.exec(sql) ?? [])).toEqual(['with led', 'update', 'unlock']);
  });
});

describe('care', () => {
  test('the database may go and come back', async () => {
    await relay.attach('shop', pool);
    await relay.drain(60_000);
    await cluster.postgres.admin()`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'platform_shop'`;
    // Until the pool has noticed every connection it lost.
    await eventually(async () => (await Promise.all(Array.from({ length: 12 }, () => pool.healthy()))).every(Boolean)).toBe(true);
    await emit(C, ['after']);
    await eventually(() => (clock.advance(2_000), bus.calls.length)).toBeGreaterThan(0);
    expect(await answerAll(1)).toEqual([['after']]);
  });

  test('drain sends what is due and waits for it, then for nothing that has to wait', async () => {
    await emit(A, ['one']);
    await emit(B, ['two']);
    await relay.attach('shop', pool);
    const drained = relay.drain(30_000);
    for (const call of [await bus.next(), await bus.next()]) call.answer(call.names[0] === 'one' ? OK : FAULT);
    await drained;
    expect(await column('relayed', ['one', 'two'])).toEqual([true, false]);
    expect(await column('attempts', ['one', 'two'])).toEqual([1, 1]);
  });

  test('drain gives up calls at its deadline, and their rows stay', async () => {
    await emit(A, ['one']);
    await relay.attach('shop', pool);
    const call = await bus.next();
    const drained = relay.drain(30_000);
    clock.advance(30_000);
    await drained;
    expect(call.signal.aborted).toBe(true);
    expect(await column('relayed', ['one'])).toEqual([false]);
  });

  test('metrics tell the age of the oldest waiting event', async () => {
    await emit(A, ['one', 'two']);
    await emit(A, ['held'], 'h');
    await pool.raw`update outbox set created_at = ${new Date(clock.now().getTime() - 90_000)} where payload->>'name' = 'one'`;
    await relay.attach('shop', pool);
    const call = await bus.next();
    expect((await relay.metrics()).get('shop')).toEqual({ pending: 2, parked: 0, oldest_age_s: 90 });
    call.ok();
  });

  test('relayed rows are forgotten after seven days, inbox marks after thirty; parked, held and waiting rows stay', async () => {
    const old = new Date(clock.now().getTime() - 40 * 86_400_000);
    await emit(A, ['young', 'old', 'parked', 'waiting']);
    await pool.raw`update outbox set created_at = ${old}`;
    await pool.raw`update outbox set relayed = true, relayed_at = case payload->>'name' when 'old' then ${old}
      else ${clock.now()}::timestamptz end where payload->>'name' in ('old', 'young')`;
    await pool.raw`update outbox set parked = true where payload->>'name' = 'parked'`;
    await pool.raw`update outbox set hold = 'h' where payload->>'name' = 'waiting'`;
    await pool.raw`insert into inbox values ('c', 'old', ${old}), ('c', 'young', ${clock.now()})`;
    await relay.attach('shop', pool);
    expect(await relay.sweep()).toBe(2);
    expect((await pool.raw`select payload->>'name' as name from outbox order by 1`).map(row => row['name'])).toEqual([
      'parked',
      'waiting',
      'young',
    ]);
    expect(await pool.raw`select idempotency_key from inbox`).toEqual([{ idempotency_key: 'young' }]);
  });
});
