import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Operator } from '@platform/sdk';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { COMPILERS } from '../src/authoring/compiler.ts';
import func from '../src/authoring/func-command.ts';
import { asks } from './fixtures/components.ts';
import { SPIN } from './fixtures/guests.ts';

const scratch = mkdtempSync(join(tmpdir(), 'platform-test-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
afterEach(() => void vi.unstubAllEnvs());

async function platformFunc(...args: string[]): Promise<{ code: number | string; lines: string[] }> {
  const lines: string[] = [];
  const operator = { print: (line: string) => void lines.push(line) } as Operator;
  const code = await func.run(args, operator).catch((error: Error) => error.message);
  return { code, lines };
}
const file = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(scratch, name), content);
  return join(scratch, name);
};

test('an author makes a function, builds it, runs it with its fuel and memory and tests it, and a recorded failure is replayed', async () => {
  const folder = join(scratch, 'rule');
  expect((await platformFunc('new', folder)).lines.at(-1)).toBe(`Next: platform func build ${folder}, platform func test ${folder}`);
  expect((await platformFunc('new', folder)).code).toMatch(/is there already/);
  expect((await platformFunc('run', folder)).code).toBe('rule is not built: run `platform func build`.');
  expect(await platformFunc('build', folder)).toMatchObject({
    code: 0,
    lines: [expect.stringMatching(/function\.wasm: \d+ bytes/), expect.stringContaining('decide'), 'imports env.abort'],
  });
  expect(await platformFunc('test', folder)).toMatchObject({
    code: 0,
    lines: [expect.stringMatching(/^ok large/), expect.stringMatching(/^ok small/), '2 passed, 0 failed'],
  });
  const small = join(folder, 'tests', 'small.json');
  const run = await platformFunc('run', folder, '--context', small);
  expect(run.code).toBe(0);
  expect(run.lines.slice(0, 3)).toEqual(['completed', 'decision  accept', 'result    {"amount_minor":250000}']);
  expect(run.lines[3]).toMatch(/^fuel {6}[1-9]\d* of 10000000$/);
  expect(run.lines[4]).toBe(`memory    ${65_536} bytes of ${64 * 1_048_576}`);
  const trap = {
    hook: 'decide',
    status: 'dead_lettered',
    code: 'trap',
    fuel_used: 12,
    request: { context: {}, parameters: {}, protocol: 'hook' },
  };
  // It was recorded of a version that trapped there; this one does not.
  const replayed = await platformFunc('run', folder, '--replay', file('dead.json', JSON.stringify(trap)));
  expect([replayed.code, replayed.lines.at(-1)]).toEqual([1, 'recorded  trap with 12 fuel: another end']);
  const [fuel, starved] = [
    Number(/\d+/.exec(run.lines[3] as string)?.[0]),
    { ...trap, code: 'fuel_exhausted', request: { ...trap.request, context: JSON.parse(readFileSync(small, 'utf8')).context } },
  ];
  const again = await platformFunc('run', folder, '--replay', file('starved.json', JSON.stringify(starved)), '--fuel', String(fuel - 1));
  expect([again.code, again.lines[0], again.lines.at(-1)]).toEqual([
    0,
    `fuel_exhausted: The fuel of ${fuel - 1} instructions is used up.`,
    'recorded  fuel_exhausted with 12 fuel: the same',
  ]);
  writeFileSync(small, JSON.stringify({ context: {}, expect: { decision: 'reject', fuel_at_most: 1 } }));
  const failed = await platformFunc('test', folder);
  expect(failed).toMatchObject({
    code: 1,
    lines: expect.arrayContaining([
      '    decision is "accept", expected "reject"',
      expect.stringMatching(/^ {4}it took \d+ fuel, at most 1 are expected/),
      '1 passed, 1 failed',
    ]),
  });
});

test('any module or component runs from its file, with the answers to its calls, and one that the service would refuse is named so', async () => {
  const component = file('asks.wasm', await asks());
  const calls = file('calls.json', '{"ask":{"score":700}}');
  const answered = await platformFunc('run', component, '--hook', 'on-apply', '--calls', calls);
  expect([answered.code, answered.lines[1]]).toEqual([0, 'result    {"score":700}']);
  const alone = await platformFunc('run', component, '--hook', 'on-apply');
  expect(alone).toMatchObject({
    code: 1,
    lines: expect.arrayContaining([expect.stringMatching(/^callback_failed/), expect.stringMatching(/^call .*no answer is given for it$/)]),
  });
  const spin = await platformFunc('run', file('spin.wasm', SPIN), '--fuel', '1000');
  expect([spin.code, spin.lines.find(line => line.startsWith('fuel '))]).toEqual([1, 'fuel      1000 of 1000']);
  expect((await platformFunc('run', file('bad.wasm', 'nothing'))).code).toBe(
    'The service would refuse this module: not_wasm: The bytes are no WebAssembly module.',
  );
});

test('every command of func says how it is used, and a compiler that is not there is named with how to get it', async () => {
  for (const verb of ['new', 'build', 'run', 'test']) expect(func.help?.([verb])).toMatch(new RegExp(`^platform func ${verb} `));
  expect(func.help?.([])).toBe(func.usage);
  expect(func.offline).toBe(true);
  for (const wrong of [
    ['bogus'],
    ['new'],
    ['new', 'Bad Name'],
    ['new', 'x', '--language', 'cobol'],
    ['run', '--fuel', '-1'],
    ['build', '--fast'],
  ])
    expect([wrong, (await platformFunc(...wrong)).code]).toEqual([wrong, 64]);
  vi.stubEnv('PATH', '');
  for (const [language, lacks] of Object.entries({ c: /no clang on the PATH/, rust: /no cargo on the PATH/ })) {
    const folder = join(scratch, language);
    expect((await platformFunc('new', folder, '--language', language)).lines[1]).toMatch(lacks);
    expect((await platformFunc('build', folder)).code).toMatch(lacks);
  }
});

test.runIf(COMPILERS.c.missing(scratch) === undefined)('the template in C builds and passes its tests', async () => {
  const folder = join(scratch, 'rule-in-c');
  await platformFunc('new', folder, '--language', 'c');
  expect((await platformFunc('build', folder)).code).toBe(0);
  expect((await platformFunc('test', folder)).lines.at(-1)).toBe('2 passed, 0 failed');
});
