import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { commandOf } from '@platform/sdk';
import type { Attempt } from '../execution/attempt.ts';
import { FunctionFolder, readJson } from './function-folder.ts';
import { type Case, LIMITS, LocalRuns } from './local-run.ts';

const USAGE = `platform func test [FOLDER]

  Runs every FOLDER/tests/*.json against what was built, and says which does not come out as it expects:
    { "hook"?, "protocol"?, "context", "parameters"?, "calls"?: { "call": answer },
      "expect": { "decision"?, "reject_reason"?, "directives"?, "result"?, "code"?, "fuel_at_most"? } }
  \`code\` is that of a failure, such as trap or fuel_exhausted. What \`expect\` does not name is not looked at.`;

interface Expectation {
  readonly decision?: string;
  readonly reject_reason?: string;
  readonly directives?: unknown;
  readonly result?: unknown;
  readonly code?: string;
  readonly fuel_at_most?: number;
}
type TestCase = Partial<Case> & { readonly context?: object; readonly expect?: Expectation };

export default commandOf<{ folder: string }>({
  usage: USAGE,
  read: args => (args.length <= 1 && !args[0]?.startsWith('-') ? { folder: args[0] ?? '.' } : undefined),
  run: async ({ folder: path }, { print }) => {
    const folder = new FunctionFolder(path);
    const tests = join(folder.path, 'tests');
    const files = existsSync(tests) ? readdirSync(tests).filter(file => file.endsWith('.json')) : [];
    if (files.length === 0) throw new Error(`There are no tests in ${tests}.`);
    await using runs = await LocalRuns.open(folder.module(), LIMITS);
    let failed = 0;
    for (const file of files.sort()) {
      const { expect = {}, ...given } = readJson(join(tests, file)) as TestCase;
      const parameters = { ...folder.parameters, ...given.parameters };
      const attempt = await runs.run({
        hook: folder.hooks[0] as string,
        protocol: folder.protocol,
        context: {},
        calls: {},
        ...given,
        parameters,
      });
      const faults = faultsOf(attempt, expect);
      failed += faults.length > 0 ? 1 : 0;
      print(`${faults.length > 0 ? 'x' : 'ok'} ${file}: ${attempt.fuelUsed} fuel, ${attempt.memoryBytes} bytes`);
      for (const fault of faults) print(`    ${fault}`);
    }
    print(`${files.length - failed} passed, ${failed} failed`);
    return failed > 0 ? 1 : 0;
  },
});

function faultsOf({ ok, code, detail, decision, rejectReason, directives, result, fuelUsed }: Attempt, expect: Expectation): string[] {
  if (!ok && expect.code === undefined) return [`it failed: ${code}: ${detail}`];
  const seen: Record<string, unknown> = { code, decision, reject_reason: rejectReason, directives, result };
  const { fuel_at_most, ...values } = expect;
  const others = Object.entries(values)
    .filter(([name, value]) => !isDeepStrictEqual(seen[name], value))
    .map(([name, value]) => `${name} is ${JSON.stringify(seen[name]) ?? 'absent'}, expected ${JSON.stringify(value)}`);
  return fuel_at_most !== undefined && fuelUsed > fuel_at_most
    ? [...others, `it took ${fuelUsed} fuel, at most ${fuel_at_most} are expected`]
    : others;
}
