import type { Appender } from './appender.ts';
import type { EventBusContext } from './context.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Inbox } from './inbox.ts';
import { MARKER_KEY } from './names.ts';

const ROWS_PER_PASS = 1_000;
const PASSES_PER_DRAIN = 1_000;
const RETRY_MS = 1_000;

/** Moves the marker on, unless it was written in another life of the store; then answers that life's marker. */
const ADVANCE = `
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local marker = redis.call('GET', KEYS[1])
if ARGV[2] == 'settle' or (marker and string.sub(marker, 1, #run) == run) then
  redis.call('SET', KEYS[1], run .. ':' .. ARGV[1])
  return {run, ''}
end
return {run, marker or 'none'}`;

/**
 * Appends accepted rows that are on no stream: their process died, the store was away, or the store came back without them.
 * The marker is a key in the store itself: what was appended before its time is there as long as the marker is, however the store saves.
 */
export class InboxRelay {
  readonly #ctx: EventBusContext;
  readonly #inbox: Inbox;
  readonly #appender: Appender;
  readonly #commit: GroupCommit;
  readonly #closing = new AbortController();
  #draining: Promise<void> | undefined;
  #again = false;

  constructor(ctx: EventBusContext, inbox: Inbox, appender: Appender, commit: GroupCommit) {
    this.#ctx = ctx;
    this.#inbox = inbox;
    this.#appender = appender;
    this.#commit = commit;
  }

  /** Begins to hear of rows that other processes give up. */
  async listen(): Promise<AsyncDisposable> {
    const listening = await this.#ctx.db.listen('bus_inbox', () => void this.drain().catch(error => this.#ctx.log.warn({ err: error }, 'the inbox cannot be relayed')));
    return {
      [Symbol.asyncDispose]: async () => {
        this.#closing.abort();
        await listening[Symbol.asyncDispose]();
        await this.#draining?.catch(() => undefined);
      },
    };
  }

  /** The safety poll: looks whether the store has lost its memory, then appends what is due. */
  async poll(signal: AbortSignal): Promise<void> {
    await this.#mind(signal);
    await this.drain(signal);
    await this.#commit.flush();
  }

  /** Until nothing is due. One at a time in a process; across processes the leases keep rows apart. */
  async drain(signal: AbortSignal = this.#closing.signal): Promise<void> {
    if (this.#draining) {
      this.#again = true;
      return this.#draining;
    }
    this.#draining = this.#passes(signal);
    return this.#draining;
  }

  async #passes(signal: AbortSignal): Promise<void> {
    try {
      await this.#inPasses(signal);
    } finally {
      this.#draining = undefined;
    }
  }

  async #inPasses(signal: AbortSignal): Promise<void> {
    for (let pass = 0; pass < PASSES_PER_DRAIN && !signal.aborted && !this.#closing.signal.aborted; pass++) {
      this.#again = false;
      const rows = await this.#inbox.lease(ROWS_PER_PASS);
      const answers = await this.#appender.append(rows);
      const failed = rows.filter((row, index) => {
        const answer = answers[index];
        if (typeof answer !== 'string') return true;
        this.#commit.appended(row, answer);
        return false;
      });
      if (failed.length > 0) {
        this.#ctx.log.warn({ rows: failed.length, err: answers.find(answer => answer instanceof Error) }, 'rows are not appended yet');
        return this.#inbox.release(failed, { afterMs: RETRY_MS });
      }
      if (rows.length < ROWS_PER_PASS && !this.#again) break;
    }
    await this.#commit.flush();
  }

  /** Every server of the store has a life of its own, and a marker that says which. */
  async #mind(signal: AbortSignal): Promise<void> {
    const { kv, log } = this.#ctx;
    const tags = kv.shardTags();
    const markers = tags.length === 0 ? [MARKER_KEY] : tags.map(tag => `${MARKER_KEY}:{${tag}}`);
    // Our clock is the database's, read before the marker is written: a row marked earlier was appended earlier.
    const now = await this.#inbox.now();
    const advance = async (marker: string, how: string): Promise<string> => ((await kv.call('EVAL', ADVANCE, 1, marker, now, how)) as [string, string])[1];
    const begun: { marker: string; from: string }[] = [];
    for (const marker of markers) {
      const before = await advance(marker, '');
      if (before !== '') begun.push({ marker, from: before === 'none' ? '' : before.slice(before.indexOf(':') + 1) });
    }
    if (begun.length === 0) return;
    // The earliest of them: what lies on the other servers is appended twice, which consumers bear.
    const from = begun.map(life => life.from).sort()[0] || undefined;
    await this.#inbox.fenceUnmarked();
    let rows = 0;
    for (let reopened = -1; reopened !== 0; rows += reopened) {
      reopened = await this.#inbox.reopen(from, now);
      if (signal.aborted) return;
    }
    // Nothing to say on a first start: the life is new, but nothing was lost.
    if (rows > 0) log.warn({ servers: begun.length, from: from ?? 'the beginning', rows }, 'the store has begun a new life; what it may have lost is appended again');
    for (const { marker } of begun) await advance(marker, 'settle');
  }
}
