import type { EventBusContext } from '../context.ts';
import { APPENDED_CHANNEL, type StreamRef } from './names.ts';

/**
 * Tells who waits that something was appended: at once in this process, by one message per batch in all others.
 * Life: opened → (announced)* → closed, which wakes everybody.
 */
export class Wake implements AsyncDisposable {
  /** Who says it, so that a process does not wake itself twice. */
  readonly origin: string;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #heard = new Set<(ref: StreamRef) => void>();
  #subscription: AsyncDisposable | undefined;
  #closed = false;

  private constructor(origin: string) {
    this.origin = origin;
  }

  static async open({ kv, platform }: EventBusContext): Promise<Wake> {
    const wake = new Wake(platform.newId());
    wake.#subscription = await kv.subscribe(APPENDED_CHANNEL, message => wake.#receive(message));
    return wake;
  }

  /** The command that tells the other processes; it goes into the pipeline of the append. */
  announcement(refs: readonly StreamRef[]): readonly [string, string, string] {
    return ['PUBLISH', APPENDED_CHANNEL, JSON.stringify({ origin: this.origin, refs: refs.map(({ env, family }) => [env, family]) })];
  }

  announce(refs: readonly StreamRef[]): void {
    for (const ref of refs) for (const listener of this.#heard) listener(ref);
    for (const ref of refs) this.nudge(ref.family, ref.env);
  }

  /** Wakes those who wait for the family, all of them or those of one environment. */
  nudge(family: string, env?: string): void {
    for (const waiter of this.#waiters.get(family) ?? []) if (env === undefined || waiter.env === '*' || waiter.env === env) waiter.wake();
  }

  /** Calls `listener` for every append that is heard of. */
  onAppend(listener: (ref: StreamRef) => void): Disposable {
    this.#heard.add(listener);
    return { [Symbol.dispose]: () => this.#heard.delete(listener) };
  }

  /** Begin before reading: what is appended meanwhile ends the next wait at once. Waits no more when the caller has gone. */
  waiter(family: string, env: string, signal: AbortSignal): Waiter {
    const waiters = this.#waiters.get(family) ?? new Set();
    this.#waiters.set(family, waiters);
    const waiter = new Waiter(env, signal, () => {
      waiters.delete(waiter);
      if (waiters.size === 0) this.#waiters.delete(family);
    });
    waiters.add(waiter);
    if (this.#closed) waiter.close();
    return waiter;
  }

  #receive(message: string): void {
    const { origin, refs } = JSON.parse(message) as { origin: string; refs: [string, string][] };
    if (origin !== this.origin) this.announce(refs.map(([env, family]) => ({ env, family })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.close();
    await this.#subscription?.[Symbol.asyncDispose]();
  }
}

export class Waiter implements Disposable {
  readonly env: string;
  readonly #signal: AbortSignal;
  readonly #leave: () => void;
  /**
   * Heard once for all waits: a listener that comes and goes with each is a thousand a second, on a signal that lasts as long as its
   * stream.
   */
  readonly #gone = (): void => this.rouse();
  #woken = false;
  #appended = false;
  #closed = false;
  #resume: (() => void) | undefined;

  constructor(env: string, signal: AbortSignal, leave: () => void) {
    this.env = env;
    this.#signal = signal;
    this.#leave = leave;
    signal.addEventListener('abort', this.#gone, { once: true });
  }

  /** Whether waiting has no point any more: the bus is closing. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Something was appended. */
  wake(): void {
    this.#appended = true;
    this.rouse();
  }

  /** Ends the wait for another reason. */
  rouse(): void {
    this.#woken = true;
    this.#resume?.();
  }

  close(): void {
    this.#closed = true;
    this.rouse();
  }

  /** Whether something was appended since this was last asked. */
  takeAppended(): boolean {
    const appended = this.#appended;
    this.#appended = false;
    return appended;
  }

  /** Until something was appended, `ms` have passed (for ever, without) or the caller has gone. */
  async wait(ms?: number): Promise<void> {
    if (!this.#woken && !this.#signal.aborted && (ms === undefined || ms > 0)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#resume = resolve;
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
      this.#resume = undefined;
    }
    this.#woken = this.#closed;
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#gone);
    this.#leave();
  }
}
