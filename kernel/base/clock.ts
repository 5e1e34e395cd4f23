import { milliseconds } from '@platform/sdk';

/** The one source of time and of repetition: a test advances it, nothing sleeps. */
export interface Clock {
  now(): Date;
  /** Runs `work` every `ms`; one run at a time, a slow run delays the next. */
  every(ms: number, work: () => Promise<void> | void): Disposable;
}

export const systemClock: Clock = {
  now: () => new Date(),
  every(ms, work) {
    let stopped = false;
    let timer: NodeJS.Timeout;
    const arm = () => {
      timer = setTimeout(async () => {
        try {
          await work();
        } finally {
          if (!stopped) arm();
        }
      }, ms);
      timer.unref();
    };
    arm();
    return {
      [Symbol.dispose]: () => {
        stopped = true;
        clearTimeout(timer);
      },
    };
  },
};

/** Resolves when `ms` have passed on the clock, or at once when the signal says so. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  using _timer = clock.every(ms, done);
  signal.addEventListener('abort', done, { once: true });
  await promise;
  signal.removeEventListener('abort', done);
}

/** A clock that moves only when told. */
export class ManualClock implements Clock {
  #now: number;
  readonly #repeats = new Set<{ ms: number; due: number; work: () => Promise<void> | void }>();

  constructor(start = Date.parse('2026-01-01T00:00:00.000Z')) {
    this.#now = start;
  }

  now(): Date {
    return new Date(this.#now);
  }

  every(ms: number, work: () => Promise<void> | void): Disposable {
    const repeat = { ms, due: this.#now + ms, work };
    this.#repeats.add(repeat);
    return { [Symbol.dispose]: () => this.#repeats.delete(repeat) };
  }

  /** Time passes that repeated work has no part in: each is as far from its next run as before. */
  pass(duration: string): void {
    const ms = milliseconds(duration);
    this.#now += ms;
    for (const repeat of this.#repeats) repeat.due += ms;
  }

  /** Time passes while the machine sleeps: everything that fell due meanwhile runs once. */
  async leap(duration: string): Promise<void> {
    this.#now += milliseconds(duration);
    for (const repeat of [...this.#repeats].filter(({ due }) => due <= this.#now).sort((left, right) => left.due - right.due)) {
      repeat.due = this.#now + repeat.ms;
      await repeat.work();
    }
  }

  /** Moves time and runs what falls due, in order. */
  async advance(duration: string): Promise<void> {
    const end = this.#now + milliseconds(duration);
    for (;;) {
      const next = [...this.#repeats].filter(({ due }) => due <= end).sort((left, right) => left.due - right.due)[0];
      if (!next) break;
      this.#now = next.due;
      next.due += next.ms;
      await next.work();
    }
    this.#now = end;
  }
}
