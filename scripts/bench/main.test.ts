import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const FLAGS = ['--disable-warning=ExperimentalWarning'];

test('F-30 the help tells the short benches from the long ones, and a name that is none is answered with it', () => {
  const { stdout } = spawnSync(process.execPath, [...FLAGS, MAIN, '--help'], { encoding: 'utf8' });
  expect(stdout).toMatch(/policy, calls, router, resolve, audit, identity, registry, bus, platform, doors, signin, edge\n/);
  for (const name of ['audit-long', 'identity-long', 'registry-long', 'bus-long'])
    expect(stdout).toMatch(new RegExp(`^ {2}${name} +\\w`, 'm'));
  const wrong = spawnSync(process.execPath, [...FLAGS, MAIN, 'speed'], { encoding: 'utf8' });
  expect([wrong.status, wrong.stderr]).toEqual([64, `No bench speed.\n\n${stdout}`]);
});

test('F-30 a row is printed as soon as it is known, before the bench is over', async () => {
  const bench = spawn(process.execPath, [...FLAGS, MAIN, 'policy'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [rows, summary] = ['', ''];
  bench.stdout.on('data', (text: Buffer) => (summary += text.toString()));
  for await (const text of bench.stderr) {
    rows += String(text);
    if (!/policy decision, scope mirror/.test(rows)) continue;
    expect(summary).toBe('');
    break;
  }
  bench.stderr.resume();
  await once(bench, 'exit');
  expect(rows).toMatch(/^ +[\d.]+ µs {2}policy decision, scope mirror {3}2 µs (held|MISSED)/m);
});
