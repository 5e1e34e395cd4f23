import type { Gap } from '../../contract/schema/consumption.ts';
import type { EventBusContext } from '../context.ts';
import { gapsKey, shownStream, type StreamRef } from '../stream/names.ts';

/** A gap as the trimmer left it. */
interface Kept {
  readonly ref: StreamRef;
  readonly group: string;
  readonly text: string;
}

const FORGET = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0`;

/** The name of a group's gap among those of its environment. */
export const gapField = (family: string, group: string): string => `${family}\n${group}`;

/**
 * What retention cut before a group had read it (H-22), so that nobody loses events in silence. Written by the script that cuts, told to
 * the group with its next read. Life: cut → (grown)* → told.
 */
export class Gaps {
  readonly #kv: EventBusContext['kv'];

  constructor({ kv }: EventBusContext) {
    this.#kv = kv;
  }

  /** Gaps of a group on streams, and the promise to forget them once they are told. */
  async of(refs: readonly StreamRef[], group: string): Promise<{ gaps: Gap[]; told: () => Promise<void> }> {
    const answers = await this.#kv.pipeline(refs.map(({ env, family }) => ['HGET', gapsKey(env), gapField(family, group)]));
    const kept: Kept[] = refs.flatMap((ref, index) => (typeof answers[index] === 'string' ? [{ ref, group, text: answers[index] }] : []));
    return {
      gaps: kept.map(({ ref, text }) => {
        const { after, through } = JSON.parse(text) as { after: string; through: string };
        return { stream: shownStream(ref), env_id: ref.env, stream_family: ref.family, group, after, through };
      }),
      // One that has grown since is told again.
      told: async () =>
        void (await this.#kv.pipeline(
          kept.map(({ ref, text }) => ['EVAL', FORGET, 1, gapsKey(ref.env), gapField(ref.family, group), text]),
        )),
    };
  }
}
