import type { Logger } from '@platform/sdk';
import { expect, test } from 'vitest';
import { Directory, type DirectoryStore } from './directory.ts';

/** A directory over rows of one service each, whose time stands still until it is moved. */
function directoryOf(rows: Readonly<Record<string, readonly object[]>>) {
  const at = { now: 1_000_000, away: false };
  const store = {
    hashValues: async (key: string) => {
      if (at.away) throw new Error('Connection is closed.');
      return (rows[key.replace('captain:svc:', '')] ?? []).map(row =>
        JSON.stringify({ ip: '10.0.0.1', status: 'Active', last_health_at: new Date(at.now).toISOString(), ...row }),
      );
    },
  };
  const directory = new Directory(store as unknown as DirectoryStore, { debug: () => undefined } as unknown as Logger, () => at.now);
  const picked = async (service: string, times: number) => {
    const ports: (number | undefined)[] = [];
    for (let turn = 0; turn < times; turn++) ports.push((await directory.pick(service))?.port);
    return ports;
  };
  return { directory, at, picked };
}
const address = (port: number) => ({ ip: '10.0.0.1', port });

test('ING-006 who is not Active, or was not heard of for thirty seconds, gets nothing', async () => {
  const ago = (ms: number) => new Date(1_000_000 - ms).toISOString();
  const { directory } = directoryOf({
    echo: [
      { port: 1, last_health_at: ago(29_999) },
      { port: 2, last_health_at: ago(30_000) },
      { port: 3, last_health_at: null },
      ...['Starting', 'Inactive', 'Stopping', 'Stopped', 'Killed'].map((status, index) => ({ port: 10 + index, status })),
    ],
  });
  expect((await directory.instances('echo')).map(({ port }) => port)).toEqual([1]);
});

test('ING-042 each service goes round its own instances, also when two are asked in turn', async () => {
  const rows = [{ port: 1 }, { port: 2 }];
  const { directory, picked } = directoryOf({ one: rows, two: rows });
  expect(await picked('one', 4)).toEqual([1, 2, 1, 2]);
  const seen = { one: [] as unknown[], two: [] as unknown[] };
  for (let turn = 0; turn < 4; turn++)
    for (const service of ['one', 'two'] as const) seen[service].push((await directory.pick(service))?.port);
  expect(seen).toEqual({ one: [1, 2, 1, 2], two: [1, 2, 1, 2] });
});

test('ING-042 H-26 one failure passes an instance over for thirty seconds, or until it answered', async () => {
  const { directory, at, picked } = directoryOf({ echo: [{ port: 1 }, { port: 2 }] });
  directory.suspect(address(1));
  expect([await picked('echo', 3), directory.suspectUntil(address(1)), directory.suspectUntil(address(2))]).toEqual([
    [2, 2, 2],
    at.now + 30_000,
    undefined,
  ]);
  at.now += 29_999;
  expect(await picked('echo', 2)).toEqual([2, 2]);
  at.now += 1;
  expect((await picked('echo', 2)).toSorted()).toEqual([1, 2]);
  directory.suspect(address(1));
  directory.trust(address(1));
  expect((await picked('echo', 2)).toSorted()).toEqual([1, 2]);
});

test('ING-043 when all are suspect they take turns as if none were', async () => {
  const { directory, picked } = directoryOf({ echo: [{ port: 1 }, { port: 2 }] });
  for (const port of [1, 2]) directory.suspect(address(port));
  expect(await picked('echo', 4)).toEqual([1, 2, 1, 2]);
});

test('while the store is away the last known addresses serve on, whatever is suspected meanwhile', async () => {
  const { directory, at, picked } = directoryOf({ echo: [{ port: 1 }, { port: 2 }] });
  expect(await picked('echo', 2)).toEqual([1, 2]);
  at.away = true;
  directory.suspect(address(1));
  at.now += 10_000;
  expect(await picked('echo', 3)).toEqual([2, 2, 2]);
});
