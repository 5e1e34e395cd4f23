import { describe, expect, test, vi } from 'vitest';
import { A, B, FAULT, NO_ANSWER, OK, REFUSED, RelayGround } from '../fixtures/relay-ground.ts';
import type { DeliveryResult } from './delivery.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const ground = RelayGround.use();

describe('answers', () => {
  test('KRN-023 after a failed produce the row stays, and the relay tries again until it is taken', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    for (const [attempt, answer] of [NO_ANSWER, FAULT, { ok: false, status: 503, error: 'full' } as DeliveryResult].entries()) {
      (await ground.bus.next()).answer(answer as DeliveryResult);
      await ground.settled('one', attempt + 1);
      expect(await ground.column('relayed', ['one'])).toEqual([false]);
      ground.clock.advance(60_000);
    }
    (await ground.bus.next()).ok();
    await ground.settled('one', 4);
    expect(await ground.column('relayed', ['one'])).toEqual([true]);
    expect(await ground.column('last_error', ['one'])).toEqual([null]);
  });

  test('KRN-011 the row’s id is the idempotency key, the same at every try and for every process', async () => {
    await ground.emit(A, ['one', 'two']);
    const ids = (await ground.pool.raw<{ id: string }[]>`select id from outbox order by id`).map(({ id }) => id);
    await ground.relay.attach('shop', ground.pool);
    (await ground.bus.next()).fail(new Error('socket hang up'));
    await ground.settled('one', 1);
    await ground.relay.detach('shop');
    ground.clock.advance(2_000);
    await using other = ground.newRelay(ground.bus);
    await other.attach('shop', ground.pool);
    (await ground.bus.next()).ok();
    expect(ground.bus.calls.map(({ batch }) => batch.map(row => row.idempotency_key))).toEqual([ids, ids]);
    await ground.settled('one', 2);
  });

  test('no answer and faults are tried again after 2 s, doubling to 60 s, for ever', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 12; attempt++) {
      const call = await ground.bus.next();
      if (attempt % 2 === 0) call.answer(FAULT);
      else call.fail(new Error('connect ECONNREFUSED'));
      await ground.settled('one', attempt);
      waits.push(await ground.waitOf('one'));
      ground.clock.advance((waits.at(-1) as number) * 1_000);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60]);
    expect(await ground.column('parked', ['one'])).toEqual([false]);
    (await ground.bus.next()).ok();
  });

  test('a row is not tried before its time', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    (await ground.bus.next()).answer(FAULT);
    await ground.settled('one', 1);
    ground.clock.advance(1_900);
    await ground.relay.drain(1_000);
    expect(ground.bus.calls).toHaveLength(1);
    ground.clock.advance(100);
    (await ground.bus.next()).ok();
  });

  test('a busy bus says when to come back; without a word it is 2 s', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    const waits: number[] = [];
    const answers: DeliveryResult[] = [
      { ok: false, status: 429, retryAfterS: 7, error: 'slow' },
      { ok: false, status: 503, retryAfterS: 0, error: 'now' },
      { ok: false, status: 503, error: 'full' },
      { ok: false, status: 429, error: 'slow' },
    ];
    for (const [index, answer] of answers.entries()) {
      (await ground.bus.next()).answer(answer);
      await ground.settled('one', index + 1);
      waits.push(await ground.waitOf('one'));
      ground.clock.advance((waits.at(-1) as number) * 1_000);
    }
    expect(waits).toEqual([7, 0, 2, 2]);
    (await ground.bus.next()).ok();
  });

  test('a refused row is parked after ten refusals with its error and an alert, stays, and blocks nobody', async () => {
    await ground.emit(A, ['bad', 'good']);
    await ground.relay.attach('shop', ground.pool);
    // An outage before does not count as refusals.
    (await ground.bus.next()).fail(new Error('socket hang up'));
    await ground.settled('bad', 1);
    ground.clock.advance(60_000);
    for (let refusal = 1; refusal <= 10; refusal++) {
      const call = await ground.bus.next();
      expect(call.names[0]).toBe('bad');
      call.answer(REFUSED, OK);
      await ground.settled('bad', refusal + 1);
      expect(await ground.column('parked', ['bad'])).toEqual([refusal === 10]);
      ground.clock.advance(60_000);
    }
    expect(await ground.column('last_error', ['bad'])).toEqual(['422: unknown event']);
    expect(ground.logged).toEqual([
      {
        level: 'error',
        message: 'event parked',
        fields: expect.objectContaining({ alert: 'outbox_parked', service: 'shop', env_id: A, last_error: '422: unknown event' }),
      },
    ]);
    await ground.emit(A, ['later']);
    expect(await ground.answerAll(1)).toEqual([['later']]);
    expect((await ground.relay.metrics()).get('shop')).toMatchObject({ parked: 1 });
  });

  test('the answer to one row touches only that row', async () => {
    await ground.emit(A, ['one', 'two', 'three']);
    await ground.relay.attach('shop', ground.pool);
    (await ground.bus.next()).answer(OK, FAULT, OK);
    await ground.settled('two', 1);
    expect(await ground.column('relayed', ['one', 'two', 'three'])).toEqual([true, false, true]);
    ground.clock.advance(2_000);
    expect(await ground.answerAll(1)).toEqual([['two']]);
  });

  test('a waiting row holds up the later ones of its environment, and no other environment', async () => {
    await ground.emit(A, ['a1']);
    await ground.relay.attach('shop', ground.pool);
    (await ground.bus.next()).answer(FAULT);
    await ground.settled('a1', 1);
    await ground.emit(A, ['a2']);
    await ground.emit(B, ['b1']);
    expect(await ground.answerAll(1)).toEqual([['b1']]);
    await ground.settled('b1', 1);
    ground.clock.advance(2_000);
    expect(await ground.answerAll(1)).toEqual([['a1', 'a2']]);
  });

  test('a call without an answer in time counts as unanswered, and is told to stop', async () => {
    await ground.emit(A, ['one']);
    await ground.relay.attach('shop', ground.pool);
    const call = await ground.bus.next();
    ground.clock.advance(30_000);
    await ground.settled('one', 1);
    expect(call.signal.aborted).toBe(true);
    expect(await ground.column('last_error', ['one'])).toEqual(['no answer: no answer in time']);
  });

  test('an answer shorter than its batch leaves the rest to be sent again', async () => {
    await ground.emit(A, ['one', 'two']);
    await ground.relay.attach('shop', ground.pool);
    (await ground.bus.next()).answer(OK);
    await ground.settled('two', 1);
    expect(await ground.column('relayed', ['one', 'two'])).toEqual([true, false]);
  });
});
