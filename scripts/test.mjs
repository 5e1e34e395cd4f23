#!/usr/bin/env node
// Everything CI runs, in the order it fails fastest. Runs under any Node from 20 on; the steps run under Node 26.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundles, install, node26, root } from './toolchain.mjs';

const args = process.argv.slice(2);
const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
if (args.includes('--help')) {
  process.stdout.write(
    'npm test [-- --only STEP]\n\n  Steps: format, lint, imports, types, golden, unit, faults, journey.\n  PLATFORM_CHROMIUM names a browser; without one, an installed or packaged Chromium is used.\n',
  );
  process.exit(0);
}

install();
const node = node26();
bundles(node);
const scratch = mkdtempSync(join(tmpdir(), 'platform-results-'));
const bin = name => join(root, 'node_modules', ...name);
const quiet = ['--disable-warning=ExperimentalWarning'];
const vitest = (name, config, env = {}) => ({ name, tests: join(scratch, `${name.replaceAll(/\W+/g, '-')}.json`), command: [node, ...quiet, bin(['vitest', 'vitest.mjs']), 'run', ...config], env });
const steps = [
  { name: 'format', command: [bin(['.bin', 'biome']), 'format', '.'] },
  { name: 'lint', command: [bin(['.bin', 'biome']), 'lint', '--diagnostic-level=error', '.'] },
  { name: 'imports', command: [node, join(root, 'scripts', 'imports.ts')] },
  { name: 'types', command: [node, join(root, 'scripts', 'types.ts')] },
  { name: 'golden', command: [node, ...quiet, join(root, 'scripts', 'golden.ts'), '--check'] },
  vitest('unit', []),
  { name: 'faults', command: [node, ...quiet, join(root, 'scripts', 'faults', 'main.ts'), '--each'] },
  vitest('journey, one process', ['-c', 'vitest.e2e.config.ts']),
  vitest('journey, split', ['-c', 'vitest.e2e.config.ts'], { PLATFORM_E2E_MODE: 'split' }),
].filter(({ name }) => !only || name.startsWith(only));

let [passed, failed] = [0, 0];
let broken = false;
for (const { name, command, tests, env } of steps) {
  const startedAt = Date.now();
  process.stdout.write(`\n▸ ${name}\n`);
  const reporters = tests ? ['--reporter=default', '--reporter=json', `--outputFile.json=${tests}`] : [];
  const [program, ...rest] = [...command, ...reporters];
  const run = spawnSync(program, rest, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } });
  if (tests) {
    try {
      const report = JSON.parse(readFileSync(tests, 'utf8'));
      passed += report.numPassedTests;
      failed += report.numFailedTests;
    } catch {
      failed += 1;
    }
  } else if (run.status === 0) passed += 1;
  else failed += 1;
  process.stdout.write(`  ${run.status === 0 ? 'ok' : 'FAILED'} in ${Math.round((Date.now() - startedAt) / 1000)} s\n`);
  if (run.status !== 0) {
    broken = true;
    break;
  }
}
rmSync(scratch, { recursive: true, force: true });
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exit(broken || failed > 0 ? 1 : 0);
