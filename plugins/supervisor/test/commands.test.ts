import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Operator, PlatformCommand } from '@platform/sdk';
import { eventually, openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import alerts from '../src/cli/alerts-command.ts';
import logs from '../src/cli/logs-command.ts';
import machines from '../src/cli/machines-command.ts';
import { pack } from '../src/cli/release-command.ts';
import restart from '../src/cli/restart-command.ts';
import rollback from '../src/cli/rollback-command.ts';
import serviceCommand, { unitOf } from '../src/cli/service-command.ts';
import services from '../src/cli/services-command.ts';
import start from '../src/cli/start-command.ts';
import upgrade from '../src/cli/upgrade-command.ts';
import { service } from './fixtures/machine-box.ts';
import { World } from './fixtures/world.ts';

let stores: TestStores;
let world: World;
const scratch = mkdtempSync(join(tmpdir(), 'platform-test-'));
beforeAll(async () => {
  stores = await openTestStores();
  world = await World.open(stores, [service('auth', 10), service('stat', 30, { wanted: false })]);
  await world.box.boot();
  await world.settle();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

/** Runs a command against the supervisor's socket, as the owner. */
async function run(command: PlatformCommand, ...args: string[]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const operator: Operator = {
    call: async () => undefined as never,
    control: async <T>(method: 'GET' | 'POST', path: string, body?: unknown) => {
      const url = new URL(path, 'http://socket');
      const answer = await world.box.handle({
        method,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        body,
        uid: 0,
        ownUid: 0,
        signal: new AbortController().signal,
      });
      if (answer.status >= 300) throw new Error(String((answer.body as { code: string }).code));
      return JSON.parse(JSON.stringify(answer.body)) as T;
    },
    print: line => void lines.push(line),
    progress: () => undefined,
  };
  return { code: await command.run(args, operator), lines };
}

describe('commands of the fleet', () => {
  test('show services, machines and alerts, for people and for programs', async () => {
    const shown = await run(services);
    expect([shown.code, shown.lines[0], shown.lines.some(line => /auth +Active/.test(line))]).toEqual([
      0,
      expect.stringContaining('SERVICE'),
      true,
    ]);
    expect(JSON.parse((await run(services, '--json')).lines.join(''))).toContainEqual(
      expect.objectContaining({ service_type: 'auth', status: 'Active' }),
    );
    await world.pass('3s');
    expect((await run(machines)).lines.join('\n')).toContain('127.0.0.1  first');
    expect(await run(alerts)).toEqual({ code: 0, lines: ['Every service runs.'] });
    await world.kv.hset(
      'captain:alerts',
      'bus',
      JSON.stringify({ service_type: 'bus', restarts: 3, reason: 'ended (1)', log_path: '/l', at: '2026-01-01T00:00:00.000Z' }),
    );
    expect(await run(alerts)).toMatchObject({ code: 1, lines: [expect.stringContaining('bus  3 restarts  ended (1)')] });
    expect((await run(logs, 'auth', '--lines', '3')).lines).toEqual(['auth line 1', 'auth line 2', 'auth line 3']);
  });

  test('start, restart, upgrade and roll back what a word names, and say what they do not understand', async () => {
    expect((await run(start, 'stat')).lines).toEqual([expect.stringMatching(/^stat starts at 127\.0\.0\.1:\d+$/)]);
    await expect(run(start, 'nothing')).rejects.toThrow('unknown_service_type');
    await eventually(() => world.box.of('stat').length).toBe(1);
    await world.settle();
    expect((await run(restart, 'stat')).lines[0]).toMatch(/^restart of stat .* is under way/);
    expect((await run(upgrade, 'auth', '--release', 'r1')).lines[0]).toMatch(/^upgrade of auth .* is under way/);
    await expect(run(upgrade, 'auth', '--release', 'r9')).rejects.toThrow(/upgrade_in_progress|unknown_release/);
    expect((await run(rollback, 'auth')).lines[0]).toMatch(/^rollback of auth/);
    await expect(run(restart, 'nobody')).rejects.toThrow('No instance is called nobody');
    for (const [command, ...args] of [[services, 'x'], [restart], [upgrade, '--faster'], [logs]] as [PlatformCommand, ...string[]][])
      expect(await run(command, ...args)).toMatchObject({ code: 64, lines: [expect.stringContaining('platform ')] });
  });
});

test('a release is a whole of its own: code without tests, packages linked, the platform’s own leading into it, and never changed', () => {
  const root = `${join(scratch, 'tree')}/`;
  for (const folder of ['kernel', 'plugins/a/src', 'plugins/a/test', 'node_modules/lib', 'node_modules/@platform'])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'kernel', 'child.ts'), '1');
  writeFileSync(join(root, 'plugins/a/src/plugin.ts'), '2');
  writeFileSync(join(root, 'plugins/a/test/a.test.ts'), '3');
  writeFileSync(join(root, 'node_modules/lib/index.js'), '4');
  symlinkSync('../../plugins/a', join(root, 'node_modules/@platform/a'));
  const path = pack('2026.1', join(scratch, 'releases'), root);
  expect(
    ['kernel/child.ts', 'plugins/a/src/plugin.ts', 'plugins/a/test', 'node_modules/lib/index.js', 'RELEASE'].map(file =>
      existsSync(join(path, file)),
    ),
  ).toEqual([true, true, false, true, true]);
  expect(lstatSync(join(path, 'node_modules/lib/index.js')).ino).toBe(lstatSync(join(root, 'node_modules/lib/index.js')).ino);
  expect(readFileSync(join(path, 'node_modules/@platform/a/src/plugin.ts'), 'utf8')).toBe('2');
  writeFileSync(join(root, 'plugins/a/src/plugin.ts'), 'changed');
  expect(readFileSync(join(path, 'plugins/a/src/plugin.ts'), 'utf8')).toBe('2');
  expect(() => pack('2026.1', join(scratch, 'releases'), root)).toThrow('a release never changes');
  expect(() => pack('../etc', join(scratch, 'releases'), root)).toThrow('is no name of a release');
});

test('a unit of systemd starts the supervisor alone again, and leaves what it watches over alive', async () => {
  const unit = unitOf({
    root: '/opt/platform/',
    node: '/opt/node',
    flags: ['--a=1'],
    user: 'platform',
    dataDir: '/var/lib/platform',
    distribution: 'single-host',
  });
  for (const line of [
    'ExecStart=/opt/node --a=1 /opt/platform/kernel/main.ts run --distribution single-host',
    'KillMode=process',
    'Restart=always',
    'User=platform',
    'ReadWritePaths=/var/lib/platform',
  ])
    expect(unit.split('\n')).toContain(line);
  expect(unit).toContain('PLATFORM_ENV=production');
  const { code, lines } = await run(serviceCommand, 'install', '--dry-run');
  expect([code, lines[0]]).toEqual([0, 'would write /etc/systemd/system/platform.service:']);
});
