#!/usr/bin/env node
// Everything CI runs, in the order it fails fastest. Runs under any Node from 20 on; the steps run under Node 26.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundles, install, node26, root } from './toolchain.mjs';

const args = process.argv.slice(2);
const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
if (args.includes('--help')) {
  process.stdout.write(
    'npm test [-- --only STEP]\n\n  Steps: format, lint, imports, sizes, types, golden, unit (with coverage), faults, journey (with browser).\n  PLATFORM_CHROMIUM names a browser; without one, an installed or packaged Chromium is used.\n',
  );
  process.exit(0);
}

install();
const node = node26();
bundles(node);
const scratch = mkdtempSync(join(tmpdir(), 'platform-results-'));
/** What test files have seen of the contracts; the step behind them adds it up. */
const coverage = join(scratch, 'coverage');
const bin = name => join(root, 'node_modules', ...name);
const quiet = ['--disable-warning=ExperimentalWarning'];
const vitest = (name, config, env = {}) => ({
  name,
  tests: join(scratch, `${name.replaceAll(/\W+/g, '-')}.json`),
  command: [node, ...quiet, bin(['vitest', 'vitest.mjs']), 'run', ...config],
  env,
});
const steps = [
  { name: 'format', command: [bin(['.bin', 'biome']), 'format', '.'] },
  { name: 'lint', command: [bin(['.bin', 'biome']), 'lint', '--diagnostic-level=error', '.'] },
  { name: 'imports', command: [node, join(root, 'scripts', 'imports.ts')] },
  { name: 'sizes', command: [node, ...quiet, join(root, 'scripts', 'sizes.ts')] },
  { name: 'types', command: [node, join(root, 'scripts', 'types.ts')] },
  { name: 'golden', command: [node, ...quiet, join(root, 'scripts', 'golden.ts'), '--check'] },
  vitest('unit', [], { PLATFORM_COVERAGE: coverage }),
  { name: 'coverage', after: 'unit', command: [node, ...quiet, join(root, 'scripts', 'coverage.ts'), coverage] },
  { name: 'faults', command: [node, ...quiet, join(root, 'scripts', 'faults', 'main.ts'), '--each'] },
  // Once, for both runs of the journeys: two that install one at the same time meet each other's lock.
  { name: 'browser', after: 'journey', command: [node, ...quiet, join(root, 'e2e', 'fixtures', 'browser', 'bring.ts')] },
  vitest('journey, one process', ['-c', 'vitest.e2e.config.ts']),
  vitest('journey, split', ['-c', 'vitest.e2e.config.ts'], { PLATFORM_E2E_MODE: 'split' }),
].filter(({ name, after = name }) => !only || name.startsWith(only) || after.startsWith(only));

// The two runs of the journeys wait for browsers and starts more than they compute: side by side they take little longer than one.
const turns = steps.filter(({ name }) => !name.startsWith('journey')).map(step => [step]);
const journeys = steps.filter(({ name }) => name.startsWith('journey'));
if (journeys.length > 0) turns.push(journeys);

let [passed, failed] = [0, 0];
let broken = false;
for (const turn of turns) {
  const startedAt = Date.now();
  process.stdout.write(`\n▸ ${turn.map(({ name }) => name).join(' | ')}\n`);
  const runs = await Promise.all(turn.map(step => run(step, turn.length > 1)));
  for (const [index, { status, text }] of runs.entries()) {
    if (text) process.stdout.write(`\n▸ ${turn[index].name}\n${text}`);
    count(turn[index], status);
    broken ||= status !== 0;
  }
  process.stdout.write(`  ${broken ? 'FAILED' : 'ok'} in ${Math.round((Date.now() - startedAt) / 1000)} s\n`);
  if (broken) break;
}

/** Runs a step to its end; what it says comes as it says it, or at the end when others run beside it. */
function run({ command, tests, env }, beside) {
  const reporters = tests ? ['--reporter=default', '--reporter=json', `--outputFile.json=${tests}`] : [];
  const [program, ...rest] = [...command, ...reporters];
  return new Promise(resolve => {
    const child = spawn(program, rest, {
      cwd: root,
      stdio: ['ignore', beside ? 'pipe' : 'inherit', beside ? 'pipe' : 'inherit'],
      env: { ...process.env, ...env },
    });
    const said = [];
    child.stdout?.on('data', chunk => said.push(chunk));
    child.stderr?.on('data', chunk => said.push(chunk));
    const progress = beside ? setInterval(() => process.stdout.write('.'), 10_000) : undefined;
    const end = status => {
      clearInterval(progress);
      resolve({ status, text: Buffer.concat(said).toString() });
    };
    child.once('error', () => end(1));
    child.once('close', status => end(status ?? 1));
  });
}

function count({ tests }, status) {
  if (!tests) return void (status === 0 ? (passed += 1) : (failed += 1));
  try {
    const report = JSON.parse(readFileSync(tests, 'utf8'));
    passed += report.numPassedTests;
    // A file that fails before its first test fails none of them.
    const unbegun = report.testResults.filter(
      file => file.status === 'failed' && file.assertionResults.every(one => one.status !== 'failed'),
    );
    failed += report.numFailedTests + unbegun.length;
  } catch {
    failed += 1;
  }
}
rmSync(scratch, { recursive: true, force: true });
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exit(broken || failed > 0 ? 1 : 0);
