import type { EventBusContext } from '../context.ts';
import { type StreamRef, streamKey } from '../stream/names.ts';

/** What became of each id of a call. */
export interface Settled {
  readonly done: readonly string[];
  readonly lost: readonly string[];
}

/**
 * Whether an entry is pending, and for the consumer of the call where it named one: then it is still the caller's. Scripts begin with it.
 */
export const HELD = `
local function held(key, group, consumer, id)
  local ok, rows = pcall(redis.call, 'XPENDING', key, group, id, id, 1)
  if not ok or rows.err or #rows == 0 then return false end
  return consumer == '' or rows[1][2] == consumer
end`;

/**
 * One look at the range of the ids and one acknowledgement, as a reader settles what it read; what that look did not show is asked for by
 * itself.
 */
const ACK = `${HELD}
local key, group, consumer, asked = KEYS[1], ARGV[1], ARGV[2], #ARGV - 2
local look = {'XPENDING', key, group, ARGV[3], ARGV[#ARGV], asked}
if consumer ~= '' then look[#look + 1] = consumer end
local ok, rows = pcall(redis.call, unpack(look))
local seen = {}
if ok and not rows.err then for _, row in ipairs(rows) do seen[row[1]] = true end end
local answers, mine = {}, {'XACK', key, group}
for i = 3, #ARGV do
  local id = ARGV[i]
  local done = seen[id] or ((not ok or rows.err or #rows == asked) and held(key, group, consumer, id))
  answers[i - 2] = done and 1 or 0
  if done then mine[#mine + 1] = id end
end
if #mine > 3 then redis.call(unpack(mine)) end
return answers`;
// The same consumer claims what it has: the entry is as fresh as when it was read, and its count of deliveries stays.
const EXTEND = `${HELD}
local answers = {}
for i = 3, #ARGV do
  local id, kept = ARGV[i], 0
  if held(KEYS[1], ARGV[1], ARGV[2], id) then
    local holder = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1][2]
    kept = #redis.call('XCLAIM', KEYS[1], ARGV[1], holder, 0, id, 'JUSTID')
  end
  answers[i - 2] = kept
end
return answers`;

/** Entries in the hands of a consumer: for a minute after they were read, and as much longer as it says. One script decides and acts. */
export class Leases {
  readonly #kv: EventBusContext['kv'];

  constructor({ kv }: EventBusContext) {
    this.#kv = kv;
  }

  /** Ends leases: the entries are handled. */
  acknowledge(ref: StreamRef, group: string, consumer: string, ids: readonly string[]): Promise<Settled> {
    return this.#each(ACK, ref, group, consumer, ids);
  }

  /** Begins leases anew. */
  extend(ref: StreamRef, group: string, consumer: string, ids: readonly string[]): Promise<Settled> {
    return this.#each(EXTEND, ref, group, consumer, ids);
  }

  async #each(script: string, ref: StreamRef, group: string, consumer: string, ids: readonly string[]): Promise<Settled> {
    if (ids.length === 0) return { done: [], lost: [] };
    const inOrder = [...ids].sort(byAge);
    const answers = (await this.#kv.call('EVAL', script, 1, streamKey(ref), group, consumer, ...inOrder)) as number[];
    const held = new Set(inOrder.filter((_, index) => Number(answers[index]) > 0));
    return { done: ids.filter(id => held.has(id)), lost: ids.filter(id => !held.has(id)) };
  }
}

/** Ids of a stream, `{ms}-{sequence}`, oldest first: shorter numbers without leading zeros are smaller. */
function byAge(left: string, right: string): number {
  const [leftMs, leftSequence] = left.split('-') as [string, string];
  const [rightMs, rightSequence] = right.split('-') as [string, string];
  return smaller(leftMs, rightMs) || smaller(leftSequence, rightSequence);
}
const smaller = (left: string, right: string): number => left.length - right.length || (left < right ? -1 : left > right ? 1 : 0);
