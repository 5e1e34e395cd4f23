import { describe, expect, test, vi } from 'vitest';
import { backoff } from './backoff.ts';
import { milliseconds } from '@platform/sdk';
import { ManualClock } from './clock.ts';
import { DisposalStack } from './disposal-stack.ts';
import { newId } from './ids.ts';
import { KERNEL_PROBLEMS, kernelProblem } from './kernel-problem.ts';

describe('a disposal stack', () => {
  test('releases newest first and one after the other', async () => {
    const order: string[] = [];
    const stack = new DisposalStack();
    stack.own({ [Symbol.dispose]: () => void order.push('first') });
    stack.defer(async () => {
      order.push('second begins');
      await Promise.resolve();
      order.push('second ends');
    });
    const third = stack.own({ [Symbol.asyncDispose]: async () => void order.push('third') });
    expect(third).toBeDefined();
    await stack[Symbol.asyncDispose]();
    await stack[Symbol.asyncDispose]();
    expect(order).toEqual(['third', 'second begins', 'second ends', 'first']);
  });

  test('a failing release keeps none of the others open and is told at the end', async () => {
    const order: string[] = [];
    const stack = new DisposalStack();
    stack.defer(() => void order.push('one'));
    stack.defer(() => Promise.reject(new Error('two')));
    stack.own({
      [Symbol.dispose]: () => {
        throw new Error('three');
      },
    });
    const failure = await stack[Symbol.asyncDispose]().catch((error: unknown) => error as AggregateError);
    expect((failure as AggregateError).errors.map(error => (error as Error).message)).toEqual(['three', 'two']);
    expect(order).toEqual(['one']);
  });
});

test('ids are UUIDs of version 7 in the order they were made, with the time in them, and no byte of two of them is drawn twice', () => {
  const ids = Array.from({ length: 20_000 }, () => newId());
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids.map(id => id.slice(19))).size).toBe(ids.length);
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2100-01-01T00:00:00.123Z') });
  expect(newId().slice(0, 13)).toBe(`${Date.now().toString(16).padStart(12, '0').replace(/^.{8}/, '$&-')}`);
});

test('durations are read in their units, and nothing else is one', () => {
  expect(['250ms', '10s', '5m', '2h', '7d'].map(milliseconds)).toEqual([250, 10_000, 300_000, 7_200_000, 604_800_000]);
  for (const wrong of ['10', 's', '1.5s', '-1s', '1 s', '1w', '']) expect(() => milliseconds(wrong)).toThrow('not a duration');
});

test('a manual clock runs what falls due, in its order, and stops what was disposed', async () => {
  const clock = new ManualClock(0);
  const ran: string[] = [];
  clock.every(2_000, () => void ran.push(`two at ${clock.now().getTime()}`));
  const three = clock.every(3_000, () => void ran.push(`three at ${clock.now().getTime()}`));
  await clock.advance('4s');
  three[Symbol.dispose]();
  await clock.advance('2s');
  expect(ran).toEqual(['two at 2000', 'three at 3000', 'two at 4000', 'two at 6000']);
  clock.pass('1h');
  await clock.advance('1s');
  expect([ran.length, clock.now().getTime()]).toEqual([4, 3_607_000]);
  await clock.advance('1s');
  expect(ran.at(-1)).toBe('two at 3608000');
});

test('a backoff doubles to its cap, and jitter only shortens it', () => {
  expect([0, 1, 2, 3, 40].map(attempt => backoff(attempt, { baseMs: 100, capMs: 500 }))).toEqual([100, 200, 400, 500, 500]);
  for (let round = 0; round < 50; round++) expect(backoff(2, { baseMs: 100, capMs: 500, jitter: true })).toBeLessThanOrEqual(400);
});

test('every kernel refusal has its status, and 401 and 503 the header that goes with it', () => {
  for (const code of Object.keys(KERNEL_PROBLEMS) as (keyof typeof KERNEL_PROBLEMS)[]) {
    const problem = kernelProblem(code);
    expect([code, problem.status]).toEqual([code, KERNEL_PROBLEMS[code].status]);
    if (problem.status === 401) expect(problem.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_token"');
    if (problem.status === 503) expect(Number(problem.headers['retry-after'])).toBeGreaterThan(0);
  }
});
