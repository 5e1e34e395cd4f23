import type { KeyValue, Logger } from '@platform/sdk';
import { afterEach, expect, test } from 'vitest';
import { RevokedCertificates } from './revoked-certificates.ts';

const stored = new Map<string, string>();
const written: (readonly (string | number)[])[] = [];
let tell: (thumbprint: string) => void = () => undefined;
let away = false;
const kv = {
  call: async (_command: string, key: string) => {
    if (away) throw new Error('the store is away');
    return stored.get(key) ?? null;
  },
  pipeline: async (commands: readonly (readonly (string | number)[])[]) => void written.push(...commands),
  subscribe: async (_channel: string, listener: (message: string) => void) => {
    tell = listener;
    return { [Symbol.asyncDispose]: async () => undefined };
  },
} as unknown as KeyValue;
const warned: object[] = [];
const log = { warn: (fields: object) => void warned.push(fields) } as unknown as Logger;
const list = (thumbprints: string) => [stored.set('revoked:certs', thumbprints), stored.set('revoked:certs:stamp', `of ${thumbprints}`)];
afterEach(() => {
  away = false;
  stored.clear();
  written.length = 0;
});

test('H-02 what was revoked is known at the start, by message, and by looking; what expired is forgotten', async () => {
  list('one two');
  await using revoked = new RevokedCertificates({ kv, log, now: () => new Date(0) });
  await revoked.start();
  const heard: string[] = [];
  revoked.onRevoked(thumbprints => void heard.push(...thumbprints));
  expect(['one', 'two', 'three'].map(thumbprint => revoked.has(thumbprint))).toEqual([true, true, false]);
  tell('three');
  tell('three');
  expect([revoked.has('three'), heard]).toEqual([true, ['three']]);
  // The message was lost: the list says it all the same.
  list('two three four');
  await revoked.look();
  expect([['one', 'two', 'three', 'four'].map(thumbprint => revoked.has(thumbprint)), heard]).toEqual([
    [false, true, true, true],
    ['three', 'four'],
  ]);
});

test('H-02 while the store is away, or came back empty, what is known stays refused', async () => {
  list('one');
  await using revoked = new RevokedCertificates({ kv, log, now: () => new Date(0) });
  await revoked.start();
  away = true;
  await expect(revoked.look()).rejects.toThrow('away');
  away = false;
  stored.clear();
  await revoked.look();
  expect(revoked.has('one')).toBe(true);
});

test('H-02 who still shows a revoked certificate is counted for operators, and who shows another is not', async () => {
  list('one');
  await using revoked = new RevokedCertificates({ kv, log, now: () => new Date(0) });
  await revoked.start();
  expect([revoked.refuses('one'), revoked.refuses('one'), revoked.refuses('two')]).toEqual([true, true, false]);
  await revoked.look();
  await revoked.look();
  expect(written.map(([command, key, ...more]) => [command, key, ...more])).toEqual([
    ['HINCRBY', 'revoked:used:one', 'count', 2],
    ['HSET', 'revoked:used:one', 'last', new Date(0).toISOString()],
    ['EXPIRE', 'revoked:used:one', 2_592_000],
  ]);
});
