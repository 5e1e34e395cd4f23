import { expect, test } from 'vitest';
import { differingSeeds } from './fixtures/observation.ts';
import { compare, isThere, metered, sharing, sliced } from './fixtures/spec-suite.ts';

test.runIf(isThere)(
  'one script in eight of the specification’s suite sees the same of a metered module as of a plain one, also where modules pay together or by slices',
  () => {
    // All of it is `npm run bench -- wasm-spec`.
    const { seen, held, differences } = compare([metered, sharing, sliced], 8);
    expect(differences).toEqual([]);
    // The suite is there, and the plain engine passes it: a comparison of two failures proves nothing.
    expect([seen > 7_000, held > 6_900]).toEqual([true, true]);
  },
);

test('a hundred generated modules do the same metered as plain, and pay the same every time', () => {
  // Fifteen hundred of them are `npm run bench -- wasm-spec`.
  expect(differingSeeds(100)).toEqual([]);
});
