import type { EventBusContext } from './context.ts';
import { type StreamRef, streamKey } from './names.ts';

/** What became of each id of a call. */
export interface Settled {
  readonly done: readonly string[];
  readonly lost: readonly string[];
}

/** Whether an entry is pending, and for the consumer of the call where it named one: then it is still the caller's. Scripts begin with it. */
export const HELD = `
local function held(key, group, consumer, id)
  local ok, rows = pcall(redis.call, 'XPENDING', key, group, id, id, 1)
  if not ok or rows.err or #rows == 0 then return false end
  return consumer == '' or rows[1][2] == consumer
end`;

const ACK = `${HELD}
local answers = {}
for i = 3, #ARGV do
  answers[i - 2] = held(KEYS[1], ARGV[1], ARGV[2], ARGV[i]) and redis.call('XACK', KEYS[1], ARGV[1], ARGV[i]) or 0
end
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
    const answers = (await this.#kv.call('EVAL', script, 1, streamKey(ref), group, consumer, ...ids)) as number[];
    return { done: ids.filter((_, index) => Number(answers[index]) > 0), lost: ids.filter((_, index) => !(Number(answers[index]) > 0)) };
  }
}
