import type { Ctx } from '../context.ts';

const REPLACE = `
local current = redis.call('GET', KEYS[1])
if not current then return -1 end
if cjson.decode(current).version ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

/** Writes the successor of a stored version: `stale` when another write came first, `gone` when the record ended. */
export async function replaceVersion(
  kv: Ctx['kv'],
  key: string,
  record: { readonly version: number },
  ttlMs: number,
): Promise<'written' | 'stale' | 'gone'> {
  const answer = Number(await kv.call('EVAL', REPLACE, 1, key, record.version - 1, JSON.stringify(record), ttlMs));
  return answer === 1 ? 'written' : answer === 0 ? 'stale' : 'gone';
}
