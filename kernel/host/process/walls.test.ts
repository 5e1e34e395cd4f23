import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessId, ProcessNews } from '@platform/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { ProcessWorld, startReady } from '../fixtures/process-world.ts';
import { readBehindWalls } from '../plugin/read-behind-walls.ts';
import type { LocalProcessHost } from './local-process-host.ts';
import { wallFlags } from './walls.ts';

let world: ProcessWorld;
let machine: LocalProcessHost;
let dataDir: string;
const port = 25_000 + (process.pid % 4_000);
beforeAll(async () => {
  world = await ProcessWorld.open();
  dataDir = world.stores.dataDir;
  mkdirSync(join(dataDir, 'keys', 'sys'), { recursive: true });
  writeFileSync(join(dataDir, 'keys', 'sys', 'database.key'), 'not yours');
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Tries everything a hostile plugin would, and notes how each ended. Node's own words are kept: they tell a wall from a mistake. */
const tries = () => `
  const fs = await import('node:fs');
  const tried = {};
  const attempt = async (name, work) => {
    try { await work(); tried[name] = 'done'; } catch (error) { tried[name] = error.code ?? error.message; }
  };
  await attempt('other keys', () => fs.readFileSync(${JSON.stringify(join(dataDir, 'keys', 'sys', 'database.key'))}));
  await attempt('authority', () => fs.readFileSync(${JSON.stringify(join(dataDir, 'ca', 'pq', 'root.key'))}));
  await attempt('own keys', () => fs.readFileSync(${JSON.stringify(join(dataDir, 'verticals', 'evil', 'keys', 'evil', 'database.key'))}));
  await attempt('data folder', () => fs.writeFileSync(${JSON.stringify(join(dataDir, 'mine'))}, 'x'));
  await attempt('parent', () => fs.readFileSync('/proc/' + process.ppid + '/environ'));
  await attempt('own environment', () => fs.readFileSync('/proc/self/root/etc/passwd'));
  await attempt('link', () => fs.symlinkSync('/etc/passwd', ${JSON.stringify(join(dataDir, 'verticals', 'evil', 'files', 'link'))}));
  await attempt('child', async () => (await import('node:child_process')).spawnSync('id'));
  await attempt('worker', async () => new (await import('node:worker_threads')).Worker('1', { eval: true }));
  await attempt('addon', () => process.dlopen({ exports: {} }, '/tmp/none.node'));
  await attempt('library', async () => (await import('node:ffi')).dlopen('libc.so.6', {}));
  await attempt('signal', () => process.kill(process.ppid, 0));
  await attempt('channel', () => process.send('ready'));
  await attempt('inside', () => process.binding('fs'));
  await attempt('own files', () => fs.writeFileSync(${JSON.stringify(join(dataDir, 'verticals', 'evil', 'files', 'well'))}, 'x'));`;
const DENIED = {
  'other keys': 'ERR_ACCESS_DENIED',
  authority: 'ERR_ACCESS_DENIED',
  'own keys': 'ERR_ACCESS_DENIED',
  'data folder': 'ERR_ACCESS_DENIED',
  parent: 'ERR_ACCESS_DENIED',
  'own environment': 'ERR_ACCESS_DENIED',
  link: 'ERR_ACCESS_DENIED',
  child: 'ERR_ACCESS_DENIED',
  worker: 'ERR_ACCESS_DENIED',
  signal: 'ERR_ACCESS_DENIED',
  channel: 'ERR_ACCESS_DENIED',
  inside: 'ERR_ACCESS_DENIED',
};

describe('a hostile vertical', () => {
  test('F-04 reaches no key of others, of the authority or of its own, no folder but its own, no other process, and no library', async () => {
    const note = join(dataDir, 'verticals', 'evil', 'files');
    const write = (name: string) => `fs.writeFileSync(${JSON.stringify(note)} + '/${name}', JSON.stringify(tried))`;
    // Its contract is as hostile as its code: both run in its process.
    await world.vertical('evil', {
      contract: `await (async () => { ${tries()}; ${write('contract')} })()`,
      setup: `${tries()}; ${write('setup')}`,
    });
    machine = await world.host({ silentMs: 3_000 });
    const { pid } = await startReady(machine, 'evil', port);
    // A user of its own, where the platform may choose one: other processes, and files of other services, are not its.
    const [uid, own] = [Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]), process.getuid?.() ?? -1];
    expect(own === 0 ? uid >= 61_184 && uid <= 65_519 : uid === own).toBe(true);
    expect([
      statSync(join(dataDir, 'verticals', 'evil')).uid,
      statSync(join(dataDir, 'verticals', 'evil', 'keys', 'evil', 'database.key')).uid,
    ]).toEqual([uid, uid]);
    for (const file of ['contract', 'setup']) {
      const tried = JSON.parse(readFileSync(join(note, file), 'utf8')) as Record<string, string>;
      expect([file, tried]).toMatchObject([file, DENIED]);
      expect([tried['own files'], tried['addon'] === 'done', tried['library'] === 'done']).toEqual(['done', false, false]);
    }
  });

  test('F-04 that turns in circles gives no sign of life, and the host says so', async () => {
    await world.vertical('circles', { setup: 'setTimeout(() => { for (;;) ; }, 1500)' });
    const host = await world.host({ silentMs: 2_500 });
    const heard: ProcessNews[] = [];
    const id = await startReady(host, 'circles', port + 1, heard);
    await eventually(() => heard.at(-1)).toEqual({ type: 'failed', reason: 'gave no sign of life for 2.5 s', absent: false });
    expect(host.signal(id, 'SIGKILL')).toBe(true);
    await eventually(() => heard.at(-1)?.type).toBe('exited');
  });

  test.each([
    [
      'that leaks ends by itself, at the size it may have',
      'leaks',
      'globalThis.kept = []; setInterval(() => { for (let n = 0; n < 200; n++) kept.push(Array(10_000).fill(Math.random())); }, 1)',
    ],
    ['that ends its process ends its own', 'exits', 'setTimeout(() => process.exit(7), 200)'],
  ])('F-04 %s', async (_, name, setup) => {
    await world.vertical(name, { setup });
    const host = await world.host();
    const heard: ProcessNews[] = [];
    const id: ProcessId = (await host.prepare({ service_type: name, port: port + 2 }))(news => void heard.push(news));
    await eventually(() => heard.at(-1)?.type).toBe('exited');
    expect(heard.at(-1)).toEqual({
      type: 'exited',
      reason: name === 'exits' ? 'ended (7)' : expect.stringMatching(/ended \((134|SIGABRT|SIGTRAP|133)\)/),
    });
    expect(host.isAlive(id)).toBe(false);
  });

  test('F-04 whose contract is hostile is read in a process that may do nothing, and one that never ends is given up', async () => {
    const directory = await world.vertical('reader', {
      contract: `const { readFileSync } = await import('node:fs'); readFileSync(${JSON.stringify(
        join(dataDir, 'keys', 'sys', 'database.key'),
      )})`,
    });
    await expect(readBehindWalls(directory)).rejects.toThrow(/restricted/);
    const quitter = await world.vertical('quitter', { contract: 'process.exit(0)' });
    await expect(readBehindWalls(quitter)).rejects.toThrow('ends its process before it is read');
  });

  test('F-04 whose folder nobody else may enter runs as the platform does, and is told so', async () => {
    const directory = await world.vertical('closed');
    chmodSync(directory, 0o700);
    const warned: string[] = [];
    const host = await world.host({
      log: { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_, message) => void warned.push(message) },
    });
    const { pid } = await startReady(host, 'closed', port + 3);
    const root = process.getuid?.() === 0;
    expect(Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])).toBe(process.getuid?.());
    expect(warned.some(line => line.startsWith("a vertical runs as the platform's user"))).toBe(root);
  });

  test('may read every published contract', () => {
    const directory = join(dataDir, 'reader');
    mkdirSync(directory, { recursive: true });
    const contracts = new URL('../../../sdk/contracts/index.ts', import.meta.url).href;
    const run = spawnSync(process.execPath, [...wallFlags({ directory }), '--input-type=module', '-e', `await import('${contracts}')`], {
      encoding: 'utf8',
    });
    expect([run.status, run.stderr]).toEqual([0, expect.not.stringContaining('restricted')]);
  });

  test('F-04 whose folder has a link that leads out of it is not started', async () => {
    const directory = await world.vertical('linked');
    symlinkSync(join(dataDir, 'keys'), join(directory, 'lib'));
    expect(() => wallFlags({ directory })).toThrow("is a link that leads out of the plugin's folder");
  });
});
