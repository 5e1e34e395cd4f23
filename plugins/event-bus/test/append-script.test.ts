import { TestKeyValue } from '@platform/kernel/storage/fixtures/test-key-value';
import { pipelined } from '@platform/kernel/storage/pipelined';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Appended, AppendScript } from '../src/stream/append-script.ts';
import { envelopeOf } from '../src/stream/entry.ts';
import { streamKey } from '../src/stream/names.ts';
import { rowOf } from './fixtures/left-behind.ts';
import { newEnv } from './fixtures/running-bus.ts';

let store: TestKeyValue;
beforeAll(async () => {
  store = await TestKeyValue.start();
});
afterAll(() => store[Symbol.asyncDispose]());

const append = async (rows: readonly Appended[]) => {
  const script = new AppendScript(rows);
  return { commands: script.commands.length, ids: script.idsOf(await pipelined(store.client, script.commands)) };
};
const entries = async (ref: Appended) =>
  (await store.client.xrange(streamKey(ref), '-', '+')).map(([id, fields]) => ({ id, envelope: envelopeOf(fields) }));

test('rows of one stream go with one command, and lie there whole and in order, whatever they share', async () => {
  const env = newEnv();
  const rows = Array.from({ length: 40 }, (_, n) => rowOf(env, n));
  const { commands, ids } = await append(rows);
  expect(commands).toBe(1);
  expect(await entries(rows[0] as Appended)).toEqual(rows.map(({ envelope }, n) => ({ id: ids[n], envelope })));
});

test('a row alone, and rows that are the same but for their key', async () => {
  const env = newEnv();
  const row = rowOf(env, 1);
  const twin = { ...row, envelope: { ...row.envelope, idempotency_key: 'another' } };
  const ids = [...(await append([row])).ids, ...(await append([row, twin])).ids];
  expect(await entries(row)).toEqual([row, row, twin].map(({ envelope }, n) => ({ id: ids[n], envelope })));
});

test('rows with other members keep their place behind those before them; other streams are told apart', async () => {
  const [env, other] = [newEnv(), newEnv()];
  const [first, second, third, elsewhere] = [rowOf(env, 1), rowOf(env, 2), rowOf(env, 3), rowOf(other, 4)];
  const vouched = { ...second, envelope: { ...second.envelope, publisher_id_token: 'said by "somebody"\n', inbox_id: 'i-1' } };
  const { commands, ids } = await append([first, elsewhere, vouched, third]);
  expect(commands).toBe(4);
  expect(await entries(first)).toEqual([first, vouched, third].map(({ envelope }, n) => ({ id: [ids[0], ids[2], ids[3]][n], envelope })));
  expect(await entries(elsewhere)).toEqual([{ id: ids[1], envelope: elsewhere.envelope }]);
});

test('a stream that takes nothing fails its own rows, each with the reason', async () => {
  const [bad, good] = [rowOf(newEnv(), 1), rowOf(newEnv(), 2)];
  await store.client.set(streamKey(bad), 'no stream');
  const { ids } = await append([bad, good, bad]);
  expect(ids).toEqual([
    expect.objectContaining({ message: expect.stringContaining('WRONGTYPE') }),
    expect.stringMatching(/^\d+-\d+$/),
    expect.any(Error),
  ]);
});
