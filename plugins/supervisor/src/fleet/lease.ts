import type { KeyValue } from '@platform/sdk';

const HOLD = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/**
 * Takes a key that others of the fleet read, or holds on to it, for so many seconds. In one step: between a look and a renewal it may run
 * out and be another's.
 */
export const hold = async (kv: KeyValue, key: string, owner: string, seconds: number): Promise<boolean> =>
  Number(await kv.call('EVAL', HOLD, 1, key, owner, seconds)) === 1;

/** Gives a key back, if it is still the owner's. */
export const release = async (kv: KeyValue, key: string, owner: string): Promise<void> =>
  void (await kv.call('EVAL', RELEASE, 1, key, owner));
