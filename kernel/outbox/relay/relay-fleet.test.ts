import { describe, expect, test, vi } from 'vitest';
import { A, B, FAULT, NO_ANSWER, RelayGround } from '../fixtures/relay-ground.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { newId } from '../../base/ids.ts';
import { FakeBus } from '../fixtures/fake-bus.ts';
import { Relay } from './relay.ts';
import type { RelayOptions } from './relay-options.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const ground = RelayGround.use();

describe('several processes', () => {
  test('an environment is never sent by two at once, and the second goes on when the first is done', async () => {
    await ground.emit(A, ['one']);
    const secondBus = new FakeBus();
    await using second = ground.newRelay(secondBus);
    await ground.relay.attach('shop', ground.pool);
    const call = await ground.bus.next();
    await second.attach('shop', await ground.cluster.pool('shop'));
    await second.drain(60_000);
    expect(secondBus.calls).toEqual([]);
    call.ok();
    await ground.settled('one', 1);
    await ground.relay.detach('shop');
    await ground.emit(A, ['two']);
    ground.clock.advance(2_000);
    const next = await secondBus.next();
    expect(next.names).toEqual(['two']);
    next.ok();
  });

  test('one of them carries, and every event is sent once', async () => {
    const envs = Array.from({ length: 20 }, () => newId());
    for (const env of envs) await ground.emit(env, ['x', 'y']);
    const sent: string[] = [];
    const options: RelayOptions = {
      log: { warn: () => {}, error: () => {} },
      deliver: async batch => batch.map(({ id }) => (sent.push(id), { ok: true })),
    };
    await using one = new Relay(options);
    await using two = new Relay(options);
    await Promise.all([one.attach('shop', ground.pool), two.attach('shop', await ground.cluster.pool('shop'))]);
    await eventually(async () => (await one.metrics()).get('shop')?.pending).toBe(0);
    expect(sent).toHaveLength(40);
    expect(new Set(sent).size).toBe(40);
  });

  test('when the session of the one that leads ends, another goes on, and the first stands by', async () => {
    const secondBus = new FakeBus();
    await using second = ground.newRelay(secondBus);
    await ground.relay.attach('shop', ground.pool);
    await ground.relay.drain(60_000);
    await second.attach('shop', await ground.cluster.pool('shop'));
    await second.drain(60_000);
    const [ended] = await ground.cluster.postgres.admin()<
      { pid: number }[]
    >`select pid, pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted`;
    // Who asks first has it, once the session that ends has let go.
    await eventually(
      async () => (
        await second.drain(60_000),
        await ground.pool.raw`select 1 from pg_locks where locktype = 'advisory' and granted and pid <> ${ended?.pid ?? 0}`
      ),
    ).toHaveLength(1);
    await ground.emit(A, ['one']);
    const call = await secondBus.next();
    await ground.relay.drain(1_000);
    expect(ground.bus.calls).toEqual([]);
    call.ok();
    await ground.settled('one', 1);
  });

  test('what an earlier leader still hears from the bus does not bring a carried event back', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    const call = await ground.bus.next();
    await ground.pool.raw`update outbox set relayed = true, relayed_at = now()`;
    call.answer(FAULT);
    await ground.relay.drain(60_000);
    expect(await ground.column('relayed', ['one'])).toEqual([true]);
  });
});

describe('many environments', () => {
  test('those that wait hold up none that is due, and all have their turn', async () => {
    const waiting = Array.from({ length: 300 }, () => newId());
    for (const env of waiting) await ground.emit(env, ['waits']);
    await ground.pool.raw`update outbox set next_retry_at = ${new Date(ground.clock.now().getTime() + 60_000)}`;
    const due = Array.from({ length: 150 }, () => newId());
    for (const env of due) await ground.emit(env, ['due']);
    await ground.emit('ffffffff-0000-7000-8000-000000000000', ['last']);
    await ground.emit('00000000-0000-7000-8000-000000000001', ['first']);
    await ground.relay.attach('shop', ground.pool);
    const names = (await ground.answerAll(152)).flat();
    expect(names.filter(name => name === 'due')).toHaveLength(150);
    expect(names).toEqual(expect.arrayContaining(['first', 'last']));
    await ground.relay.drain(60_000);
    expect(ground.bus.calls).toHaveLength(152);
    ground.clock.advance(60_000);
    expect((await ground.answerAll(300)).flat()).toEqual(Array.from({ length: 300 }, () => 'waits'));
  });
});

describe('calls for the relay', () => {
  test('none is lost while others are looked at and carried: everything leaves without the poll', async () => {
    await ground.relay.attach('shop', ground.pool);
    for (let burst = 0; burst < 150; burst++) {
      // What was held calls for nobody by name.
      const commits = [
        () => ground.emit(A, ['a']),
        () => ground.emitReleased(A, 'b'),
        () => ground.emit(B, ['c']),
        () => ground.emitReleased(B, 'd'),
      ].slice(burst % 3);
      const committed = commits.map(commit => commit());
      for (let missing = committed.length; missing > 0; ) {
        const call = await ground.bus.next();
        missing -= call.names.length;
        call.ok();
      }
      await Promise.all(committed);
    }
    await eventually(async () => (await ground.pool.raw`select 1 from outbox where not relayed`).length).toBe(0);
  });

  test('who calls is looked at without the others', async () => {
    await using watched = ground.pool.sibling({});
    const asked: string[] = [];
    watched.sibling = changes => {
      const session = ground.pool.sibling(changes);
      const raw = new Proxy(session.raw, {
        apply: (tag, self, input: unknown[]) => {
          asked.push((input[0] as string[]).join('?'));
          return Reflect.apply(tag, self, input) as unknown;
        },
      });
      return Object.defineProperty(session, 'raw', { value: raw });
    };
    await ground.emit(A, ['waits']);
    await ground.relay.attach('shop', watched);
    (await ground.bus.next()).answer(NO_ANSWER);
    await ground.settled('waits', 1);
    await ground.relay.drain(60_000);
    asked.length = 0;
    await ground.emit(B, ['calls']);
    (await ground.bus.next()).ok();
    await ground.settled('calls', 1);
    await ground.relay.detach('shop');
    expect(asked.flatMap(sql => /with (?:recursive )?\w+|update|unlock/.exec(sql) ?? [])).toEqual(['with led', 'update', 'unlock']);
  });
});
