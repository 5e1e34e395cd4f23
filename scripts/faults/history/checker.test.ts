import { expect, test } from 'vitest';
import { check } from './checker.ts';
import { History, type Received, type Sent } from './history.ts';
import { Seeded } from '@platform/kernel/test/seeded';

const sent = (producer: string, n: number, key = `${producer}-${n}`): Sent => ({ producer, n, key });
const entry = (producer: string, n: number, id = `${n}-0`, key = `${producer}-${n}`): Received => ({ producer, n, key, message_id: id });

function historyOf({ acknowledged = [], stream = [] }: { acknowledged?: readonly Sent[]; stream?: readonly Received[] }): History {
  const history = new History();
  for (const one of [...acknowledged, ...stream]) history.attempt({ ...one, key: `${one.producer}-${one.n}` });
  for (const one of acknowledged) history.acknowledge(one);
  history.stream.push(...stream);
  return history;
}
const rules = (history: History) => check(history).map(({ rule, event }) => `${rule} ${event}`);

test('a history in which everything is there, with duplicates and what nobody acknowledged, is whole', () => {
  const stream = [entry('a', 0), entry('b', 0, '1-1'), entry('a', 1), entry('a', 0, '3-0'), entry('a', 2)];
  expect(rules(historyOf({ acknowledged: [sent('a', 0), sent('a', 1), sent('b', 0)], stream }))).toEqual([]);
});

test('what was acknowledged and is on no stream is lost', () => {
  expect(rules(historyOf({ acknowledged: [sent('a', 0), sent('a', 1)], stream: [entry('a', 0)] }))).toEqual(['lost a/1']);
});

test('the first copies of a producer stand in its order', () => {
  expect(rules(historyOf({ stream: [entry('a', 1), entry('b', 0), entry('a', 0), entry('a', 1, '9-9')] }))).toEqual(['out of order a/0']);
});

test('copies of one event carry one key, and events that nobody sent are found', () => {
  expect(rules(historyOf({ stream: [entry('a', 0), entry('a', 0, '2-0', 'other')] }))).toEqual(['two keys a/0', 'never sent a/0']);
  const history = new History();
  history.stream.push(entry('ghost', 7));
  expect(rules(history)).toEqual(['never sent ghost/7']);
});

test('an event whose key the bus mints is held to one key, and to its place only when it was acknowledged', () => {
  const keyless = (...acknowledged: number[]) => {
    const history = new History();
    for (let n = 0; n < 3; n++) history.attempt({ producer: 'a', n, key: undefined });
    for (const n of acknowledged) history.acknowledge({ producer: 'a', n, key: undefined });
    return history;
  };
  const late = keyless(1);
  late.stream.push(entry('a', 1), entry('a', 0, '2-0'), entry('a', 0, '3-0'));
  expect(rules(late)).toEqual([]);
  const wrong = keyless(0, 1, 2);
  wrong.stream.push(entry('a', 1), entry('a', 0, '2-0'), entry('a', 0, '3-0', 'other'));
  expect(rules(wrong)).toEqual(['lost a/2', 'out of order a/0', 'two keys a/0']);
});

test('an acknowledgement holds as long as the store lives', () => {
  const history = historyOf({ acknowledged: [sent('a', 0)], stream: [entry('a', 0)] });
  history.receive(entry('a', 0));
  history.settled.add('0-0');
  expect(rules(history)).toEqual([]);
  history.receive(entry('a', 0));
  expect(rules(history)).toEqual(['acknowledgement undone a/0']);
  history.storeDied = true;
  expect(rules(history)).toEqual([]);
});

test('a seed repeats its numbers', () => {
  const draw = (seed: number) => {
    const seeded = new Seeded(seed);
    return Array.from({ length: 20 }, () => seeded.between(1, 6));
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
  expect(new Set(draw(7)).size).toBeGreaterThan(3);
});
