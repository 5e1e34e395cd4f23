import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import { BackendPools } from './backend-pools.ts';
import type { Directory } from './directory.ts';
import { BackendGround, codeOf, OK } from './fixtures/backend-ground.ts';

const ground = BackendGround.use();
const { backend, poolsTo } = ground;

describe('a client trusts its platform’s root alone', () => {
  test('KRN-026 a server whose chain ends in another root is refused before a byte of the request', async () => {
    const { port, seen } = await backend(socket => socket.end(OK), ground.rogue);
    const { pools } = poolsTo(port);
    expect(await codeOf(pools.request(ground.caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe('backend_unreachable');
    expect(seen).toEqual([]);
    const good = await backend(socket => socket.end(OK));
    expect(await codeOf(poolsTo(good.port).pools.request(ground.caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe('ok');
    expect(good.seen[0]).toContain('x-platform-service: probe');
  });

  test('a server of ours under another service’s name is refused as well', async () => {
    const { port, seen } = await backend(socket => socket.end(OK), ground.authority, 'other.ops.sys.localhost');
    expect(await codeOf(poolsTo(port).pools.request(ground.caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' }))).toBe(
      'backend_unreachable',
    );
    expect(seen).toEqual([]);
  });
});

test('H-02 a backend whose certificate was revoked is not talked to, nor on the connections there are', async () => {
  let tell: (thumbprint: string) => void = () => undefined;
  const subscribe = async (_channel: string, listener: (message: string) => void) => {
    tell = listener;
    return { [Symbol.asyncDispose]: async () => undefined };
  };
  await using revoked = new RevokedCertificates({
    kv: { call: async () => null, pipeline: async () => [], subscribe },
    log: ground.log,
    now: () => new Date(),
  });
  await revoked.start();
  const { port, seen, thumbprint } = await backend(socket => socket.write(OK));
  const directory = {
    pick: async () => ({ ip: '127.0.0.1', port }),
    suspect: () => undefined,
    trust: () => undefined,
  } as unknown as Directory;
  await using pools = new BackendPools(directory, service => `${service}.ops.sys.localhost`, { log: ground.log, revoked });
  const ask = async () =>
    codeOf(pools.request(ground.caller, 'probe', { method: 'GET', path: '/', headers: {} }).then(({ body }) => body.text()));
  expect(await ask()).toBe('ok');
  tell(thumbprint);
  expect([await ask(), seen.length]).toEqual(['backend_unreachable', 1]);
});

test('item 9: an upload has a connection apart from ordinary requests, whole or as a stream', async () => {
  const { port } = await backend(() => undefined);
  const { pools } = poolsTo(port);
  const going = new AbortController();
  const put = (size: number) =>
    pools
      .facade(() => ground.caller)
      .fetch('probe', '/', { method: 'PUT', headers: {}, body: new Uint8Array(size), signal: going.signal })
      .catch(() => undefined);
  const sent = [put(10), put(65_537)];
  await expect.poll(() => pools.figures).toMatchObject({ backend_requests: 1, backend_streams: 1 });
  going.abort();
  await Promise.all(sent);
});

describe('a second try (H-27)', () => {
  const broken = () => backend(socket => socket.destroy());

  test('ING-041 H-27 a POST that may have arrived is not sent again', async () => {
    const { port, seen } = await broken();
    const { pools, told } = poolsTo(port);
    expect(await codeOf(pools.request(ground.caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' }))).toBe(
      'backend_unreachable',
    );
    expect(seen).toHaveLength(1);
    expect(told).toEqual(['suspect 0']);
  });

  test('ING-041 ING-042 H-27 a GET is, and so is a POST that names its idempotency key, each once and elsewhere', async () => {
    for (const init of [
      { method: 'GET', path: '/', headers: {} },
      { method: 'POST', path: '/', headers: { 'idempotency-key': 'k' }, body: '{}' },
    ]) {
      const [one, two] = [await broken(), await backend(socket => socket.write(OK))];
      const { pools, told } = poolsTo(one.port, two.port);
      expect((await pools.request(ground.caller, 'probe', init)).statusCode).toBe(200);
      expect([one.seen.length, two.seen.length, told]).toEqual([1, 1, ['suspect 0', 'trust 1']]);
    }
  });

  test('a POST that cannot have arrived is sent elsewhere; nobody anywhere is 502', async () => {
    const two = await backend(socket => socket.write(OK));
    const { port } = await backend(() => undefined);
    await ground.closing.pop()?.();
    expect(
      (await poolsTo(port, two.port).pools.request(ground.caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' }))
        .statusCode,
    ).toBe(200);
    expect(await codeOf(poolsTo().pools.request(ground.caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe(
      'backend_unresolved',
    );
  });

  test('ING-042 H-27 what has a connection of its own is sent elsewhere as well, as long as nothing was sent', async () => {
    const two = await backend(socket => socket.end(OK));
    const { port } = await backend(() => undefined);
    await ground.closing.pop()?.();
    const { pools, told } = poolsTo(port, two.port);
    const front = createHttpServer((req, res) => {
      const trailers = () => ({ 'x-sum': '1' });
      void pools.facade(() => ground.caller).forward('probe', { req, res, headers: {}, body: Buffer.from('x'), trailers });
    });
    front.on('upgrade', (req, socket, head) => {
      void pools.facade(() => ground.caller).upgrade('probe', { req, socket, head, headers: {} });
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    ground.closing.push(async () => void front.close());
    const at = { host: '127.0.0.1', port: (front.address() as AddressInfo).port, agent: false as const };
    for (const headers of [{}, { connection: 'upgrade', upgrade: 'websocket' }]) {
      const outgoing = request({ ...at, headers });
      outgoing.end();
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      expect(answer.resume().statusCode).toBe(200);
    }
    expect(told.filter(word => word.startsWith('suspect'))).toEqual(['suspect 0', 'suspect 0']);
  });
});

describe('a connection to a backend', () => {
  const get = { method: 'GET', path: '/', headers: {} };
  const said = async (pools: BackendPools, init: object = get) => (await pools.request(ground.caller, 'probe', init as never)).body.text();
  /** A backend that numbers its connections, and says on which one it answers. */
  const counting = async (answer: (socket: TLSSocket, connection: number, request: string) => void) => {
    const connections = new Map<TLSSocket, number>();
    return backend((socket, request) => {
      if (!connections.has(socket)) connections.set(socket, connections.size + 1);
      answer(socket, connections.get(socket) ?? 0, request);
    });
  };
  const answered = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;

  test('ING-039 comes from the idle ones of its address and name; another address has its own', async () => {
    const one = await counting((socket, connection) => socket.write(answered(`one ${connection}`)));
    const two = await counting((socket, connection) => socket.write(answered(`two ${connection}`)));
    const { pools } = poolsTo(one.port, two.port);
    expect([await said(pools), await said(pools), await said(pools), await said(pools)]).toEqual(['one 1', 'two 1', 'one 1', 'two 1']);
    // Under another name the same address is asked for a connection of that name, which this server has not.
    expect(await codeOf(pools.request(ground.caller, 'other', { ...get, method: 'POST' }))).toBe('backend_unreachable');
  });

  test('ING-040 serves one request at a time: a second takes another one', async () => {
    const held: [TLSSocket, number][] = [];
    const { port } = await counting((socket, connection) => held.push([socket, connection]));
    const { pools } = poolsTo(port);
    const both = [said(pools), said(pools)];
    await expect.poll(() => held.length).toBe(2);
    for (const [socket, connection] of held) socket.write(answered(String(connection)));
    expect((await Promise.all(both)).toSorted()).toEqual(['1', '2']);
  });

  test('ING-041 that went stale fails once; the second try is on a new one, though more idle ones are there', async () => {
    const held: TLSSocket[] = [];
    const { port, seen } = await counting((socket, connection, request) => {
      if (request.includes('/first')) held.push(socket);
      // The first two are over when they are used again.
      else if (connection <= 2) socket.destroy();
      else socket.write(answered(`fresh ${connection}`));
    });
    const { pools } = poolsTo(port);
    const both = [said(pools, { ...get, path: '/first' }), said(pools, { ...get, path: '/first' })];
    await expect.poll(() => held.length).toBe(2);
    for (const socket of held) socket.write(answered('ok'));
    await Promise.all(both);
    await expect.poll(() => pools.figures['backend_idle']).toBe(2);
    expect(await said(pools)).toBe('fresh 3');
    expect(seen).toHaveLength(4);
  });
});
