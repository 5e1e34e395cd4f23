import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { Redis } from './key-value-driver.ts';

const { Command, Redis: bare } = await import('ioredis');
/** Its timer is no public member, and is what the mend is about. */
interface Timed {
  _commandTimeoutTimer: NodeJS.Timeout | undefined;
  _clearTimers(): void;
}

test('the client that is loaded is the mended one: a command of it writes no function where it becomes a member', () => {
  expect(Redis).toBe(bare);
  const made = String((Command.prototype as unknown as { initPromise: unknown }).initPromise);
  expect(made).toContain('this.reject = fail;');
  expect(made).not.toMatch(/this\.\w+ = \([^)]*\) =>/);
});

test('a command with a time limit that was answered is no hash table', () => {
  setFlagsFromString('--allow-natives-syntax');
  const isFast = new Function('object', 'return %HasFastProperties(object)') as (object: object) => boolean;
  setFlagsFromString('--no-allow-natives-syntax');
  const command = new Command('get', ['key']);
  const timed = command as unknown as Timed;
  timed._commandTimeoutTimer = setTimeout(() => undefined, 60_000);
  Object.assign(command, { written: true });
  timed._clearTimers();
  expect(timed._commandTimeoutTimer).toBeUndefined();
  expect(isFast(command)).toBe(true);
});

test('it fails as it did', async () => {
  const command = new Command('get', ['key']);
  command.reject(new Error('gone'));
  await expect(command.promise).rejects.toThrow('gone');
});
