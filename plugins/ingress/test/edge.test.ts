import { once } from 'node:events';
import { Agent } from 'node:https';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TENANT, World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const ECHO = 'echo.ops.sys.localhost';
let tenants = 0;
const tenant = (status = 'active') => {
  tenants += 1;
  const host = `echo.prod.t${tenants}.localhost`;
  world.hosts.set(host, { service: 'echo', status });
  return host;
};
const changed = (change: object) => world.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify(change));

describe('routing by name', () => {
  test("ING-004 ING-009 a host of the platform goes to its service over the ingress's own certificate, with no lookup", async () => {
    for (const host of [ECHO, 'mirror.ops.sys.localhost'])
      expect(await world.ask(host, { path: '/a?b=c', method: 'POST', body: 'hello', headers: { 'content-length': '5' } })).toMatchObject({
        status: 200,
        headers: { 'x-from': 'echo' },
        json: { from: 'echo' },
      });
    expect(world.seen.at(-1)).toMatchObject({ method: 'POST', url: '/a?b=c', body: 'hello', peer: 'm2m-proxy' });
    expect(world.resolved).toEqual([]);
  });

  test("ING-007 ING-010 a tenant's host is asked of the registry once, then remembered", async () => {
    const host = tenant();
    for (const _ of [1, 2, 3]) expect((await world.ask(host)).status).toBe(200);
    expect(world.resolved.filter(name => name === host)).toEqual([host]);
  });

  test('ING-031 a name nobody has, and no name, end the handshake', async () => {
    for (const host of ['nobody.prod.acme.localhost', 'nobody.ops.sys.localhost', '']) {
      const socket = world.open(host);
      const [error] = (await once(socket, 'error').catch((cause: Error) => [cause])) as [Error];
      expect(error).toBeInstanceOf(Error);
      socket.destroy();
    }
  });

  test('ING-032 G-PROXY-04 a Host that disagrees with the name of the connection is 421', async () => {
    const answer = await world.ask(tenant(), { servername: ECHO });
    expect(answer).toMatchObject({ status: 421, json: { code: 'misdirected', type: 'urn:platform:problem:proxy:misdirected' } });
    expect((await world.ask(`${ECHO.toUpperCase()}:8443`, { servername: ECHO })).status).toBe(200);
  });

  test('ING-032 a name that nobody has any more is 421 on a connection that is still open', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const host = tenant();
      expect((await world.ask(host, { agent })).status).toBe(200);
      world.hosts.delete(host);
      await changed({ scope: 'env', hostnames: [host] });
      await expect.poll(async () => (await world.ask(host, { agent })).status).toBe(421);
    } finally {
      agent.destroy();
    }
  });

  test('G-SYS-02 a suspended tenant is 403', async () => {
    expect(await world.ask(tenant('suspended'))).toMatchObject({ status: 403, json: { code: 'tenant_suspended' } });
  });

  test('G-PROXY-04 a service with no instance is 503 with a time to come back', async () => {
    expect(await world.ask('console.ops.sys.localhost')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '3' },
      json: { code: 'no_backend' },
    });
  });

  test('what the backend says passes as it is', async () => {
    expect(await world.ask(ECHO, { path: '/teapot' })).toMatchObject({ status: 418, json: { from: 'echo' } });
  });
});

describe('headers', () => {
  const STRIPPED = [
    'Env-Id',
    'App-Id',
    'Service',
    'Hostname',
    'Caller-Service',
    'Org-Id',
    'App-Instance-Id',
    'User-Id',
    'Scopes',
    'Client-Cert',
    'Target-Env-Id',
    'Csrf',
    'Anything',
  ];

  test('ING-018 ING-019 ING-033 what a client claims is stripped; the resolved context is injected', async () => {
    const host = tenant();
    await world.ask(host, {
      headers: {
        ...Object.fromEntries(STRIPPED.map(name => [`X-Platform-${name}`, 'forged'])),
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-host': 'evil.example',
        forwarded: 'for=6.6.6.6',
        'x-other': 'kept',
        authorization: 'Bearer kept',
      },
    });
    const { headers } = world.seen.at(-1) ?? { headers: {} };
    expect(Object.values(headers).filter(value => value === 'forged')).toEqual([]);
    expect(headers).toMatchObject({
      'x-platform-env-id': TENANT.env_id,
      'x-platform-service': 'echo',
      'x-platform-hostname': host,
      'x-platform-caller-service': 'proxy',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': host,
      'x-forwarded-proto': 'https',
      'x-other': 'kept',
      authorization: 'Bearer kept',
    });
    expect((headers as Record<string, unknown>)['forwarded']).toBeUndefined();
    await world.ask(ECHO);
    expect(world.seen.at(-1)?.headers['x-platform-env-id']).toBe(SYSTEM.envId);
  });

  test("ING-034 the correlation id is the client's when it is well formed, else a new one", async () => {
    const sent = async (headers: Record<string, string>) => {
      await world.ask(ECHO, { headers });
      return world.seen.at(-1)?.headers['x-platform-correlation-id'];
    };
    expect(await sent({ 'x-platform-correlation-id': 'click-1' })).toBe('click-1');
    for (const headers of [{}, { 'x-platform-correlation-id': 'a b' }, { 'x-platform-correlation-id': 'x'.repeat(129) }] as Record<
      string,
      string
    >[])
      expect(await sent(headers)).toMatch(/^proxy-[0-9a-f-]{36}$/);
    const refused = await world.ask(ECHO, { servername: 'mirror.ops.sys.localhost', headers: { 'x-platform-correlation-id': 'click-2' } });
    expect([refused.status, refused.headers['x-platform-correlation-id'], refused.json['correlation_id']]).toEqual([
      421,
      'click-2',
      'click-2',
    ]);
  });

  test.each([
    ['two Host headers', `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nHost: mirror.ops.sys.localhost\r\n\r\n`],
    ['no Host header', 'GET / HTTP/1.1\r\nAccept: */*\r\n\r\n'],
    ['an underscore for a hyphen', `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nX_Platform-Env-Id: forged\r\n\r\n`],
    ['both lengths', `POST / HTTP/1.1\r\nHost: ${ECHO}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a space before the colon', `GET / HTTP/1.1\r\nHost : ${ECHO}\r\n\r\n`],
    ['a bad chunk', `POST / HTTP/1.1\r\nHost: ${ECHO}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`],
  ])('H-14 %s: 400, and the connection is closed', async (_, text) => {
    const before = world.seen.length;
    const answer = await world.raw(ECHO, text);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(world.seen.length).toBe(before);
    // What ends at the edge has its line in the log here: no service writes one.
    const correlation_id = /"correlation_id":"([^"]+)"/.exec(answer)?.[1];
    const lines = world.host.logged.filter(line => line['correlation_id'] === correlation_id);
    expect(lines).toEqual([expect.objectContaining({ msg: 'request refused at the edge', status: 400 })]);
  });

  test('ING-037 more than a hundred headers are 431', async () => {
    const text = (count: number) =>
      `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\n${Array.from(
        { length: count - 2 },
        (_, index) => `X-N-${index}: 1\r\n`,
      ).join('')}\r\n`;
    expect(await world.raw(ECHO, text(101))).toMatch(/^HTTP\/1\.1 431 [\s\S]*headers_too_large/);
    expect(await world.raw(ECHO, text(80))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('ING-038 a header block of more than 64 KB is 431', async () => {
    const block = (length: number) =>
      world.raw(ECHO, `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\nX-Long: ${'a'.repeat(length)}\r\n\r\n`);
    expect(await block(66_000)).toMatch(/^HTTP\/1\.1 431 /);
    // What the ingress puts in besides is not the client's: the service behind it has room for both.
    expect(await block(65_300)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('G-PROXY-04 what stands behind a body', () => {
  const sent = (path: string, headers: string, chunks: string[], trailers: string) =>
    world.raw(
      ECHO,
      `POST ${path} HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n${headers}\r\n${chunks.map(chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n${trailers}\r\n`,
    );

  test.each([
    ['a small body', ['abc'], ''],
    ['a large one', ['x'.repeat(60_000), 'y'.repeat(60_000)], 'Trailer: X-Sum, Host\r\n'],
    ['a large one that announced none', ['x'.repeat(60_000), 'y'.repeat(60_000)], ''],
  ])('G-PROXY-04 trailers of %s reach the backend, all but those that steer a request', async (_, chunks, headers) => {
    const forged = 'Host: evil\r\nAuthorization: Bearer x\r\nX-Platform-Env-Id: forged\r\nX_Sum: 1\r\nCookie: a=1\r\n';
    expect(await sent('/sums', headers, chunks, `X-Sum: abc\r\n${forged}`)).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.seen.at(-1)).toMatchObject({
      url: '/sums',
      body: chunks.join(''),
      peer: 'm2m-proxy',
      trailers: { 'x-sum': 'abc' },
      headers: { ...(headers || chunks.length === 1 ? { trailer: 'x-sum' } : {}), 'x-platform-service': 'echo' },
    });
    expect(Object.keys(world.seen.at(-1)?.trailers ?? {})).toEqual(['x-sum']);
  });

  test('G-PROXY-04 trailers of an answer reach a client that takes them, and no other', async () => {
    const told = await sent('/trailed', 'TE: trailers\r\n', ['a'], '');
    expect(told).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\ntrailer: x-sum\r\n[\s\S]*\r\n0\r\nx-sum: abc\r\n\r\n$/i);
    expect(told).not.toMatch(/set-cookie|forged/i);
    expect(await sent('/trailed', '', ['a'], '')).toMatch(/\r\n0\r\n\r\n$/);
  });
});

describe('F-16 what a client may write, and no backend connection carries', () => {
  const odd = 'Connection: x-odd, te\r\nX-Odd: 1\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\nHTTP2-Settings: AAMAAABk\r\n';
  test.each([
    ['asks about the server itself', 'OPTIONS *', '', '', '204'],
    ['gets an asterisk', 'GET *', '', '', '400'],
    ['posts an asterisk', 'POST *', 'Content-Length: 2\r\n', '{}', '400'],
    ['expects «100 Continue»', 'POST /a', 'Expect: 100-continue\r\nContent-Length: 2\r\n', '{}', '200'],
    ['names the host in its target', `GET https://${ECHO}/a`, '', '', '200'],
    ['names another host in its target', 'GET https://mirror.ops.sys.localhost/a', '', '', '400'],
    ['asks for a tunnel', `CONNECT ${ECHO}:443`, '', '', '501'],
    ['names headers of its connection', 'GET /a', odd, '', '200'],
    ['writes a length with zeros', 'POST /a', 'Content-Length: 002\r\n', '{}', '200'],
  ])('F-16 a thousand times it %s: each is answered, and the service still is', async (_, line, headers, body, status) => {
    expect(await world.flood(ECHO, `${line} HTTP/1.1\r\nHost: ${ECHO}\r\n${headers}\r\n${body}`, 1_000)).toEqual({ [status]: 1_000 });
    expect((await world.ask(ECHO)).status).toBe(200);
    const reached = new Set(world.seen.flatMap(({ headers: sent }) => Object.keys(sent)));
    for (const name of ['expect', 'x-odd', 'te', 'proxy-connection', 'http2-settings']) expect(reached).not.toContain(name);
  });
});

describe('F-17 what lasts leaves the service to others', () => {
  const begin = async (text: string) => {
    const socket = world.open(ECHO).setEncoding('latin1');
    let answer = '';
    socket.on('data', chunk => (answer += chunk)).on('error', () => undefined);
    const ended = new Promise<string>(resolve => socket.once('close', () => resolve(answer)));
    await once(socket, 'secureConnect');
    socket.write(text);
    return { socket, ended };
  };
  const slow = (length: number) => begin(`POST /slow HTTP/1.1\r\nHost: ${ECHO}\r\nContent-Length: ${length}\r\n\r\na`);
  const figure = async (name: string) => (await world.host.fetch('/v1/metrics', { persona: as.user('proxy:metrics:read') })).json[name];

  test('F-17 three hundred slow bodies reach no backend, one more of their address ends the oldest, and in thirty seconds all are 408', async () => {
    const before = world.seen.length;
    const all = await Promise.all(Array.from({ length: 300 }, (_, index) => slow(index % 2 ? 10 : 1_000_000)));
    await expect.poll(() => figure('edge_bodies')).toBe(300);
    expect((await world.ask(ECHO, { method: 'POST', body: 'quick' })).status).toBe(200);
    expect((await world.ask(ECHO)).status).toBe(200);
    expect(world.seen.length).toBe(before + 2);
    // The quick one was one more.
    const [first, ...others] = all;
    expect(await first?.ended).toMatch(/^HTTP\/1\.1 429 [\s\S]*too_many_bodies/);
    await world.host.clock.advance('30s');
    for (const { ended } of others) expect(await ended).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*body_timeout/);
    expect(await figure('edge_bodies')).toBe(0);
  });

  test('F-17 a large body is streamed; one that stops in the middle is 408, and its connection is given back', async () => {
    const large = 'x'.repeat(300_000);
    expect((await world.ask(ECHO, { method: 'POST', path: '/large', body: large })).status).toBe(200);
    expect(world.seen.at(-1)?.body.length).toBe(300_000);
    const { ended } = await begin(
      `POST /stops HTTP/1.1\r\nHost: ${ECHO}\r\nTransfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n`,
    );
    await expect.poll(() => figure('backend_streams')).toBe(1);
    await expect.poll(async () => (await world.host.clock.advance('10s'), figure('backend_streams'))).toBe(0);
    expect(await ended).toMatch(/^HTTP\/1\.1 408 /);
  });

  test('F-17 clients that do not read what they asked for hold no place of ordinary requests', async () => {
    const idle = await Promise.all(Array.from({ length: 64 }, () => begin(`GET /endless HTTP/1.1\r\nHost: ${ECHO}\r\n\r\n`)));
    for (const { socket } of idle) socket.pause();
    for (let turn = 0; turn < 3; turn++) expect((await world.ask(ECHO)).status).toBe(200);
    for (const { socket } of idle) socket.destroy();
    await expect.poll(async () => [await figure('backend_streams'), await figure('backend_requests')]).toEqual([0, 0]);
  });
});

describe('certificates', () => {
  test('KRN-029 of five handshakes at once one fetches the certificate, and later ones none', async () => {
    const host = tenant();
    const gate = Promise.withResolvers<void>();
    world.signing = gate.promise;
    const sockets = Array.from({ length: 5 }, () => world.open(host));
    const secured = Promise.all(sockets.map(socket => once(socket, 'secureConnect')));
    await expect.poll(() => world.fetched.filter(name => name === host).length).toBe(1);
    gate.resolve();
    await secured;
    expect(sockets.map(socket => [socket.authorized, socket.getPeerCertificate().subjectaltname])).toEqual(
      sockets.map(() => [true, `DNS:${host}`]),
    );
    for (const socket of sockets) socket.destroy();
    await world.ask(host);
    expect(world.fetched.filter(name => name === host)).toEqual([host]);
  });
});

describe('KRN-005 a change of hosts', () => {
  test('KRN-005 ING-047 word of it drops what was remembered', async () => {
    const host = tenant();
    expect((await world.ask(host)).status).toBe(200);
    world.hosts.set(host, { service: 'echo', status: 'suspended' });
    expect((await world.ask(host)).status).toBe(200);
    await changed({ scope: 'env' });
    await expect.poll(async () => (await world.ask(host)).status).toBe(403);
  });

  test('KRN-005 word that cannot be read drops everything, and hurts nobody', async () => {
    const host = tenant();
    await world.ask(host);
    world.hosts.set(host, { service: 'echo', status: 'suspended' });
    await world.kv.call('PUBLISH', 'platform:sys:domain:changed', 'not json');
    await expect.poll(async () => (await world.ask(host)).status).toBe(403);
  });

  test('KRN-004 KRN-005 without a word it shows after thirty seconds, an absent host after five', async () => {
    const host = tenant();
    expect((await world.ask(host)).status).toBe(200);
    world.hosts.set(host, { service: 'echo', status: 'suspended' });
    await world.host.clock.advance('29s');
    expect((await world.ask(host)).status).toBe(200);
    await world.host.clock.advance('1s');
    expect((await world.ask(host)).status).toBe(403);
    const late = 'echo.prod.late.localhost';
    await expect(world.ask(late)).rejects.toThrow();
    world.hosts.set(late, { service: 'echo', status: 'active' });
    await expect(world.ask(late)).rejects.toThrow();
    await world.host.clock.advance('5s');
    expect((await world.ask(late)).status).toBe(200);
  });
});

test('G-PROXY-04 a WebSocket passes both ways, with the context injected', async () => {
  const socket = world.open(ECHO);
  await once(socket, 'secureConnect');
  socket.write(
    `GET /live HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Platform-Env-Id: forged\r\n\r\n`,
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1\.1 101 [\s\S]*s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  socket.write('ping over the wire');
  expect(String((await once(socket, 'data'))[0])).toBe('ping over the wire');
  expect(world.seen.at(-1)).toMatchObject({
    method: 'UPGRADE',
    url: '/live',
    headers: { 'x-platform-env-id': SYSTEM.envId, 'x-platform-caller-service': 'proxy' },
  });
  socket.destroy();
});

test('H-14 a WebSocket to a host of another connection is 421', async () => {
  expect(
    await world.raw(
      ECHO,
      'GET / HTTP/1.1\r\nHost: mirror.ops.sys.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    ),
  ).toMatch(/^HTTP\/1\.1 421 /);
});

test('ING-017 ING-025 ING-026 ING-044 operators see mappings and backends, each by its own scope', async () => {
  const host = tenant();
  await world.ask(host);
  const { items } = await world.host.by(as.user('proxy:mappings:read')).mappings({});
  expect(items.find(({ hostname }) => hostname === host)).toMatchObject({
    service: 'echo',
    ...TENANT,
    app_id: null,
    app_instance_id: null,
    status: 'active',
    source: 'registry',
  });
  expect((await world.host.by(as.user('proxy:backends:read')).backends({})).items).toEqual(
    expect.arrayContaining([expect.objectContaining({ service: 'echo', ip: '127.0.0.1' })]),
  );
  await expect(world.host.by(as.user('proxy:mappings:read')).backends({})).rejects.toMatchObject({ status: 403 });
  await expect(world.host.by(as.user('proxy:backends:read')).mappings({})).rejects.toMatchObject({ status: 403 });
});
