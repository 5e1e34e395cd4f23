import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { hostOptions } from './boot/options.ts';
import { Host } from './host.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
const dataDir = join(root, 'data');
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A service of the host's own process that fails once the stores are open. */
const faults: Readonly<Record<string, { migration?: string; ready?: string; says: RegExp }>> = {
  migrating: { migration: 'create table broken (', says: /failed to migrate/ },
  'getting ready': { ready: "throw new Error('not today')", says: /failed to start|not today/ },
};

/** A folder for each: code that was loaded once is not read again. */
function broken({ migration = 'select 1', ready = '' }: (typeof faults)[string]): string {
  const directory = join(mkdtempSync(join(root, 'plugins-')), 'broken');
  mkdirSync(join(directory, 'migrations'), { recursive: true });
  const files = {
    'package.json': JSON.stringify({
      name: 'broken',
      version: '1.0.0',
      type: 'module',
      platform: { contract: 'contract.js', plugin: 'plugin.js' },
    }),
    'contract.js': `export const it = { base: { id: 'broken', title: 'T', vertical: 'lab', placement: { tier: 50, memory_mb: 96 } },
      actions: {}, problems: {}, events: {}, routes: {} };`,
    'plugin.js': `import { it } from './contract.js';
      const migrations = new URL('./migrations/', import.meta.url);
      export default { contract: it, uses: {}, migrations, setup: () => ({ routes: {}, ready: async () => { ${ready} } }) };`,
    'migrations/0001_first.sql': migration,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return dirname(directory);
}

/** Processes that were started on the data directory. */
const running = () =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(pid => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')];
      } catch {
        return [];
      }
    })
    .filter(command => command.includes(root));

/** Ports on which this process listens. */
function listening(): string[] {
  const inodes = new Set<string>();
  for (const descriptor of readdirSync('/proc/self/fd')) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`)) ?? [];
      if (inode) inodes.add(inode);
    } catch {
      // It was the one that listed them.
    }
  }
  return ['tcp', 'tcp6'].flatMap(kind =>
    readFileSync(`/proc/self/net/${kind}`, 'utf8')
      .split('\n')
      .map(line => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode = '']) => state === '0A' && inodes.has(inode))
      .map(([, address = '']) => address),
  );
}

test.runIf(process.platform === 'linux').each(Object.entries(faults))(
  'a start that fails at %s leaves no process and no port behind',
  { timeout: 120_000 },
  async (_, fault) => {
    const before = listening();
    const given = { ...process.env, PLATFORM_DATA_DIR: dataDir, PLATFORM_PLUGIN_DIRS: broken(fault), PLATFORM_PROXY_HTTPS_PORT: '0' };
    const said: string[] = [];
    const options = hostOptions(['--trust-verticals', '--prefer-kv', 'wasm'], given, text => said.push(text));
    await expect(Host.start({ ...options, services: [] })).rejects.toThrow(fault.says);
    expect(said).toContain('Migrating');
    expect(running()).toEqual([]);
    expect(listening()).toEqual(before);
  },
);
