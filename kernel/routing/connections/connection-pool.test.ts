import { EventEmitter } from 'node:events';
import { FairShare, isProblem, type Logger } from '@platform/sdk';
import type { Client } from 'undici';
import { describe, expect, test } from 'vitest';
import { type BackendLimits, ConnectionPool, type Lease } from './connection-pool.ts';

/** A pool whose connections only say what became of them, and whose time stands still until it is moved. */
function poolOf(limits: Partial<BackendLimits> = {}) {
  const [gone, said]: [Error[], object[]] = [[], []];
  const opened: EventEmitter[] = [];
  const at = { now: 0 };
  const all: BackendLimits = { connections: 2, streams: 8, streamsPerAddress: 3, waitMs: 1_000, ...limits };
  const pool = new ConnectionPool({
    name: 'caller probe',
    connect: () => {
      const made = Object.assign(new EventEmitter(), { destroy: async (error?: Error) => void (error && gone.push(error)) });
      opened.push(made);
      return made as unknown as Client;
    },
    limits: all,
    lasting: new FairShare({ total: all.streams, perParty: all.streamsPerAddress, atBound: 'refuse' }),
    log: { warn: (fields: object) => void said.push(fields) } as unknown as Logger,
    now: () => at.now,
  });
  const take = (party = 'a', long = false, signal?: AbortSignal) => pool.take({ long, party, signal });
  return { pool, at, gone, said, take, opened };
}
const codeOf = async (work: Promise<Lease>) =>
  work.then(
    () => 'lent',
    (error: unknown) => (isProblem(error) ? `${error.status} ${error.code} ${error.headers['retry-after']}` : String(error)),
  );

describe('F-16 a wait for a connection', () => {
  test('F-16 ends with 503 when none came free in time, and a line in the log says so', async () => {
    const { pool, at, said, take } = poolOf();
    await Promise.all([take(), take()]);
    const late = codeOf(take());
    at.now = 249;
    const later = codeOf(take());
    at.now = 250;
    // Those that lasted make room for one each; nobody is left who lasted a moment for a third.
    expect([await late, await later]).toEqual(['lent', 'lent']);
    const never = codeOf(take());
    at.now = 498;
    const gone = new AbortController();
    const given = codeOf(take('a', false, gone.signal));
    gone.abort(new Error('gave up'));
    expect(await given).toBe('Error: gave up');
    pool.close();
    expect(await never).toBe('503 no_backend 3');
    expect(said).toEqual([expect.objectContaining({ pool: 'caller probe', refused: 1 })]);
  });

  test('F-16 a burst is served by the connections that are there first, and makes sixteen at once', async () => {
    const { pool, take, opened } = poolOf({ connections: 64 });
    const lent: Lease[] = [];
    const all = Array.from({ length: 40 }, () => take().then(lease => lent.push(lease)));
    await Promise.all(all.slice(0, 16));
    expect([lent.length, opened.length, pool.figures.waiting]).toEqual([16, 16, 24]);
    // One is there, so another may be made; one that failed makes room for the next; what was answered serves again.
    opened[0]?.emit('connect');
    await Promise.all(all.slice(0, 17));
    pool.takeBack(lent[1] as Lease, 'lost', new Error('refused'));
    await Promise.all(all.slice(0, 18));
    expect(opened.length).toBe(18);
    for (let turn = 18; turn < 40; turn++) {
      pool.takeBack(lent[0] as Lease, 'sound');
      await Promise.all(all.slice(0, turn + 1));
      lent[0] = lent.at(-1) as Lease;
    }
    expect([opened.length, pool.figures.waiting]).toEqual([18, 0]);
  });

  test('F-17 nobody waits behind all of somebody else', async () => {
    const { pool, take } = poolOf({ connections: 1 });
    const first = await take('greedy');
    const order: string[] = [];
    const given = [...Array.from({ length: 3 }, () => 'greedy'), 'other'].map(party =>
      take(party).then(lease => {
        order.push(party);
        pool.takeBack(lease, 'sound');
      }),
    );
    pool.takeBack(first, 'sound');
    await Promise.all(given);
    expect(order).toEqual(['greedy', 'other', 'greedy', 'greedy']);
  });

  test('F-16 a connection that failed costs no place, is never lent again, and is told of', async () => {
    const { pool, said, take } = poolOf();
    const clients = new Set<unknown>();
    for (let turn = 0; turn < 1_000; turn++) {
      const lease = await take();
      clients.add(lease.client);
      pool.takeBack(lease, 'lost', new Error('reset'));
      // What is taken back twice counts once.
      pool.takeBack(lease, 'sound');
    }
    expect([clients.size, pool.figures]).toEqual([1_000, { ordinary: 0, lasting: 0, waiting: 0, idle: 0, lost: 1_000, refused: 0 }]);
    expect(said).toEqual([expect.objectContaining({ lost: 1, err: new Error('reset') })]);
    const sound = await take();
    pool.takeBack(sound, 'sound');
    expect((await take()).client).toBe(sound.client);
  });
});

describe('F-17 what lasts', () => {
  test('F-17 takes no place of ordinary requests, whether it says so or is found to', async () => {
    const { pool, at, take } = poolOf();
    for (const party of ['a', 'b', 'b']) await take(party, true);
    await Promise.all([take('c'), take('d')]);
    at.now = 250;
    await Promise.all([take('e'), take('f')]);
    expect(pool.figures).toMatchObject({ ordinary: 2, lasting: 5 });
  });

  test('F-17 is bounded for each address: one more is 429, and a slow one of such an address is ended for the next request', async () => {
    const { pool, at, gone, take } = poolOf();
    for (let held = 0; held < 3; held++) await take('greedy', true);
    expect(await codeOf(take('greedy', true))).toBe('429 too_many_streams 5');
    const slow = await take('greedy');
    await take('greedy');
    at.now = 250;
    const next = take('other');
    expect([gone, slow.ended]).toEqual([[new Error('the connection was needed for somebody else')], true]);
    // Its exchange fails, and the connection comes back; that is no loss of the pool's.
    pool.takeBack(slow, 'lost', gone[0]);
    await next;
    expect(pool.figures).toMatchObject({ ordinary: 2, lasting: 3, lost: 0 });
  });
});
