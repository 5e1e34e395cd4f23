import { setTimeout as delay } from 'node:timers/promises';
import { newId } from '@platform/kernel/base/ids';
import { check, type Violation } from './history/checker.ts';
import type { FaultStack } from './fault-stack.ts';
import { FAULTS, FILL_DISK, fillDisk } from './faults.ts';
import { History, nameOf, type Received, type Sent } from './history/history.ts';
import { Patience } from './patience.ts';
import { Seeded } from '@platform/kernel/test/seeded';

const PRODUCERS = 4;
/** The producer whose events the bus gives their keys. It goes on without an answer: nobody can send such an event again. */
const KEYLESS = 'p3';
const SHOPPERS = 2;
const CONSUMERS = 2;
const RETRY_MS = 20;
const COMMIT_MS = 1_000;
/** After this what was acknowledged and is not there counts as lost. */
const SETTLE_S = 90;
/** After this work that does not go on never will. */
const STUCK_S = 120;

export interface RunReport {
  readonly seed: number;
  readonly faults: readonly string[];
  readonly acknowledged: number;
  readonly received: number;
  readonly violations: readonly Violation[];
  readonly ms: number;
}

interface Entry {
  readonly message_id: string;
  readonly idempotency_key: string;
  readonly payload: { readonly producer: string; readonly n: number };
}

/** One run: producers and consumers at work in an environment of its own, faults among them, and the comparison at the end. */
export class FaultRun {
  readonly #stack: FaultStack;
  readonly #seed: number;
  readonly #seeded: Seeded;
  readonly #env = newId();
  readonly #history = new History();
  #working = true;

  constructor(stack: FaultStack, seed: number) {
    this.#stack = stack;
    this.#seed = seed;
    this.#seeded = new Seeded(seed);
  }

  /** With `only`, that fault and no other; else one to three, as the seed says. */
  async run(only?: string): Promise<RunReport> {
    const startedAt = performance.now();
    const faults = only ? [only] : Array.from({ length: this.#seeded.between(1, 3) }, () => this.#seeded.pick(Object.keys(FAULTS)));
    const producers = [
      ...Array.from({ length: PRODUCERS }, (_, index) => this.#produce(`p${index}`)),
      ...Array.from({ length: SHOPPERS }, (_, index) => this.#shop(`s${index}`)),
    ];
    const consumers = Array.from({ length: CONSUMERS }, (_, index) => this.#consume(`c${index}`));
    for (const fault of faults) {
      await this.#grow(this.#seeded.between(5, 60));
      await (fault === FILL_DISK ? fillDisk : FAULTS[fault])?.(this.#stack, this.#seeded, this.#history);
    }
    await this.#grow(20);
    this.#working = false;
    await Promise.all([...producers, ...consumers]);
    await this.#readStream();
    return {
      seed: this.#seed,
      faults,
      acknowledged: this.#history.acknowledged.size,
      received: this.#history.received.length,
      violations: check(this.#history),
      ms: Math.round(performance.now() - startedAt),
    };
  }

  /** Until so many more were acknowledged: work goes on, whatever was done to it. */
  async #grow(count: number): Promise<void> {
    const { acknowledged } = this.#history;
    using patience = new Patience(STUCK_S);
    for (const wanted = acknowledged.size + count; acknowledged.size < wanted; ) {
      if (patience.ended) throw new Error(`seed ${this.#seed}: nothing is acknowledged any more`);
      await delay(5);
    }
  }

  async #produce(producer: string): Promise<void> {
    for (let n = 0, turn = 0; this.#working; n++) {
      const sent: Sent = { producer, n, key: producer === KEYLESS ? undefined : newId() };
      this.#history.attempt(sent);
      let accepted = await this.#accepted(turn++, sent);
      if (!accepted && producer === KEYLESS) {
        await delay(RETRY_MS);
        continue;
      }
      for (; !accepted; accepted = await this.#accepted(turn++, sent)) {
        // An event that nobody answered for is sent again under its key before the next one: that is what the order is worth.
        await delay(RETRY_MS);
      }
      this.#history.acknowledge(sent);
    }
  }

  async #accepted(turn: number, { producer, n, key }: Sent): Promise<boolean> {
    const event = {
      event_type: 'platform:shop:order:created',
      env_id: this.#env,
      stream_family: 'app',
      payload: { producer, n },
      ...(key === undefined ? {} : { idempotency_key: key }),
    };
    const answer = await this.#stack.ask(turn, '/v1/produce', event).catch(() => undefined);
    if (answer && answer.status >= 400 && answer.status < 500 && answer.status !== 429)
      throw new Error(`produce answered ${answer.status} ${JSON.stringify(answer.json)}`);
    return answer?.status === 200;
  }

  async #shop(producer: string): Promise<void> {
    for (let n = 0; this.#working; n++) {
      const sent = { producer, n, key: newId() };
      this.#history.attempt(sent);
      while (!(await this.#stack.shop.commit(this.#env, sent, COMMIT_MS))) await delay(RETRY_MS);
      this.#history.acknowledge(sent);
    }
  }

  async #consume(consumer: string): Promise<void> {
    const group = { env_id: this.#env, stream_family: 'app', consumer_group: 'workers' };
    for (let turn = 0; this.#working; turn++) {
      const answer = await this.#stack.ask(turn, '/v1/consume', { ...group, consumer, count: 20, block_ms: 100 }).catch(() => undefined);
      if (answer?.status !== 200) {
        await delay(RETRY_MS);
        continue;
      }
      const entries = answer.json['entries'] as Entry[];
      for (const entry of entries) this.#history.receive(received(entry));
      if (entries.length === 0) continue;
      const message_ids = entries.map(({ message_id }) => message_id);
      const acked = await this.#stack.ask(turn, '/v1/ack', { ...group, message_ids }).catch(() => undefined);
      if (acked?.status === 200 && acked.json['acked'] === message_ids.length) for (const id of message_ids) this.#history.settled.add(id);
    }
  }

  /** All of the stream, by a group of its own, again from the start until everything acknowledged is there or time is up. */
  async #readStream(): Promise<void> {
    const { acknowledged, stream } = this.#history;
    const missing = new Set(acknowledged.keys());
    using patience = new Patience(SETTLE_S);
    for (let turn = 0; !patience.ended; turn++) {
      const group = { env_id: this.#env, stream_family: 'app', consumer_group: `checker-${turn}` };
      stream.length = 0;
      const left = new Set(missing);
      for (let asked = 0; ; asked++) {
        const answer = await this.#stack.ask(asked, '/v1/consume', { ...group, consumer: 'one', count: 100 }).catch(() => undefined);
        if (answer?.status !== 200) {
          await delay(RETRY_MS);
          break;
        }
        const entries = answer.json['entries'] as Entry[];
        stream.push(...entries.map(received));
        for (const { payload } of entries) left.delete(nameOf(payload));
        if (entries.length === 0) break;
      }
      if (left.size === 0) return;
      await delay(200);
    }
  }
}

const received = ({ message_id, idempotency_key, payload }: Entry): Received => ({
  message_id,
  key: idempotency_key,
  producer: payload.producer,
  n: payload.n,
});
