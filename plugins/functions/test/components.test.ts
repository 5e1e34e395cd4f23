import { afterAll, expect, test } from 'vitest';
import { ComponentSections } from '../src/components/component-sections.ts';
import { Transpiler } from '../src/components/transpiler.ts';
import { type Execution, GuestPool } from '../src/isolation/guest-pool.ts';
import { ModuleFault } from '../src/metering/byte-reader.ts';
import { Programs } from '../src/modules/programs.ts';
import { asks, component, echoes } from './fixtures/components.ts';

const pool = new GuestPool({ processes: 1, pages: 1_024, heapMb: 96, log: () => undefined });
const transpiler = new Transpiler();
const programs = new Programs(transpiler);
afterAll(async () => {
  transpiler[Symbol.dispose]();
  await pool[Symbol.asyncDispose]();
});

let number = 0;
async function runner(bytes: Uint8Array): Promise<(more?: Partial<Execution>) => ReturnType<GuestPool['run']>> {
  const [program, module] = [await programs.make(Uint8Array.from(bytes), 64), `c${(number += 1)}`];
  const execution = {
    module,
    program,
    hook: 'run',
    input: Buffer.from('"Zürich"'),
    fuel: 1_000_000,
    timeoutMs: 5_000,
    maxOutput: 1_000,
    maxCalls: 4,
    pages: 64,
    call: async () => ({ fuel: 0 }),
  };
  return (more = {}) => pool.run({ ...execution, ...more });
}
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
const loop = (body: string) => `(func (export "run") (param i32 i32) (result i32) (loop ${body} (br 0)) (unreachable))`;

test('FUN-001 a component runs as a second kind: every execution has its own instance, and the same input pays the same', async () => {
  const run = await runner(await echoes());
  const done = await Promise.all(Array.from({ length: 20 }, () => run()));
  expect(done.map(({ output, logs }) => [text(output), logs])).toEqual(Array.from({ length: 20 }, () => ['"Zürich"', ['"Zürich"']]));
  expect(new Set(done.map(({ fuelUsed }) => fuelUsed)).size).toBe(1);
  expect(done[0]?.fuelUsed).toBeGreaterThan(100);
});

test('FUN-004 a component’s calls go to the host, many at once, and a failed one ends it', async () => {
  const run = await runner(await asks());
  const call: Execution['call'] = async ({ name, number, body }) => ({ body: Buffer.from(`${name} ${number} ${text(body)}`), fuel: 1_000 });
  const done = await Promise.all(Array.from({ length: 8 }, (_, index) => run({ hook: 'on-apply', input: Buffer.from(`${index}`), call })));
  expect(done.map(({ output }) => text(output))).toEqual(Array.from({ length: 8 }, (_, index) => `ask 1 ${index}`));
  expect((await run({ hook: 'on-apply' })).fault).toMatchObject({ code: 'callback_failed' });
  const never: Execution['call'] = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('ended'))));
  expect((await run({ hook: 'on-apply', timeoutMs: 150, call: never })).fault?.code).toBe('execution_timeout');
});

test('FUN-003 a component that spins, recurses, takes memory or fills its log ends alone, and its modules pay from one purse', async () => {
  const spin = await (await runner(await component({ core: loop('') })))();
  expect(spin).toMatchObject({ fault: { code: 'fuel_exhausted' }, fuelUsed: 1_000_000 });
  const logging = await (await runner(await component({ core: loop('(call $log (i32.const 0) (i32.const 60000))') })))();
  expect([logging.fault?.code, logging.logs.length]).toEqual(['fuel_exhausted', 50]);
  const deep = await (
    await runner(await component({ core: '(func $f (export "run") (param i32 i32) (result i32) (call $f (local.get 0) (local.get 1)))' }))
  )();
  expect(deep.fault).toEqual({ code: 'trap', detail: 'Calls are nested too deeply.' });
  const grow = await (
    await runner(
      await component({
        core: loop('(br_if 1 (i32.eq (memory.grow (i32.const 8)) (i32.const -1)))')
          .replace('(loop', '(block (loop')
          .replace('(br 0))', '(br 0)))'),
      }),
    )
  )();
  expect([grow.fault?.code, grow.memoryBytes]).toEqual(['memory_exceeded', 57 * 65_536]);
  const other = await (
    await runner(await component({ core: '(func (export "run") (param i32 i32) (result i32) (unreachable))', realloc: '(loop (br 0))' }))
  )();
  expect(other).toMatchObject({ fault: { code: 'fuel_exhausted' }, fuelUsed: 1_000_000 });
  expect(pool.figures.respawned).toBe(0);
});

test('FUN-005 names that would be code, WASI and whatever else a component can be are refused before anything reads it', async () => {
  const evil = "run'];globalThis.PWNED=process.version;//";
  const core = '(func (export "run") (param i32 i32) (result i32) (call $give (local.get 0) (local.get 1)))';
  const faults: [string, Promise<Uint8Array>][] = [
    ['name_refused', component({ core: `${core} (func (export "${evil}"))` })],
    ['name_refused', component({ core, more: `(core module $x (import "a\`\${1}" "b" (func)))` })],
    ['name_refused', component({ core, more: `(core instance (export "a\\nb" (func $log')))` })],
    ['name_refused', component({ core, more: `(core module $x (func (export "${'x'.repeat(300)}")))` })],
    ['import_refused', component({ core, more: '(import "wasi:cli/run@0.2.0" (func (param "a" string)))' })],
    ['component_refused', component({ core, more: '(import "wasi:cli/environment@0.2.0" (instance))' })],
    ['component_refused', component({ core, more: '(component $c)' })],
    ['component_refused', component({ core, more: '(type (resource (rep i32)))' })],
    ['component_refused', component({ core, more: '(type (func (param "a" (list string))))' })],
    ['component_refused', component({ core, more: '(core func (canon task.cancel))' })],
    ['feature_refused', component({ core, more: '(core module $x (memory 1)) (core instance (instantiate $x))' })],
    ['too_complex', component({ core, more: '(core module) '.repeat(20) })],
    ['too_complex', component({ core: `${core} (func (local ${'i32 '.repeat(3_000)}))` })],
    ['feature_refused', component({ core: `${core} (memory $more 1)` })],
    ['reserved_import', component({ core, more: '(core module $x (import "$rt" "fuel" (global i64)))' })],
  ];
  for (const [index, [fault, made]] of faults.entries()) {
    const refused = await programs.make(Uint8Array.from(await made), 64).then(
      () => 'taken',
      error => (error instanceof ModuleFault ? error.code : error),
    );
    expect([index, refused]).toEqual([index, fault]);
  }
  // Names of custom sections are for debuggers; they do not reach jco.
  const named = await component({ core });
  expect(Buffer.from(named).includes('component-name')).toBe(true);
  expect(Buffer.from(new ComponentSections(named).bytes).includes('component-name')).toBe(false);
});

test('jco reads a component in a process that ends, and a component it does not take is refused with its reason', async () => {
  const bytes = await echoes();
  const unfit = await component({ core: '(func (export "run") (param i32) (result i32) (local.get 0))' });
  await expect(programs.make(Uint8Array.from(unfit), 64)).rejects.toThrow(/The component is not valid: .*lowered parameter/s);
  await expect(programs.make(Uint8Array.from(bytes.slice(0, -4)), 64)).rejects.toThrow(ModuleFault);
});
