import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { reasonOf } from '@platform/sdk';
import { afterAll, expect, test } from 'vitest';
import { hostOptions } from './boot/options.ts';
import { Host } from './host.ts';
import { readPlugin } from './plugin/loader.ts';
import { importAll } from './plugin/plugin-intake.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
const dataDir = join(root, 'data');
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A service of the host's own process that fails once the stores are open. */
interface Fault {
  readonly migration?: string;
  readonly setup?: string;
  readonly ready?: string;
  readonly top?: string;
  readonly says: RegExp;
}
const faults: Readonly<Record<string, Fault>> = {
  'setting up': { setup: "throw new Error('no tools')", says: /broken failed to set up: no tools/ },
  migrating: { migration: 'create table broken (', says: /failed to migrate/ },
  'getting ready': { ready: "throw new Error('not today')", says: /failed to start|not today/ },
};

/** A folder for each: code that was loaded once is not read again. */
function broken({ migration = 'select 1', setup = '', ready = '', top = '' }: Partial<Fault>): string {
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
      export default { contract: it, uses: {}, migrations,
        setup: () => { ${setup}; return { routes: {}, ready: async () => { ${ready} } }; } };
      ${top}`,
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
    expect(await Host.start({ ...options, services: [] }).then(() => 'it started', reasonOf)).toMatch(fault.says);
    expect(said).toContain('Migrating');
    expect(running()).toEqual([]);
    expect(listening()).toEqual(before);
  },
);

test('code that throws at import is named with its reason: of the platform it ends the start, of a vertical it is left out', async () => {
  const found = await readPlugin(join(broken({ top: "throw new Error('torn apart')" }), 'broken'));
  const left: { plugin: string; reason: string }[] = [];
  expect(await importAll([found], new Map(), left)).toEqual([]);
  expect(left).toEqual([{ plugin: 'broken', reason: 'torn apart' }]);
  const ours = { ...found, manifest: { ...found.manifest, vertical: 'platform' } };
  expect(await importAll([ours], new Map(), []).then(() => 'it was loaded', reasonOf)).toBe('broken failed to load: torn apart');
});
