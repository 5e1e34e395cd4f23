import { createHash } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { newChallenge } from '../src/domains/domain-challenge.ts';

const secrets = vi.hoisted(() => [] as Buffer[]);
vi.mock(import('node:crypto'), async original => {
  const crypto = await original();
  const randomBytes = (size: number) => (secrets.push(crypto.randomBytes(size)), secrets.at(-1) as Buffer);
  return { ...crypto, randomBytes: randomBytes as typeof crypto.randomBytes };
});

test('APP-042 the text to publish is a hash of the instance, the domain and a secret of its own', () => {
  const [first, second] = [newChallenge('i-1', 'shop.example', 'localhost'), newChallenge('i-1', 'shop.example', 'localhost')];
  const hashed = (secret?: Buffer) =>
    createHash('sha256')
      .update(`i-1:shop.example:${secret?.toString('base64url')}`)
      .digest('hex');
  expect([first, second].map(({ txt_record }) => txt_record)).toEqual(secrets.map(secret => `platform-verify=${hashed(secret)}`));
  expect(secrets.map(({ length }) => length)).toEqual([32, 32]);
});
