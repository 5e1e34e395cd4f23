import { BoundedMap } from '@platform/sdk';
import type { EventBusContext } from '../context.ts';
import { gapField } from './gaps.ts';
import { environmentsKey, FAMILIES_KEY, gapsKey, groupsKey, PROCESS_GROUPS_KEY, type StreamRef, streamKey } from '../stream/names.ts';

const TOUCH_MS = 300_000;
const IDLE_GROUP_MS = 3_600_000;
const KEYS_PER_PIPELINE = 500;

/**
 * Consumer groups that span the environments of a family. A group has one beginning, fixed when it is first seen: on a stream that was
 * there it starts at that moment or at the earliest entry, on one that appears later every entry is younger, so it starts at the first.
 */
export class Groups {
  readonly #ctx: EventBusContext;
  readonly #positions = new BoundedMap<string, string>(10_000);
  readonly #touched = new BoundedMap<string, number>(10_000);

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
  }

  /** The group's beginning; remembered here as well, so that it survives a store that forgot. */
  async position(family: string, group: string, start: 'earliest' | 'latest', again = false): Promise<string> {
    const name = `${family}\n${group}`;
    const known = this.#positions.get(name);
    if (known !== undefined && !again) return known;
    const { kv } = this.#ctx;
    const wanted = known ?? (start === 'earliest' ? '0' : `${await this.#storeMs()}-18446744073709551615`);
    await kv.call('HSETNX', groupsKey(family), group, wanted);
    const position = String((await kv.call('HGET', groupsKey(family), group)) ?? wanted);
    this.#positions.set(name, position);
    return position;
  }

  /** Creates the group where it is missing; harmless where it is not. */
  async create(refs: readonly StreamRef[], group: string, position: string): Promise<void> {
    const answers = await this.#ctx.kv.pipeline(refs.map(ref => ['XGROUP', 'CREATE', streamKey(ref), group, position, 'MKSTREAM']));
    for (const answer of answers) if (answer instanceof Error && !answer.message.startsWith('BUSYGROUP')) throw answer;
  }

  /** Remembers that a process's own group is in use. */
  async touch(family: string, group: string): Promise<void> {
    const name = `${family}\n${group}`;
    const now = this.#ctx.clock.now().getTime();
    if (now - (this.#touched.get(name) ?? Number.NEGATIVE_INFINITY) < TOUCH_MS) return;
    this.#touched.set(name, now);
    await this.#ctx.kv.call('ZADD', PROCESS_GROUPS_KEY, now, name);
  }

  /** Destroys the group on every stream of the family; answers on how many it was. */
  async close(family: string, group: string): Promise<number> {
    const { kv } = this.#ctx;
    const envs = (await kv.call('SMEMBERS', environmentsKey(family))) as string[];
    let closed = 0;
    for (let start = 0; start < envs.length; start += KEYS_PER_PIPELINE) {
      const some = envs.slice(start, start + KEYS_PER_PIPELINE);
      const answers = await kv.pipeline([
        ...some.map(env => ['XGROUP', 'DESTROY', streamKey({ env, family }), group]),
        ...some.map(env => ['HDEL', gapsKey(env), gapField(family, group)]),
      ]);
      closed += answers.slice(0, some.length).filter(answer => Number(answer) === 1).length;
    }
    await kv.pipeline([
      ['HDEL', groupsKey(family), group],
      ['ZREM', PROCESS_GROUPS_KEY, `${family}\n${group}`],
    ]);
    this.#positions.delete(`${family}\n${group}`);
    this.#touched.delete(`${family}\n${group}`);
    return closed;
  }

  /** Destroys the groups of these services on every family. */
  async forget(services: readonly string[]): Promise<void> {
    const gone = new Set(services);
    const { kv } = this.#ctx;
    for (const family of (await kv.call('SMEMBERS', FAMILIES_KEY)) as string[])
      for (const group of (await kv.call('HKEYS', groupsKey(family))) as string[])
        if (gone.has(group.split(/[.-]/, 1)[0] as string)) await this.close(family, group);
  }

  /** Destroys groups whose process has not come back for an hour (H-24). */
  async sweep(signal: AbortSignal): Promise<void> {
    const { kv, clock, log } = this.#ctx;
    const idle = (await kv.call(
      'ZRANGE',
      PROCESS_GROUPS_KEY,
      '-inf',
      clock.now().getTime() - IDLE_GROUP_MS,
      'BYSCORE',
      'LIMIT',
      0,
      1_000,
    )) as string[];
    for (const name of idle) {
      if (signal.aborted) return;
      const [family, group] = name.split('\n') as [string, string];
      await this.close(family, group);
    }
    if (idle.length > 0) log.info({ groups: idle.length }, 'groups of ended processes were destroyed');
  }

  async #storeMs(): Promise<number> {
    const [seconds, micros] = (await this.#ctx.kv.call('TIME')) as [string, string];
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  }
}
