import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Deadline } from './deadline.ts';

describe('a deadline', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('ends when its time is up, as AbortSignal.timeout does', () => {
    using deadline = new Deadline(1_000);
    vi.advanceTimersByTime(999);
    expect(deadline.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(deadline.signal.reason).toMatchObject({ name: 'TimeoutError' });
  });

  test('ends with another signal, for its reason', () => {
    const [outer, reason] = [new AbortController(), new Error('the caller has gone')];
    using deadline = new Deadline(1_000, outer.signal);
    outer.abort(reason);
    expect(deadline.signal.reason).toBe(reason);
    using late = new Deadline(1_000, outer.signal);
    expect(late.signal.reason).toBe(reason);
  });

  test('leaves nothing behind: no timer, and nobody who listens to a signal that lasts', () => {
    const outer = new AbortController();
    const deadline = new Deadline(1_000, outer.signal);
    expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1);
    deadline[Symbol.dispose]();
    expect(getEventListeners(outer.signal, 'abort')).toHaveLength(0);
    expect(vi.getTimerCount()).toBe(0);
    outer.abort();
    expect(deadline.signal.aborted).toBe(false);
  });
});
