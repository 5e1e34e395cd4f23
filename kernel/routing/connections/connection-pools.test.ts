import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { BackendGround, codeOf, OK } from '../fixtures/backend-ground.ts';

const ground = BackendGround.use();
const { backend, poolsTo } = ground;

describe('F-16 F-17 the connections of a caller', () => {
  const get = { method: 'GET', path: '/', headers: {} };

  test('F-16 a thousand requests that no client library writes are refused, and cost neither a connection nor trust in the backend', async () => {
    const { port, seen } = await backend(socket => socket.write(OK));
    const { pools, told } = poolsTo(port);
    const odd = [
      { ...get, path: '*' },
      { ...get, path: 'https://elsewhere/' },
      { ...get, path: '/a b' },
      { ...get, method: 'CONNECT' },
      { ...get, method: 'GET /' },
      { ...get, headers: { 'x-odd': 'a\r\nb' } },
      { ...get, headers: { 'x odd': 'a' } },
      { method: 'POST', path: '/', headers: { 'content-length': '1' }, body: '{}' },
    ];
    for (const init of odd)
      for (let turn = 0; turn < 1_000; turn++)
        expect(await codeOf(pools.request(ground.caller, 'probe', init))).toMatch(/^(malformed|method_not_allowed)$/);
    expect([seen, told]).toEqual([[], []]);
    expect(pools.figures).toMatchObject({ backend_requests: 0, backend_lost_total: 0 });
    expect(
      (
        await pools.request(ground.caller, 'probe', {
          ...get,
          headers: { expect: '100-continue', connection: 'x-odd', 'x-odd': '1', te: 'trailers' },
        })
      ).statusCode,
    ).toBe(200);
    expect(seen[0]).not.toMatch(/expect|x-odd|te:/i);
  });

  test('F-16 whoever finds every connection in use is told so, and when one is lost the next takes its place', async () => {
    const held: TLSSocket[] = [];
    const { port } = await backend((socket, request) => (request.includes('/held') ? void held.push(socket) : void socket.write(OK)));
    const { pools } = poolsTo([port], { connections: 1, waitMs: 100 });
    const first = codeOf(pools.request(ground.caller, 'probe', { ...get, method: 'POST', path: '/held' }));
    await expect.poll(() => held.length).toBe(1);
    expect(await codeOf(pools.request(ground.caller, 'probe', get))).toBe('no_backend');
    held[0]?.destroy();
    expect(await first).toBe('backend_unreachable');
    expect(pools.figures).toMatchObject({ backend_lost_total: 1, backend_refused_total: 1 });
    // A handshake may take a slow machine longer than the wait of this pool.
    await expect.poll(() => codeOf(pools.request(ground.caller, 'probe', get))).toBe('ok');
    expect(pools.figures).toMatchObject({ backend_lost_total: 1 });
    expect(ground.said).toContainEqual(expect.objectContaining({ pool: expect.stringContaining('caller probe'), refused: 1 }));
  });

  test('ING-042 H-27 whoever waited for a connection to an instance that is suspected by then is sent elsewhere', async () => {
    const held: TLSSocket[] = [];
    const one = await backend(socket => void held.push(socket));
    const two = await backend(socket => socket.write(OK));
    const { pools, told } = poolsTo([one.port, one.port, two.port], { connections: 1, waitMs: 100 });
    const first = codeOf(pools.request(ground.caller, 'probe', get));
    await expect.poll(() => held.length).toBe(1);
    told.push('suspect 0');
    expect((await pools.request(ground.caller, 'probe', get)).statusCode).toBe(200);
    expect([one.seen.length, two.seen.length]).toEqual([1, 1]);
    held[0]?.write(OK);
    expect(await first).toBe('ok');
  });

  test.each([
    ['a body', undefined],
    ['a body and trailers', () => ({ 'x-sum': '1' })],
  ])('F-17 a backend that answers a request with %s after its client was refused changes nothing of that answer', async (_, trailers) => {
    const reached = Promise.withResolvers<TLSSocket>();
    const { port } = await backend(socket => reached.resolve(socket));
    const { pools, told } = poolsTo(port);
    const forwarded = Promise.withResolvers<string>();
    const front = createHttpServer(async (req, res) => {
      const body = new PassThrough().on('error', () => undefined);
      body.write('the beginning');
      const work = pools.facade(() => ground.caller).forward('probe', { req, res, headers: {}, body, trailers });
      const late = await reached.promise;
      res.writeHead(403).write('refused');
      late.write(OK);
      forwarded.resolve(await codeOf(work));
      res.end(' whole');
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    ground.closing.push(async () => void front.close());
    const answer = await fetch(`http://127.0.0.1:${(front.address() as AddressInfo).port}/`, { method: 'POST', body: 'x' });
    expect([answer.status, await answer.text()]).toEqual([403, 'refused whole']);
    expect([await forwarded.promise, told]).toEqual([expect.stringContaining('answered already'), []]);
    await expect.poll(() => pools.figures).toMatchObject({ backend_streams: 0, backend_requests: 0, backend_lost_total: 0 });
  });

  test('F-17 long polls, streams and streamed bodies leave the one ordinary connection to others', async () => {
    const { port, seen } = await backend((socket, request) => (request.includes('/held') ? undefined : void socket.write(OK)));
    const { pools } = poolsTo([port], { connections: 1, waitMs: 1_000 });
    const gone = new AbortController();
    const { fetch } = pools.facade(() => ground.caller);
    const lasting = [
      ...Array.from({ length: 5 }, () => fetch('probe', '/held', { ...get, signal: gone.signal, longPoll: true })),
      ...Array.from({ length: 5 }, () =>
        fetch('probe', '/held', { ...get, signal: gone.signal, headers: { accept: 'text/event-stream' } }),
      ),
      ...Array.from({ length: 5 }, () =>
        fetch('probe', '/held', {
          method: 'POST',
          headers: {},
          signal: gone.signal,
          body: new ReadableStream({ start: body => body.enqueue(Buffer.from('a')) }),
        }),
      ),
    ].map(work => codeOf(work));
    await expect.poll(() => seen.filter(text => text.includes('/held')).length).toBe(15);
    for (let turn = 0; turn < 3; turn++) expect(await codeOf(fetch('probe', '/', get).then(response => response.text()))).toBe('ok');
    expect(pools.figures).toMatchObject({ backend_streams: 15, backend_requests: 0 });
    gone.abort(new Error('over'));
    await Promise.all(lasting);
    expect(pools.figures).toMatchObject({ backend_streams: 0, backend_lost_total: 0 });
  });

  test('F-17 an answer that nobody reads gives its connection back', async () => {
    const { port } = await backend(socket => socket.write(OK));
    const { pools } = poolsTo([port], { connections: 1, waitMs: 1_000 });
    for (let turn = 0; turn < 5; turn++) expect((await pools.request(ground.caller, 'probe', get)).statusCode).toBe(200);
  });
});
