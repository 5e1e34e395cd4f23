import { type Appended, AppendScript } from './append-script.ts';
import { environmentsKey, FAMILIES_KEY, type StreamRef } from './names.ts';
import type { StoreLife } from '../upkeep/store-life.ts';
import type { Wake } from './wake.ts';

const ROWS_PER_PIPELINE = 512;
const BYTES_PER_PIPELINE = 4 * 1_048_576;

/** Puts envelopes on their streams, in their order, and tells who waits for them. */
export class Appender {
  readonly #life: StoreLife;
  readonly #wake: Wake;

  constructor(life: StoreLife, wake: Wake) {
    this.#life = life;
    this.#wake = wake;
  }

  /**
   * The id of every entry, or why there is none; what failed may still have arrived. Only who makes a new life of the store whole,
   * `mending`, appends to one that is not.
   */
  async append(rows: readonly Appended[], { mending = false } = {}): Promise<(string | Error)[]> {
    const answers: (string | Error)[] = [];
    const known = mending || (await this.#life.isWhole().catch(() => false));
    for (let start = 0; start < rows.length; ) {
      let end = start;
      for (let bytes = 0; end < rows.length && end - start < ROWS_PER_PIPELINE && (end === start || bytes < BYTES_PER_PIPELINE); end++)
        bytes += (rows[end] as Appended).envelope.payload.length;
      // Asked in the turn that sends: a store that has ended since then is not written to.
      if (known && (mending || this.#life.whole)) answers.push(...(await this.#pipeline(rows.slice(start, end))));
      else answers.push(...rows.slice(start, end).map(() => new Error('the store has begun a new life and is being made whole')));
      start = end;
    }
    return answers;
  }

  /** Commands that make streams known to readers of whole families. They precede every append: the store may have forgotten. */
  static known(refs: readonly StreamRef[]): string[][] {
    return [...new Set(refs.map(({ family }) => family))].flatMap(family => [
      ['SADD', FAMILIES_KEY, family],
      ['SADD', environmentsKey(family), ...new Set(refs.filter(ref => ref.family === family).map(({ env }) => env))],
    ]);
  }

  async #pipeline(rows: readonly Appended[]): Promise<(string | Error)[]> {
    const refs = distinct(rows);
    const known = Appender.known(refs);
    const script = new AppendScript(rows);
    try {
      const answers = await this.#life.appends.pipeline([...known, ...script.commands, this.#wake.announcement(refs)]);
      const unknown = answers.slice(0, known.length).find(answer => answer instanceof Error);
      const ids = unknown instanceof Error ? rows.map(() => unknown) : script.idsOf(answers.slice(known.length));
      this.#wake.announce(refs);
      return ids;
    } catch (error) {
      return rows.map(() => (error instanceof Error ? error : new Error('the pipeline failed')));
    }
  }
}

export function distinct(rows: readonly StreamRef[]): StreamRef[] {
  const refs = new Map<string, StreamRef>();
  let last: StreamRef | undefined;
  for (const row of rows) {
    // Mostly they go where the one before went.
    if (row.env === last?.env && row.family === last.family) continue;
    last = row;
    refs.set(`${row.env}:${row.family}`, { env: row.env, family: row.family });
  }
  return [...refs.values()];
}
