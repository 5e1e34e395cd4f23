import { expect, test } from 'vitest';
import { isUnavailable } from '../src/unavailable.ts';

test.each([
  [
    'a cluster whose server is being replaced',
    new Error('Too many Cluster redirections. Last error: ReplyError: MOVED 13520 127.0.0.1:31733'),
    true,
  ],
  ['a store that loads its memory', new Error('LOADING Redis is loading the dataset in memory'), true],
  [
    'a refused connection under other errors',
    new Error('asked', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) }),
    true,
  ],
  ['a command that crosses slots', new Error("CROSSSLOT Keys in request don't hash to the same slot"), false],
  ['a row the database refuses', Object.assign(new Error('duplicate key'), { code: '23505' }), false],
])('%s: whether the store is away', (_, error, away) => {
  expect(isUnavailable(error)).toBe(away);
});
