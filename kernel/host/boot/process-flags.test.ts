import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { processFlags } from './process-flags.ts';

test('a placement that says how a heap may grow says it to the process, in words that Node takes', () => {
  expect(processFlags({ tier: 50 })).toEqual(process.execArgv);
  const flags = processFlags({ tier: 50, heap_growth: 100 });
  expect(flags.slice(process.execArgv.length)).toEqual(['--heap-growing-percent=100']);
  expect(execFileSync(process.execPath, [...flags, '-p', '1 + 1'], { encoding: 'utf8' }).trim()).toBe('2');
});
