import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { hostOptions } from './options.ts';

test('F-29 a relative data directory is taken from where the command was given, once', () => {
  expect(hostOptions([], { PLATFORM_DATA_DIR: 'some/data' }, () => undefined).dataDir).toBe(resolve('some/data'));
  const there = realpathSync(mkdtempSync(join(tmpdir(), 'platform-test-')));
  const toolchain = new URL('../../../scripts/toolchain.mjs', import.meta.url).href;
  // The start scripts hand over to a process that stands in another folder.
  const code = `const { handOver } = await import(${JSON.stringify(toolchain)}); await handOver(process.execPath, ['-p', 'process.cwd() + " " + process.env.PLATFORM_DATA_DIR + " " + process.env.PLATFORM_PLUGIN_DIRS']);`;
  const environment = { ...process.env, PLATFORM_DATA_DIR: 'data', PLATFORM_PLUGIN_DIRS: 'one:/two' };
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { cwd: there, encoding: 'utf8', env: environment });
  expect(stdout.trim()).toBe(
    `${fileURLToPath(new URL('../../../', import.meta.url)).slice(0, -1)} ${join(there, 'data')} ${join(there, 'one')}:/two`,
  );
  rmSync(there, { recursive: true });
});

test('SUP-010 PLATFORM_SERVICES names what is started at boot, separated by commas; unset it is what the distribution starts', () => {
  const said: string[] = [];
  const named = (PLATFORM_SERVICES?: string) =>
    hostOptions([], PLATFORM_SERVICES === undefined ? {} : { PLATFORM_SERVICES }, line => void said.push(line)).services;
  expect(named('auth, bus,,nothing')).toEqual(['auth', 'bus']);
  expect(said).toEqual([expect.stringContaining('PLATFORM_SERVICES names nothing')]);
  expect(named()).toEqual(expect.arrayContaining(['acme', 'auth', 'sys', 'proxy', 'bus', 'app', 'bff', 'web']));
});
