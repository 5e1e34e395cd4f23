import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Problem } from '../../api/gateway/problem.ts';
import { Reading, type Shown } from './reading.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const problem = (status: number, retryAfter?: number) =>
  new Problem({ status, code: 'x', title: `The answer was ${status}`, correlationId: 'c', retryAfter });

/** A reading whose answers the test gives, one after the other. */
function started() {
  const asked: { answer(text: string): Promise<void>; fail(error: unknown): Promise<void>; signal: AbortSignal }[] = [];
  const shown: Shown<string>[] = [];
  const page = { seen: true, changed: () => undefined as void };
  const reading = new Reading<string>({
    load: signal =>
      new Promise((resolve, reject) => {
        const settled = () => vi.advanceTimersByTimeAsync(0).then(() => undefined);
        asked.push({ signal, answer: text => (resolve(text), settled()), fail: error => (reject(error), settled()) });
      }),
    show: now => shown.push(now),
    sight: { visible: () => page.seen, watch: changed => ((page.changed = changed), () => undefined) },
    random: () => 0.5,
  });
  reading.read();
  return { asked, shown, page, reading };
}

test('H-22 a flood of askings during a reading is one more, and every answer is shown', async () => {
  const { asked, shown, reading } = started();
  for (let i = 0; i < 50; i++) reading.read();
  expect(asked).toHaveLength(1);
  await asked[0]?.answer('old');
  expect(shown.some(({ data }) => data === 'old')).toBe(true);
  expect(asked).toHaveLength(2);
  await asked[1]?.answer('new');
  expect(shown.at(-1)).toEqual({ data: 'new', problem: undefined, loading: false });
  expect(asked).toHaveLength(2);
});

test('H-22 a reading that failed is tried again after 2, 5, 15, then every 30 seconds, and what was there stays', async () => {
  const { asked, shown, reading } = started();
  await asked[0]?.answer('there');
  reading.read();
  for (const pause of [2, 5, 15, 30, 30]) {
    await asked.at(-1)?.fail(problem(503));
    expect(shown.at(-1)).toMatchObject({ data: 'there', problem: { status: 503 }, loading: false });
    const before = asked.length;
    await vi.advanceTimersByTimeAsync(pause * 1000 - 1);
    expect(asked).toHaveLength(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked).toHaveLength(before + 1);
    // What went wrong stays on screen until an answer is there.
    expect(shown.at(-1)).toMatchObject({ data: 'there', problem: { status: 503 }, loading: true });
  }
  await asked.at(-1)?.answer('new');
  expect(shown.at(-1)).toEqual({ data: 'new', problem: undefined, loading: false });
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(asked).toHaveLength(before);
  // And the next trouble begins with a short pause again.
  reading.read();
  await asked.at(-1)?.fail(problem(0));
  await vi.advanceTimersByTimeAsync(2000);
  expect(asked).toHaveLength(before + 2);
});

test('H-22 a page that nobody looks at waits until somebody does', async () => {
  const { asked, page } = started();
  page.seen = false;
  await asked[0]?.fail(problem(0));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(1);
  page.seen = true;
  page.changed();
  expect(asked).toHaveLength(2);
  page.changed();
  expect(asked).toHaveLength(2);
});

test('a refusal empties the screen and is asked about no more; who is asked for patience has it', async () => {
  const { asked, shown, reading } = started();
  await asked[0]?.answer('there');
  reading.read();
  await asked[1]?.fail(problem(429, 20));
  expect(shown.at(-1)).toMatchObject({ data: 'there', problem: { status: 429 } });
  await vi.advanceTimersByTimeAsync(19_999);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  await asked[2]?.fail(problem(403));
  expect(shown.at(-1)).toMatchObject({ data: undefined, problem: { status: 403 }, loading: false });
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked).toHaveLength(3);
});

test('a gateway that never answers is away after a minute, and an ended reading shows nothing and tries nothing', async () => {
  const { asked, shown, reading } = started();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked[0]?.signal.aborted).toBe(true);
  expect(shown.at(-1)).toMatchObject({ data: undefined, problem: { code: 'unreachable' }, loading: false });
  await vi.advanceTimersByTimeAsync(2000);
  expect(asked).toHaveLength(2);
  const before = shown.length;
  reading[Symbol.dispose]();
  expect(asked[1]?.signal.aborted).toBe(true);
  await asked[1]?.fail(problem(503));
  reading.read();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([asked.length, shown.length]).toEqual([2, before]);
});
