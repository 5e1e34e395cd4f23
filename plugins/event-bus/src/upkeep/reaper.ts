import { MAX_NACKS } from '../../contract/schema/event.ts';
import { Appender, distinct } from '../stream/appender.ts';
import type { EventBusContext } from '../context.ts';
import type { DeadLetters } from '../consume/dead-letters.ts';
import { type Envelope, fieldsOf } from '../stream/entry.ts';
import { QUEUED_KEY, retryKey, type StreamRef, streamKey } from '../stream/names.ts';
import type { InboxRelay } from '../inbox/relay.ts';
import type { Schedule } from '../schedule/schedule.ts';
import type { RetryRecord } from '../consume/settlement.ts';
import type { Wake } from '../stream/wake.ts';

const RECORDS_PER_ROUND = 100;
const ROUNDS = 100;

const REAPPEND = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return false end
return redis.call('XADD', KEYS[2], '*', unpack(ARGV, 2))`;

/**
 * Puts due retries back on their stream, for the group that refused them alone, or aside when no try is left; and moves delayed events
 * whose time has come into the inbox. Every step is one script or statement that takes before it gives: however many reap, each goes once.
 */
export class Reaper {
  readonly #ctx: EventBusContext;
  readonly #wake: Wake;
  readonly #deadLetters: DeadLetters;
  readonly #schedule: Schedule;
  readonly #relay: InboxRelay;

  constructor(ctx: EventBusContext, parts: { wake: Wake; deadLetters: DeadLetters; schedule: Schedule; relay: InboxRelay }) {
    this.#ctx = ctx;
    this.#wake = parts.wake;
    this.#deadLetters = parts.deadLetters;
    this.#schedule = parts.schedule;
    this.#relay = parts.relay;
  }

  async reap(signal: AbortSignal): Promise<void> {
    await this.#deliverDue(signal);
    for (const env of (await this.#ctx.kv.call('SMEMBERS', QUEUED_KEY)) as string[]) {
      if (signal.aborted) return;
      await this.#environment(env, signal);
    }
  }

  async #deliverDue(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#ctx;
    try {
      let moved = 0;
      for (let rows = -1, round = 0; rows !== 0 && round < ROUNDS && !signal.aborted; round++, moved += rows)
        rows = await this.#schedule.moveDue(clock.now());
      // Sooner than the relay's own poll, which appends what is left here.
      if (moved > 0) await this.#relay.drain(signal);
    } catch (error) {
      log.warn({ err: error }, 'delayed events wait for the next pass');
    }
  }

  async #environment(env: string, signal: AbortSignal): Promise<void> {
    const { kv, clock, log } = this.#ctx;
    for (let round = 0; round < ROUNDS && !signal.aborted; round++) {
      const due = (await kv.call(
        'ZRANGE',
        retryKey(env),
        '-inf',
        clock.now().getTime(),
        'BYSCORE',
        'LIMIT',
        0,
        RECORDS_PER_ROUND,
      )) as string[];
      if (due.length === 0) return;
      const again: { ref: StreamRef; command: (string | number)[] }[] = [];
      for (const member of due) {
        const record = JSON.parse(member) as RetryRecord;
        const ref: StreamRef = { env, family: record.family };
        const { history } = record;
        const attempts = history.length;
        if (attempts >= MAX_NACKS) {
          const reason = `retries_exhausted: ${history.at(-1)?.reason ?? ''}`;
          await this.#deadLetters.buryRetry(member, { ref, id: record.id, envelope: record.envelope, deliveries: 1 }, record.group, {
            reason,
            history,
            attempts,
            consumer: '',
          });
          continue;
        }
        const copy: Envelope = { ...record.envelope, nacks: String(attempts), only_group: record.group, history: JSON.stringify(history) };
        again.push({ ref, command: ['EVAL', REAPPEND, 2, retryKey(env), streamKey(ref), member, ...fieldsOf(copy)] });
      }
      if (again.length === 0) continue;
      const refs = distinct(again.map(({ ref }) => ref));
      const answers = await kv.pipeline([...Appender.known(refs), ...again.map(({ command }) => command), this.#wake.announcement(refs)]);
      this.#wake.announce(refs);
      const fault = answers.find(answer => answer instanceof Error);
      if (fault) return void log.warn({ env_id: env, err: fault }, 'due retries wait for the next pass');
    }
  }
}
