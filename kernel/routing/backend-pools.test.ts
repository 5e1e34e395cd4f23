import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { get, isProblem, type Logger, post, Type } from '@platform/sdk';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, anchorsOf, openAuthority } from '../identity/certificates/trust-anchors.ts';
import { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import { Workload } from '../identity/workload.ts';
import { inScope } from '../telemetry/request-scope.ts';
import { BackendPools } from './backend-pools.ts';
import type { Directory } from './directory.ts';
import { type LocalService, ServiceCaller } from './service-caller.ts';

const said: Record<string, unknown>[] = [];
const log = {
  debug: () => undefined,
  info: () => undefined,
  warn: (fields: object) => void said.push(fields as Record<string, unknown>),
  error: () => undefined,
} as unknown as Logger;
const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
let authority: Authority;
let rogue: Authority;
let caller: Workload;
const closing: (() => Promise<void>)[] = [];
beforeAll(async () => {
  [authority, rogue] = [await openAuthority(root), await openAuthority(join(root, 'rogue'))];
  caller = await Workload.open({
    name: 'caller',
    directory: join(root, 'keys'),
    anchors: anchorsOf(authority),
    pqMode: 'strict',
    hostnames: [],
    kinds: ['client'],
    mint: async ({ csr }) =>
      (
        await authority.pq.issue({
          commonName: 'm2m-caller',
          names: ['uri:urn:platform:workload:caller'],
          usages: ['client'],
          days: 1,
          csr,
        })
      ).chain,
  });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A server of bytes: it counts the requests it reads, and `answer` says what it does with each. */
async function backend(answer: (socket: TLSSocket, request: string) => void, by: Authority = authority, name = 'probe.ops.sys.localhost') {
  const leaf = await by.pq.issue({ commonName: name, names: [`dns:${name}`], usages: ['server'], days: 1 });
  const seen: string[] = [];
  const sockets = new Set<TLSSocket>();
  const server: Server = createServer(
    {
      cert: leaf.chain,
      key: leaf.key as string,
      ca: authority.pq.files.rootCertificate,
      requestCert: true,
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
    },
    socket => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', chunk => {
        seen.push(chunk.toString());
        answer(socket, chunk.toString());
      });
    },
  );
  server.on('tlsClientError', () => undefined);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise(resolve => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, seen, thumbprint: leaf.thumbprint };
}
/** Pools over fixed addresses, with what the directory was told of them. */
function poolsTo(given: number | readonly number[] = [], limits: object | number = {}) {
  const ports = typeof given === 'number' ? [given, ...(typeof limits === 'number' ? [limits] : [])] : given;
  const told: string[] = [];
  let turn = 0;
  const directory = {
    pick: async () => (ports.length === 0 ? undefined : { ip: '127.0.0.1', port: ports[turn++ % ports.length] }),
    suspect: ({ port }: { port: number }) => void told.push(`suspect ${ports.indexOf(port)}`),
    suspectUntil: ({ port }: { port: number }) => (told.includes(`suspect ${ports.indexOf(port)}`) ? 1 : undefined),
    trust: ({ port }: { port: number }) => void told.push(`trust ${ports.indexOf(port)}`),
  } as unknown as Directory;
  const pools = new BackendPools(directory, service => `${service}.ops.sys.localhost`, {
    log,
    limits: typeof limits === 'number' ? {} : limits,
  });
  closing.push(() => pools[Symbol.asyncDispose]());
  return { pools, told };
}
const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}';
const codeOf = async (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: unknown) => (isProblem(error) ? error.code : String(error)),
  );

describe('a client trusts its platform’s root alone', () => {
  test('KRN-026 a server whose chain ends in another root is refused before a byte of the request', async () => {
    const { port, seen } = await backend(socket => socket.end(OK), rogue);
    const { pools } = poolsTo(port);
    expect(await codeOf(pools.request(caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe('backend_unreachable');
    expect(seen).toEqual([]);
    const good = await backend(socket => socket.end(OK));
    expect(await codeOf(poolsTo(good.port).pools.request(caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe('ok');
    expect(good.seen[0]).toContain('x-platform-service: probe');
  });

  test('a server of ours under another service’s name is refused as well', async () => {
    const { port, seen } = await backend(socket => socket.end(OK), authority, 'other.ops.sys.localhost');
    expect(await codeOf(poolsTo(port).pools.request(caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' }))).toBe(
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
    log,
    now: () => new Date(),
  });
  await revoked.start();
  const { port, seen, thumbprint } = await backend(socket => socket.write(OK));
  const directory = {
    pick: async () => ({ ip: '127.0.0.1', port }),
    suspect: () => undefined,
    trust: () => undefined,
  } as unknown as Directory;
  await using pools = new BackendPools(directory, service => `${service}.ops.sys.localhost`, { log, revoked });
  const ask = async () => codeOf(pools.request(caller, 'probe', { method: 'GET', path: '/', headers: {} }).then(({ body }) => body.text()));
  expect(await ask()).toBe('ok');
  tell(thumbprint);
  expect([await ask(), seen.length]).toEqual(['backend_unreachable', 1]);
});

describe('a second try (H-27)', () => {
  const broken = () => backend(socket => socket.destroy());

  test('ING-041 H-27 a POST that may have arrived is not sent again', async () => {
    const { port, seen } = await broken();
    const { pools, told } = poolsTo(port);
    expect(await codeOf(pools.request(caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' }))).toBe(
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
      expect((await pools.request(caller, 'probe', init)).statusCode).toBe(200);
      expect([one.seen.length, two.seen.length, told]).toEqual([1, 1, ['suspect 0', 'trust 1']]);
    }
  });

  test('a POST that cannot have arrived is sent elsewhere; nobody anywhere is 502', async () => {
    const two = await backend(socket => socket.write(OK));
    const { port } = await backend(() => undefined);
    await closing.pop()?.();
    expect(
      (await poolsTo(port, two.port).pools.request(caller, 'probe', { method: 'POST', path: '/', headers: {}, body: '{}' })).statusCode,
    ).toBe(200);
    expect(await codeOf(poolsTo().pools.request(caller, 'probe', { method: 'GET', path: '/', headers: {} }))).toBe('backend_unresolved');
  });

  test('ING-042 H-27 what has a connection of its own is sent elsewhere as well, as long as nothing was sent', async () => {
    const two = await backend(socket => socket.end(OK));
    const { port } = await backend(() => undefined);
    await closing.pop()?.();
    const { pools, told } = poolsTo(port, two.port);
    const front = createHttpServer((req, res) => {
      const trailers = () => ({ 'x-sum': '1' });
      void pools.facade(() => caller).forward('probe', { req, res, headers: {}, body: Buffer.from('x'), trailers });
    });
    front.on('upgrade', (req, socket, head) => {
      void pools.facade(() => caller).upgrade('probe', { req, socket, head, headers: {} });
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    closing.push(async () => void front.close());
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
        expect(await codeOf(pools.request(caller, 'probe', init))).toMatch(/^(malformed|method_not_allowed)$/);
    expect([seen, told]).toEqual([[], []]);
    expect(pools.figures).toMatchObject({ backend_requests: 0, backend_lost_total: 0 });
    expect(
      (
        await pools.request(caller, 'probe', {
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
    const first = codeOf(pools.request(caller, 'probe', { ...get, method: 'POST', path: '/held' }));
    await expect.poll(() => held.length).toBe(1);
    expect(await codeOf(pools.request(caller, 'probe', get))).toBe('no_backend');
    held[0]?.destroy();
    expect(await first).toBe('backend_unreachable');
    expect(await codeOf(pools.request(caller, 'probe', get))).toBe('ok');
    expect(pools.figures).toMatchObject({ backend_lost_total: 1, backend_refused_total: 1 });
    expect(said).toContainEqual(expect.objectContaining({ pool: expect.stringContaining('caller probe'), refused: 1 }));
  });

  test('ING-042 H-27 whoever waited for a connection to an instance that is suspected by then is sent elsewhere', async () => {
    const held: TLSSocket[] = [];
    const one = await backend(socket => void held.push(socket));
    const two = await backend(socket => socket.write(OK));
    const { pools, told } = poolsTo([one.port, one.port, two.port], { connections: 1, waitMs: 100 });
    const first = codeOf(pools.request(caller, 'probe', get));
    await expect.poll(() => held.length).toBe(1);
    told.push('suspect 0');
    expect((await pools.request(caller, 'probe', get)).statusCode).toBe(200);
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
      const work = pools.facade(() => caller).forward('probe', { req, res, headers: {}, body, trailers });
      const late = await reached.promise;
      res.writeHead(403).write('refused');
      late.write(OK);
      forwarded.resolve(await codeOf(work));
      res.end(' whole');
    }).listen(0, '127.0.0.1');
    await once(front, 'listening');
    closing.push(async () => void front.close());
    const answer = await fetch(`http://127.0.0.1:${(front.address() as AddressInfo).port}/`, { method: 'POST', body: 'x' });
    expect([answer.status, await answer.text()]).toEqual([403, 'refused whole']);
    expect([await forwarded.promise, told]).toEqual([expect.stringContaining('answered already'), []]);
    await expect.poll(() => pools.figures).toMatchObject({ backend_streams: 0, backend_requests: 0, backend_lost_total: 0 });
  });

  test('F-17 long polls, streams and streamed bodies leave the one ordinary connection to others', async () => {
    const { port, seen } = await backend((socket, request) => (request.includes('/held') ? undefined : void socket.write(OK)));
    const { pools } = poolsTo([port], { connections: 1, waitMs: 100 });
    const gone = new AbortController();
    const { fetch } = pools.facade(() => caller);
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
    const { pools } = poolsTo([port], { connections: 1, waitMs: 100 });
    for (let turn = 0; turn < 5; turn++) expect((await pools.request(caller, 'probe', get)).statusCode).toBe(200);
  });
});

describe('a connection to a backend', () => {
  const get = { method: 'GET', path: '/', headers: {} };
  const said = async (pools: BackendPools, init: object = get) => (await pools.request(caller, 'probe', init as never)).body.text();
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

describe('a typed call', () => {
  const routes = {
    read: get('/v1/things/{thing_id}', { summary: 'Read', gate: { public: 'for a test' }, query: { q: Type.String() } }),
    make: post('/v1/things', { summary: 'Make', gate: { public: 'for a test' }, body: Type.Any() }),
  };
  const problems = { thing_taken: { status: 409, title: 'Taken', retry: 'never' as const } };

  test('carries path, query and correlation id over the wire and throws the other side’s problem under its name', async () => {
    const body = '{"code":"thing_taken","status":409,"detail":"Choose another."}';
    const { port, seen } = await backend(socket =>
      socket.end(`HTTP/1.1 409 Conflict\r\ncontent-type: application/problem+json\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
    );
    const client = new ServiceCaller(poolsTo(port).pools).client(caller, 'probe', routes, problems);
    const refusal = await inScope({ correlationId: 'click-9', service: 'test' }, async () =>
      client['read']?.({ params: { thing_id: 'a/b' }, query: { q: 'x y', none: undefined } }),
    ).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ service: 'probe', code: 'thing_taken', status: 409, detail: 'Choose another.' });
    expect(seen[0]).toMatch(/^GET \/v1\/things\/a%2Fb\?q=x\+y HTTP\/1\.1/);
    expect(seen[0]).toContain('x-platform-correlation-id: click-9');
  });

  test('that changes something is made once when the connection breaks, and again when the other side says it did nothing', async () => {
    const lost = await backend(socket => socket.destroy());
    expect(
      await codeOf(
        new ServiceCaller(poolsTo(lost.port).pools).client(caller, 'probe', routes, problems)['make']?.({ body: {} }) as Promise<unknown>,
      ),
    ).toBe('backend_unreachable');
    expect(lost.seen).toHaveLength(1);
    const busy = await backend(socket =>
      socket.end(busy.seen.length === 1 ? 'HTTP/1.1 503 Busy\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}' : OK),
    );
    expect(await new ServiceCaller(poolsTo(busy.port).pools).client(caller, 'probe', routes, problems)['make']?.({ body: {} })).toEqual({
      ok: true,
    });
    expect(busy.seen).toHaveLength(2);
  });

  test('in this process goes through JSON and carries the correlation id of the request that makes it', async () => {
    const given: Record<string, unknown>[] = [];
    const services = new ServiceCaller(poolsTo().pools);
    const local: LocalService = {
      call: async (operation, input) => (given.push({ operation, ...input }), { at: new Date(0), none: undefined }),
    };
    using registered = services.addLocal('probe', local);
    expect(registered).toBeDefined();
    const answer = await inScope({ correlationId: 'click-3', service: 'test' }, () =>
      services
        .client(caller, 'probe', routes, problems)
        ['make']?.({ body: { at: new Date(0), none: undefined }, targetEnvId: 'env-1', idempotencyKey: 'k' }),
    );
    expect(answer).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(given[0]).toMatchObject({
      operation: 'make',
      body: { at: '1970-01-01T00:00:00.000Z' },
      headers: { 'x-platform-correlation-id': 'click-3', 'x-platform-target-env-id': 'env-1', 'idempotency-key': 'k' },
    });
  });
});
