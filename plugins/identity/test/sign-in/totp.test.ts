import { describe, expect, test } from 'vitest';
import { qrCode } from '../../src/mfa/qr-code.ts';
import { base32, codeAt, otpauthUri, stepOfCode } from '../../src/mfa/totp.ts';

/** RFC 6238, appendix B: the shared secret of the SHA-1 rows. */
const SECRET = Buffer.from('12345678901234567890');

describe('one-time codes', () => {
  test.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('RFC 6238 appendix B: %i seconds is %s', (seconds, code) => {
    expect(codeAt(SECRET, new Date(seconds * 1_000), 8)).toBe(code);
  });

  test('the step before and the step after are accepted, no other', () => {
    const now = new Date(1_111_111_111_000);
    const step = 37_037_037;
    const shown = (offset: number) => codeAt(SECRET, new Date(now.getTime() + offset * 30_000));
    expect([-2, -1, 0, 1, 2].map(offset => stepOfCode(SECRET, shown(offset), now))).toEqual([
      undefined,
      step - 1,
      step,
      step + 1,
      undefined,
    ]);
    for (const wrong of ['', '12345', '1234567', 'abcdef', `${shown(0)}0`]) expect(stepOfCode(SECRET, wrong, now)).toBeUndefined();
  });

  test('RFC 4648 section 10: base32', () => {
    expect(['', 'f', 'fo', 'foo', 'foob', 'fooba', 'foobar'].map(text => base32(Buffer.from(text)))).toEqual([
      '',
      'MY',
      'MZXQ',
      'MZXW6',
      'MZXW6YQ',
      'MZXW6YTB',
      'MZXW6YTBOI',
    ]);
  });

  test('the link names issuer and account, and the picture of it has the three corners of a QR code', () => {
    const uri = otpauthUri(SECRET, { issuer: 'auth.acme.example', account: 'ada+x@example.org' });
    const url = new URL(uri);
    expect([decodeURIComponent(url.pathname), Object.fromEntries(url.searchParams)]).toEqual([
      '/auth.acme.example:ada+x@example.org',
      { secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', issuer: 'auth.acme.example', algorithm: 'SHA1', digits: '6', period: '30' },
    ]);
    const { size, path } = qrCode(uri);
    const dark = new Set<string>();
    for (const [, x, y, run] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\d+z/g))
      for (let at = 0; at < Number(run); at++) dark.add(`${Number(x) + at},${Number(y)}`);
    const ring = (left: number, top: number) =>
      Array.from({ length: 7 }, (_, index) => [
        dark.has(`${left + index},${top}`),
        dark.has(`${left},${top + index}`),
        dark.has(`${left + index},${top + 6}`),
      ]).flat();
    // Four modules of quiet around it (ISO 18004).
    for (const [left, top] of [
      [4, 4],
      [size - 11, 4],
      [4, size - 11],
    ] as const)
      expect(ring(left, top).every(Boolean)).toBe(true);
    expect([...dark].some(at => at.split(',').some(place => Number(place) < 4 || Number(place) >= size - 4))).toBe(false);
  });
});
