import { expect, test } from 'vitest';
import { meter } from '../src/metering/metered-module.ts';
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

test('threads, relaxed SIMD, garbage collection and a second memory are refused, each by its name', () => {
  const section = (id: number, ...content: number[]) => [id, content.length, ...content];
  const code = (...body: number[]) => [
    ...section(1, 1, 0x60, 0, 0),
    ...section(3, 1, 0),
    ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
  ];
  const vector = [0xfd, 0x0c, ...Array.from({ length: 16 }, () => 0)];
  const modules = {
    threads: [section(5, 1, 3, 1, 1), code(0xfe, 3, 0)],
    'relaxed-simd': [code(...vector, ...vector, 0xfd, 0x80, 2, 0x1a)],
    gc: [section(1, 1, 0x5f, 0), code(0x41, 0, 0xfb, 0x1c, 0x1a)],
    'multi-memory': [section(5, 2, 0, 1, 0, 1)],
  };
  for (const [feature, each] of Object.entries(modules))
    for (const sections of each) {
      const bytes = Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections]);
      const metered = (refused?: ReadonlySet<never>) => () => meter(bytes, { pages: 64, entries: 100, ...(refused ? { refused } : {}) });
      // It is nothing else that is at fault.
      expect([feature, WebAssembly.validate(bytes)]).toEqual([feature, true]);
      expect(metered(new Set())).not.toThrow();
      expect(metered()).toThrow(expect.objectContaining({ code: 'feature_refused', message: expect.stringContaining(feature) }));
    }
});
