import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SealedBox } from './sealed-box.ts';

const [older, newer] = [randomBytes(32), randomBytes(32)];

test('a box opens only under its key, for its purpose and unchanged', () => {
  const box = new SealedBox([newer]);
  const sealed = box.seal('mail', 'a secret');
  expect(JSON.stringify(sealed)).not.toContain('a secret');
  expect(box.open('mail', sealed)).toBe('a secret');
  expect(box.seal('mail', 'a secret').ct).not.toBe(sealed.ct);
  const changed = Buffer.from(sealed.ct, 'base64url');
  changed[0] = (changed[0] as number) ^ 1;
  expect([
    box.open('other', sealed),
    new SealedBox([older]).open('mail', sealed),
    box.open('mail', { ...sealed, ct: changed.toString('base64url') }),
    box.open('mail', { ...sealed, tag: sealed.tag.slice(0, 8) }),
    box.open('mail', { ...sealed, kid: 'nobody' }),
  ]).toEqual([undefined, undefined, undefined, undefined, undefined]);
});

test('a changed key still opens what the older one sealed, and calls it stale', () => {
  const sealed = new SealedBox([older]).seal('session', 'text');
  const box = new SealedBox([newer, older]);
  expect([box.open('session', sealed), box.isStale(sealed), box.isStale(box.seal('session', 'text'))]).toEqual(['text', true, false]);
});

test('a fingerprint depends on key, purpose and value, and a key of another length is refused', () => {
  const box = new SealedBox([newer]);
  expect(box.fingerprint('account', 'a')).toBe(new SealedBox([newer, older]).fingerprint('account', 'a'));
  expect(
    new Set([
      box.fingerprint('account', 'a'),
      box.fingerprint('account', 'b'),
      box.fingerprint('other', 'a'),
      new SealedBox([older]).fingerprint('account', 'a'),
    ]).size,
  ).toBe(4);
  const [before, both] = [new SealedBox([older]).fingerprint('account', 'a'), new SealedBox([newer, older])];
  expect([before, both.fingerprint('account', 'a')].map(mark => both.isFingerprint('account', 'a', mark))).toEqual([true, true]);
  expect([
    box.isFingerprint('account', 'a', before),
    both.isFingerprint('account', 'b', before),
    both.isFingerprint('other', 'a', before),
  ]).toEqual([false, false, false]);
  for (const mark of ['', before.slice(1), `${before}A`, `${before}=`, 'nothing'])
    expect([mark, both.isFingerprint('account', 'a', mark)]).toEqual([mark, false]);
  expect(() => new SealedBox([randomBytes(16)])).toThrow('32 bytes');
});
