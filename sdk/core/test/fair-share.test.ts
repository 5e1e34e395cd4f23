import { describe, expect, test } from 'vitest';
import { FairShare } from '../src/fair-share.ts';

const held = (share: FairShare, party: string, ended: string[], name = party) => share.admit(party, () => void ended.push(name));

describe('F-17 places for what lasts', () => {
  test('F-17 a party at its bound is refused, and others are not', () => {
    const share = new FairShare({ total: 10, perParty: 2, atBound: 'refuse' });
    const ended: string[] = [];
    const first = held(share, 'a', ended);
    expect([held(share, 'a', ended), held(share, 'a', ended), held(share, 'b', ended)].map(Boolean)).toEqual([true, false, true]);
    first?.[Symbol.dispose]();
    first?.[Symbol.dispose]();
    expect([share.size, Boolean(held(share, 'a', ended)), ended, share.outcomes]).toEqual([2, true, [], { refused: 1, ended: 0 }]);
  });

  test('F-17 or it loses its oldest, where who comes now matters more', () => {
    const share = new FairShare({ total: 10, perParty: 2, atBound: 'end oldest' });
    const ended: string[] = [];
    for (const name of ['one', 'two', 'three']) expect(held(share, 'a', ended, name)).toBeDefined();
    expect([ended, share.size, share.outcomes]).toEqual([['one'], 2, { refused: 0, ended: 1 }]);
  });

  test('F-17 when every place is taken, whoever holds most makes room: nobody takes the places of others', () => {
    const share = new FairShare({ total: 4, perParty: 3, atBound: 'refuse' });
    const ended: string[] = [];
    for (const name of ['one', 'two', 'three']) held(share, 'greedy', ended, name);
    held(share, 'a', ended);
    expect([Boolean(held(share, 'b', ended)), ended]).toEqual([true, ['one']]);
    held(share, 'a', ended, 'a again');
    expect([ended, share.size]).toEqual([['one', 'two'], 4]);
    // Who holds as much as anybody else makes no room for itself.
    expect([Boolean(held(share, 'a', ended)), ended]).toEqual([false, ['one', 'two']]);
  });
});
