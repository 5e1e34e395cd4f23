import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What type-checking the whole tree may cost: a contract API that infers backwards shows here first (house 5). */
const MOST_INSTANTIATIONS = 16_000_000;

const root = fileURLToPath(new URL('../', import.meta.url));
const run = spawnSync(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', root, '--extendedDiagnostics'], {
  encoding: 'utf8',
  cwd: root,
});
const output = run.stdout + run.stderr;
const instantiations = Number(/Instantiations:\s+([\d,]+)/.exec(output)?.[1]?.replaceAll(',', '') ?? 0);
if (run.status !== 0) {
  process.stdout.write(
    output
      .split('\n')
      .filter(line => line.includes('error TS') || line.startsWith('  '))
      .join('\n'),
  );
  process.exit(1);
}
process.stdout.write(`  ${instantiations.toLocaleString('en')} type instantiations, at most ${MOST_INSTANTIATIONS.toLocaleString('en')}\n`);
if (instantiations === 0 || instantiations > MOST_INSTANTIATIONS) process.exit(1);
