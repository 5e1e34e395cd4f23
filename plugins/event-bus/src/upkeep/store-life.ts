import type { KeyValue } from '@platform/sdk';
import { MARKER_KEY } from '../stream/names.ts';

/** What a server of the store was asked after began: another life than its marker was written in. */
export interface Begun {
  readonly marker: string;
  readonly run: string;
  /** Up to when the marker says that everything is there; empty when there is none. */
  readonly from: string;
}

/**
 * `look` answers the server's run and what its marker says of another one; `advance` also moves the marker of this run on; `settle` writes
 * it for the run that was made whole, unless that one has ended meanwhile.
 */
const MARKER = `
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local marker = redis.call('GET', KEYS[1])
local same = marker and string.sub(marker, 1, #run) == run
if (ARGV[1] == 'settle' and ARGV[3] == run) or (ARGV[1] == 'advance' and same) then
  redis.call('SET', KEYS[1], run .. ':' .. ARGV[2])
  same = true
end
return {run, same and '' or marker or 'none'}`;

/**
 * Whether the store still is the one that was made whole. Every server keeps a marker in itself: what was appended before its time is there
 * as long as the marker is, however the store saves. Until a new life is made whole, nothing new is appended to it: it would come before
 * what was lost.
 */
export class StoreLife {
  readonly #kv: KeyValue;
  /** A connection whose commands are sent once: what is under way when the store ends must not arrive in its next life. */
  readonly appends: KeyValue;
  #whole = -1;

  private constructor(kv: KeyValue, appends: KeyValue) {
    this.#kv = kv;
    this.appends = appends;
  }

  /** The second part is the caller's to dispose of. */
  static async open(kv: KeyValue): Promise<{ life: StoreLife; connection: AsyncDisposable }> {
    const connection = await kv.once();
    return { life: new StoreLife(kv, connection), connection };
  }

  /** True as long as the connection on which the life was seen to be whole stands. */
  get whole(): boolean {
    return this.#whole === this.appends.epoch();
  }

  /** Looks, where it is not known. */
  async isWhole(): Promise<boolean> {
    if (this.whole) return true;
    const epoch = this.appends.epoch();
    if ((await this.#ask('look', '')).length > 0) return false;
    this.#whole = epoch;
    return this.whole;
  }

  /** Servers that have begun a new life; the markers of the others now say `now`. */
  begun(now: string): Promise<Begun[]> {
    return this.#ask('advance', now);
  }

  /**
   * Whether what these lives may have lost is already due to be appended again: a mending that was cut short goes on, and does not begin
   * anew.
   */
  async isMending(lives: readonly Begun[]): Promise<boolean> {
    const runs = await this.#kv.pipeline(lives.map(({ marker }) => ['GET', mendingKey(marker)]));
    return lives.every(({ run }, index) => runs[index] === run);
  }

  async mend(lives: readonly Begun[]): Promise<void> {
    for (const { marker, run } of lives) await this.#kv.call('SET', mendingKey(marker), run);
  }

  /** These lives are whole. One that has ended meanwhile is not, and is found by the next look. */
  async settle(lives: readonly Begun[], now: string): Promise<void> {
    for (const { marker, run } of lives) await this.#kv.call('EVAL', MARKER, 1, marker, 'settle', now, run);
  }

  async #ask(how: 'look' | 'advance', now: string): Promise<Begun[]> {
    const tags = this.#kv.shardTags();
    const begun: Begun[] = [];
    for (const marker of tags.length === 0 ? [MARKER_KEY] : tags.map(tag => `${MARKER_KEY}:{${tag}}`)) {
      const [run, before] = (await this.#kv.call('EVAL', MARKER, 1, marker, how, now, '')) as [string, string];
      if (before !== '') begun.push({ marker, run, from: before === 'none' ? '' : before.slice(before.indexOf(':') + 1) });
    }
    return begun;
  }
}

/** In the store itself, like the marker: the next life has lost it, or finds another run in it. */
const mendingKey = (marker: string): string => `${marker}:mending`;
