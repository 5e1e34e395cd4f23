import { ProcessLimit } from '@platform/testing';
import { expect, test } from 'vitest';
import { partyOf } from '../../src/edge-bounds.ts';

/** As the ingress makes it, on a clock of the test. */
class Rates {
  #now = 0;
  readonly limit = new ProcessLimit({ counts: 'process', name: 'edge', perSecond: 100, burst: 200 }, () => this.#now);

  take(party: string, rps: number, at: number): boolean {
    this.#now = at;
    return this.limit.take(party, 1, { perSecond: rps, burst: rps * 2 }).allowed;
  }
}

const taken = (rates: Rates, party: string, times: number, at: number, rps = 100) =>
  Array.from({ length: times }, () => rates.take(party, rps, at)).filter(Boolean).length;

test('ING-036 an address has two seconds of requests at once, then as many as come back', () => {
  const rates = new Rates();
  expect([
    taken(rates, 'a', 250, 0),
    taken(rates, 'a', 10, 5),
    taken(rates, 'a', 10, 50),
    taken(rates, 'a', 250, 10_000),
    taken(rates, 'b', 250, 0),
  ]).toEqual([200, 0, 5, 200, 200]);
  expect(rates.limit.refused).toBe(50 + 10 + 5 + 50 + 50);
});

test('ING-036 a clock that goes back gives nothing', () => {
  const rates = new Rates();
  expect([taken(rates, 'a', 250, 1_000), taken(rates, 'a', 1, 0), taken(rates, 'a', 2, 10)]).toEqual([200, 0, 1]);
});

test('ING-008 at most 100,000 buckets are kept, the ones used last', () => {
  const rates = new Rates();
  taken(rates, 'kept', 200, 0);
  for (let party = 0; party < 150_000; party++) {
    rates.take(String(party), 100, 0);
    if (party % 50_000 === 0) rates.take('kept', 100, 0);
  }
  expect([rates.limit.size, rates.take('kept', 100, 0), taken(rates, '0', 250, 0)]).toEqual([100_000, false, 200]);
});

test('G-PROXY-06 of IPv6 a bucket is for one network of 64 bits', () => {
  expect(['2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '::ffff:10.0.0.1', '10.0.0.1', '::1'].map(partyOf)).toEqual([
    '2001:db8:0:1::/64',
    '2001:db8:0:1::/64',
    '10.0.0.1',
    '10.0.0.1',
    '0:0:0:0::/64',
  ]);
});
