import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { type Execution, GuestPool } from '../src/isolation/guest-pool.ts';
import { ASK, COUNTERS, crashes, ECHO, GROW, metered, RECURSE, SPIN, TRAP, wat } from './fixtures/guests.ts';

const said: object[] = [];
const pool = new GuestPool({ processes: 2, pages: 1_024, heapMb: 96, log: (fields, message) => void said.push({ ...fields, message }) });
afterAll(() => pool[Symbol.asyncDispose]());

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const input = Buffer.from('{"a":1}');
let number = 0;
const run = (bytes: Uint8Array, more: Partial<Execution> = {}) =>
  pool.run({
    module: `m${(number += 1)}`,
    program: { kind: 'core', bytes: metered(bytes) },
    hook: 'hook',
    input,
    fuel: 1_000_000,
    timeoutMs: 5_000,
    maxOutput: 262_144,
    maxCalls: 4,
    pages: 64,
    call: async ({ body }) => ({ body, fuel: 1_000 }),
    ...more,
  });
const UNMETERED = wat(`${COUNTERS} (func (export "hook") (param i32 i32) (result i64) (loop (br 0)) (i64.const 0))`);
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

test('FUN-003 fuel is exact: the same guest with the same input pays the same every time, and ends where it is used up', async () => {
  const paid = await Promise.all(Array.from({ length: 20 }, () => run(ECHO)));
  expect(new Set(paid.map(({ fuelUsed }) => fuelUsed)).size).toBe(1);
  expect(text(paid[0]?.output)).toBe('{"a":1}');
  expect(paid[0]?.fuelUsed).toBeGreaterThan(5);
  for (let time = 0; time < 3; time++) expect(await run(SPIN)).toMatchObject({ fault: { code: 'fuel_exhausted' }, fuelUsed: 1_000_000 });
});

test('FUN-003 memory, depth and traps end one execution alone, each by its name', async () => {
  const [grown, deep, trapped, echo] = await Promise.all([run(GROW, { fuel: 10_000_000 }), run(RECURSE), run(TRAP), run(ECHO)]);
  expect(grown).toMatchObject({ fault: { code: 'memory_exceeded' }, memoryBytes: 49 * 65_536 });
  expect(deep.fault).toEqual({ code: 'trap', detail: 'Calls are nested too deeply.' });
  expect((await run(RECURSE)).fuelUsed).toBe(deep.fuelUsed);
  expect(trapped.fault).toEqual({ code: 'trap', detail: 'divide by zero' });
  expect(text(echo.output)).toBe('{"a":1}');
  expect(pool.figures).toMatchObject({ processes: 2, respawned: 0 });
  expect(pool.figures.residentBytes).toBeGreaterThan(20_000_000);
});

test('FUN-004 a guest’s call is made by the parent and counted; one that fails ends the execution, whatever the guest makes of it', async () => {
  const answered = await run(ASK, {
    call: async ({ name, number, body }) => ({ body: Buffer.from(`${name} ${number} ${text(body)}`), fuel: 1_000 }),
  });
  expect([text(answered.output), answered.fuelUsed > 1_000]).toEqual(['ask 1 {"a":1}', true]);
  expect((await run(ASK, { call: async () => ({ fuel: 0 }) })).fault?.code).toBe('callback_failed');
  const often = wat(
    '(func (export "hook") (param i32 i32) (result i64) (loop (drop (call $ask (local.get 0) (local.get 1))) (br 0)) (i64.const 0))',
    {
      imports: '(import "platform" "ask" (func $ask (param i32 i32) (result i64)))',
    },
  );
  expect((await run(often)).fault).toEqual({ code: 'callback_failed', detail: 'At most 4 host calls are made.' });
});

test('FUN-003 a call that never comes back ends at the deadline, and the process goes on', async () => {
  const before = pool.figures.respawned;
  const never = run(ASK, {
    timeoutMs: 150,
    call: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('ended')))),
  });
  expect((await never).fault?.code).toBe('execution_timeout');
  expect([text((await run(ECHO)).output), pool.figures.respawned]).toEqual(['{"a":1}', before]);
});

test('FUN-003 a guest in an endless loop gives way to others, slice by slice, and ends at its deadline without its process', async () => {
  const before = pool.figures.respawned;
  const ended: string[] = [];
  const spins = Array.from({ length: 4 }, () =>
    run(SPIN, { fuel: Number.MAX_SAFE_INTEGER, timeoutMs: 400 }).then(outcome => (ended.push('spin'), outcome)),
  );
  const others = Promise.all(Array.from({ length: 16 }, () => run(ECHO).then(() => ended.push('echo'))));
  for (const outcome of await Promise.all(spins)) expect(outcome).toMatchObject({ fault: { code: 'execution_timeout' } });
  await others;
  expect(ended).toEqual([...Array.from({ length: 16 }, () => 'echo'), ...Array.from({ length: 4 }, () => 'spin')]);
  expect(pool.figures.respawned).toBe(before);
});

test('a guest that holds the thread past its deadline is killed and named; whoever shared its process begins anew', async () => {
  const before = pool.figures.respawned;
  // Without metering nothing but its death ends it.
  const hog = pool.run({
    module: 'hog',
    program: { kind: 'core', bytes: UNMETERED },
    hook: 'hook',
    input,
    fuel: 1,
    timeoutMs: 150,
    maxOutput: 10,
    maxCalls: 1,
    pages: 64,
    call: async () => ({ fuel: 0 }),
  });
  const others = await Promise.all(Array.from({ length: 8 }, () => run(ECHO)));
  expect(await hog).toMatchObject({ fault: { code: 'execution_timeout' }, broke: true });
  expect(others.map(({ output }) => text(output))).toEqual(Array.from({ length: 8 }, () => '{"a":1}'));
  expect(pool.figures.respawned).toBe(before + 1);
  expect(said.at(-1)).toMatchObject({ module: 'hog' });
});

test('a guest that ends the engine takes nobody along: it is named, its process is replaced, and static caps refuse it in the first place', async () => {
  expect(() => metered(crashes())).toThrow(/branch targets/);
  const [before, logged] = [pool.figures.respawned, said.length];
  const crash = run(ECHO, { module: 'crash', program: { kind: 'core', bytes: crashes(COUNTERS) }, timeoutMs: 30_000 });
  const others = await Promise.all(Array.from({ length: 8 }, () => run(ECHO)));
  expect(await crash).toMatchObject({
    fault: { code: 'trap', detail: expect.stringMatching(/^The engine ended: Fatal error/) },
    broke: true,
  });
  expect(others.map(({ output }) => text(output))).toEqual(Array.from({ length: 8 }, () => '{"a":1}'));
  expect(pool.figures.respawned).toBe(before + 1);
  expect(said.slice(logged)).toEqual([expect.objectContaining({ module: 'crash' })]);
});

test('FUN-005 the process of a guest has no file system, network, children or code from strings', async () => {
  const { probe } = await import('./fixtures/probe-process.ts');
  expect(await probe()).toEqual({
    read: 'ERR_ACCESS_DENIED',
    write: 'ERR_ACCESS_DENIED',
    net: 'ERR_ACCESS_DENIED',
    child: 'ERR_ACCESS_DENIED',
    worker: 'ERR_ACCESS_DENIED',
    strings: 'EvalError',
    environment: 0,
  });
});

test('processes of guests end with their parent, however it ends and whatever they do', async () => {
  const parent = fork(fileURLToPath(new URL('./fixtures/pool-process.ts', import.meta.url)), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [pids] = (await once(parent, 'message')) as [number[]];
  expect(pids).toHaveLength(2);
  const alive = () => pids.filter(pid => isThere(pid));
  expect(alive()).toEqual(pids);
  parent.kill('SIGKILL');
  await expect.poll(alive, { timeout: 10_000 }).toEqual([]);
});

test('an execution whose process cannot even start ends with a fault, and so does the next', async () => {
  await using broken = new GuestPool({ processes: 1, pages: 64, heapMb: 1, log: () => undefined });
  const execution = {
    program: { kind: 'core' as const, bytes: metered(ECHO) },
    hook: 'hook',
    input,
    fuel: 1_000,
    timeoutMs: 300,
    maxOutput: 1_000,
    maxCalls: 1,
    pages: 64,
    call: async () => ({ fuel: 0 }),
  };
  for (const module of ['one', 'two', 'three'])
    expect(['execution_timeout', 'trap']).toContain((await broken.run({ ...execution, module })).fault?.code);
});
