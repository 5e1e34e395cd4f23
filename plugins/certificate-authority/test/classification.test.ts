import { isIPv4 } from 'node:net';
import { describe, expect, test } from 'vitest';
import { classify } from '../src/issuance/identifiers.ts';
import { PlatformNames } from '../src/issuance/platform-names.ts';

/** A generator of its own: the same orders every time (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const SUFFIXES = ['lan', 'corp.example'];
const LABELS = [
  'a',
  'www',
  'localhost',
  'local',
  'lan',
  'corp',
  'example',
  'org',
  '10',
  '127',
  '172',
  '192',
  '168',
  'xn--bcher-kva',
  'nip',
  'io',
  'ops',
  'sys',
  'LOCALHOST',
  'Lan',
  'x'.repeat(63),
  '1',
];
const TAILS = [
  'localhost',
  'local',
  'lan',
  'corp.example',
  'example.org',
  'com',
  'localhost.example.org',
  'notlan',
  'mycorp.example',
  'nip.io',
  'internal',
];
const ODD = [
  '',
  '.',
  '..',
  '*',
  '*.',
  '*.*.lan',
  'a..lan',
  '-a.lan',
  'a-.lan',
  'bücher.lan',
  'a b.lan',
  'a\n.lan',
  'lan.',
  'x'.repeat(64),
  `${'x.'.repeat(130)}lan`,
  '１２７.0.0.1',
  '127.1',
  '0x7f.0.0.1',
  '2130706433',
  '127.0.0.1.nip.io',
  '10.example.com',
  '_acme.lan',
  'a.lan\u0000.example.org',
  '::ffff:127.0.0.1',
  '::1',
  'fe80::1',
  '[::1]',
  '1.2.3.4.5',
  '256.1.1.1',
  '010.0.0.1',
];

function nameOf(next: () => number): string {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  const kind = next();
  if (kind < 0.2)
    return [pick(['10', '127', '172', '192', '8', '203']), ...Array.from({ length: 3 }, () => String(Math.floor(next() * 256)))].join('.');
  if (kind < 0.3) return pick(ODD);
  const name = [...Array.from({ length: Math.floor(next() * 4) }, () => pick(LABELS)), pick(TAILS)].join('.');
  return (next() < 0.15 ? '*.' : '') + name + (next() < 0.05 ? '.' : '');
}

/** The documents' rule once more, written another way: by expressions over the whole name (doc3, certificate authority 3; C35). */
const LOCAL = /^(?:localhost|(?:[a-z0-9-]+\.)+(?:localhost|local)|(?:[a-z0-9-]+\.)*(?:lan|corp\.example))$/;
const PRIVATE = /^(?:127|10)(?:\.\d+){3}$|^192\.168(?:\.\d+){2}$|^172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}$/;
const mayBeSigned = (value: string) => (isIPv4(value) ? PRIVATE.test(value) : value === '::1' || LOCAL.test(value.replace(/^\*\./, '')));

describe('what an order is', () => {
  test('CA-010 CA-014 CA-015 CA-020 CA-021 H-01 of 150,000 generated orders none that is local has a name that is not, none is mixed, and each is the same when it is asked again', () => {
    const next = random(20_261_123);
    const seen = { local: 0, external: 0, refused: 0 };
    for (let count = 0; count < 150_000; count += 1) {
      const identifiers = Array.from({ length: 1 + Math.floor(next() * 4) }, () => {
        const value = nameOf(next);
        return { type: next() < 0.05 ? 'ip' : 'dns', value };
      });
      const order = classify(identifiers, SUFFIXES);
      const again = classify(JSON.parse(JSON.stringify(identifiers)), SUFFIXES);
      if (JSON.stringify(order) !== JSON.stringify(again)) expect(again).toEqual(order);
      if ('refused' in order) {
        seen.refused += 1;
        continue;
      }
      seen[order.classification] += 1;
      const signed = order.identifiers.map(({ value }) => mayBeSigned(value));
      const right = order.classification === 'local' ? signed.every(Boolean) : !signed.some(Boolean);
      if (!right) expect({ order, signed }).toBe('of one class');
      // What was ordered under one spelling finalizes under the stored one.
      const stored = classify(order.identifiers, SUFFIXES);
      if (JSON.stringify(stored) !== JSON.stringify(order)) expect(stored).toEqual(order);
    }
    expect(seen.local > 10_000 && seen.external > 5_000 && seen.refused > 10_000).toBe(true);
  });

  test.each([
    ['Web.LAN.', { type: 'dns', value: 'web.lan' }],
    ['10.0.0.1', { type: 'ip', value: '10.0.0.1' }],
    ['0:0:0:0:0:0:0:1', { type: 'ip', value: '::1' }],
    ['*.corp.example', { type: 'dns', value: '*.corp.example' }],
    ['xn--bcher-kva.lan', { type: 'dns', value: 'xn--bcher-kva.lan' }],
  ])('CA-011 CA-012 CA-013 G-ACME-02 %s is local under one spelling', (value, identifier) => {
    expect(classify([{ type: 'dns', value }], SUFFIXES)).toEqual({ classification: 'local', identifiers: [identifier] });
  });

  test.each(ODD.filter(value => !['::1', 'lan.', '127.0.0.1.nip.io', '10.example.com'].includes(value)))(
    'G-ACME-02 %j is never signed here',
    value => {
      const order = classify([{ type: 'dns', value }], SUFFIXES);
      expect('refused' in order || order.classification === 'external').toBe(true);
    },
  );
});

test('H-01 names of the platform belong to the workload of their label, tenants’ to the ingress, and no suffix changes that', () => {
  const names = new PlatformNames('example.com', workload => (workload === 'web' ? ['console'] : []));
  const reserved = [
    'example.com',
    'sys.example.com',
    'auth.ops.sys.example.com',
    '*.ops.sys.example.com',
    'shop.main.acme.example.com',
    'bff.shop.main.acme.example.com',
    '*.main.acme.example.com',
  ];
  expect([
    reserved.filter(name => !names.isReserved(name)),
    ['a.example.com', 'a.b.example.com', 'example.org', 'xexample.com'].filter(name => names.isReserved(name)),
  ]).toEqual([[], []]);
  expect([
    names.owns('auth', 'auth.ops.sys.example.com'),
    names.owns('web', 'console.ops.sys.example.com'),
    names.owns('web', 'auth.ops.sys.example.com'),
    names.owns('auth', 'a.example.com'),
    names.owns('proxy', 'shop.main.acme.example.com'),
  ]).toEqual([true, true, false, false, true]);
});
