import { expect, test, vi } from 'vitest';
import { Passwords } from '../../src/people/passwords.ts';

const verified = vi.hoisted(() => [] as string[]);
vi.mock('@node-rs/argon2', async original => {
  const argon2 = await original<typeof import('@node-rs/argon2')>();
  return {
    ...argon2,
    verify: (hash: string, password: string) => {
      verified.push(hash);
      return argon2.verify(hash, password);
    },
  };
});

test('somebody who does not exist costs the same work as somebody who does: one hash of the same cost', async () => {
  const passwords = new Passwords();
  const stored = await passwords.hash('a sentence nobody has guessed');
  expect([
    await passwords.verify(stored, 'a wrong password'),
    await passwords.verify(undefined, 'a wrong password'),
    await passwords.verify(null, 'a wrong password'),
  ]).toEqual([false, false, false]);
  const cost = (hash: string) => hash.split('$').slice(1, 4);
  expect(verified.map(cost)).toEqual(Array(3).fill(['argon2id', 'v=19', 'm=19456,t=2,p=1']));
});
