import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { type FailedPlugin, readAll } from './plugin-intake.ts';
import { PluginWatch } from './plugin-watch.ts';

const described = JSON.stringify({
  name: 'x',
  version: '1.0.0',
  type: 'module',
  platform: { contract: 'contract.js', plugin: 'plugin.js' },
});
const contractOf = (id: string) =>
  `export const it = { base: { id: '${id}', title: 'T', vertical: 'lab', placement: { tier: 50 } }, actions: {}, problems: {}, events: {}, routes: {} };`;

let root: string;
let clock: ManualClock;
let failed: FailedPlugin[];
let started: string[];
let lines: string[];
let watch: PluginWatch;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'platform-test-'));
  [clock, failed, started, lines] = [new ManualClock(), [], [], []];
  watch = new PluginWatch({
    directories: [root],
    known: [],
    failed,
    clock,
    start: async ({ manifest }) => {
      if (manifest.id === 'sick') throw new Error('no good');
      started.push(manifest.id);
    },
    log: { error: (fields, message) => void lines.push(`${message} ${JSON.stringify(fields)}`), warn: () => undefined },
    progress: text => void lines.push(text),
  });
});
afterEach(async () => {
  await watch[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});
let writes = 0;
const write = (name: string, text: string) => {
  mkdirSync(join(root, name, '..'), { recursive: true });
  // Files that are written within one tick of the disk's clock still differ by their size.
  writeFileSync(join(root, name), `${text}${' '.repeat(++writes)}\n`);
};
const whole = (folder: string, id = folder) => {
  write(`${folder}/contract.js`, contractOf(id));
  write(`${folder}/plugin.js`, 'export default 1;');
  write(`${folder}/package.json`, described);
};
const look = () => clock.advance('1s');

describe('a watched plugin folder', () => {
  test.each<[string, string, string, string]>([
    ['package.json', 'half/package.json', described.slice(0, 40), described],
    ['contract', 'half/contract.js', 'export const it = {', contractOf('half')],
    ['module of the contract', 'half/id.js', 'export const id = "ha', 'export const id = "half";'],
  ])(
    'F-40 with a half-written %s is named and left alone; the next one comes up, and this one when it is whole',
    async (_, file, half, mended) => {
      whole('half');
      write('half/contract.js', `import { id } from './id.js'; ${contractOf("' + id + '")}`);
      write('half/id.js', 'export const id = "half";');
      write(file, half);
      whole('zebra');
      await look();
      expect([started, failed.map(({ plugin }) => plugin)]).toEqual([['zebra'], [join(root, 'half')]]);
      expect(lines.filter(line => line.includes('read again when it changes') && line.includes(join(root, 'half')))).toHaveLength(1);
      await look();
      expect(lines.filter(line => line.includes('read again when it changes'))).toHaveLength(1);
      write(file, mended);
      await look();
      expect([started, failed]).toEqual([['zebra', 'half'], []]);
    },
  );

  test('F-40 that is filled after it was made comes up when its last file is there', async () => {
    mkdirSync(join(root, 'slow'));
    await look();
    write('slow/package.json', '{');
    await look();
    write('slow/package.json', described);
    await look();
    write('slow/contract.js', contractOf('slow'));
    await look();
    expect([started, failed]).toEqual([['slow'], []]);
  });

  test('F-40 with the id of one that runs is named and left alone', async () => {
    whole('first', 'twin');
    await look();
    whole('second', 'twin');
    await look();
    expect([started, failed]).toEqual([['twin'], [{ plugin: join(root, 'second'), reason: expect.stringContaining('E004 twin.id') }]]);
  });

  test('F-40 that vanishes while it is looked at, or whose process does not start, keeps nobody from coming up', async () => {
    whole('sick');
    write('gone/package.json', '{');
    await look();
    rmSync(join(root, 'gone'), { recursive: true });
    whole('well');
    await look();
    expect([started, failed]).toEqual([['well'], [{ plugin: 'sick', reason: 'no good' }]]);
  });
});

test('F-40 a half-written package.json at the start fails its folder alone', async () => {
  write('half/package.json', '{ "name": ');
  whole('whole');
  const { verticals } = await readAll({ pluginDirs: [root], services: [] }, failed);
  expect([verticals.map(({ manifest }) => manifest.id), failed]).toEqual([
    ['whole'],
    [{ plugin: join(root, 'half'), reason: expect.stringContaining(`${join(root, 'half', 'package.json')} cannot be read`) }],
  ]);
});
