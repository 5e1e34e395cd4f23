/** The relay's only source of time. */
export interface RelayClock {
  now(): Date;
  /** Calls `run` once after `ms`; the answer cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** The machine's time. Its timers keep no process alive. */
export const systemClock: RelayClock = {
  now: () => new Date(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
