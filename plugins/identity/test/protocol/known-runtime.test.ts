import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('F-29 the service loads without a word on the console, and what is said there afterwards is heard', () => {
  const plugin = new URL('../../src/plugin.ts', import.meta.url).href;
  const code = `await import(${JSON.stringify(plugin)}); console.warn('heard');`;
  const cwd = fileURLToPath(new URL('../../../../', import.meta.url));
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code],
    { cwd, encoding: 'utf8' },
  );
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: 'heard\n' });
});
