import { connect as netConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { as } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { HOST, RequestedProbe } from '../fixtures/requested-probe.ts';

const asked = RequestedProbe.use();
const { reader, world } = asked;

describe('the stream door', () => {
  test('writes one frame per event and ends with its source', async () => {
    const answer = await asked.host.fetch('/v1/ticks', {
      persona: reader,
      headers: { accept: 'text/event-stream', 'x-platform-correlation-id': 'sse-1' },
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(answer.text).toBe('id: 1\nevent: tick\ndata: {"at":1}\n\ndata: {"correlationId":"sse-1","aborted":false}\n\n');
  });

  test('takes its token from the query only from an event source', async () => {
    const token = asked.host.mint.token(reader, 'probe');
    expect((await asked.host.fetch(`/v1/ticks?token=${token}`, { headers: { accept: 'text/event-stream' } })).status).toBe(200);
    expect((await asked.host.fetch(`/v1/ticks?token=${token}`)).status).toBe(401);
  });

  test('refuses before its first byte as any request does', async () => {
    expect((await asked.host.fetch('/v1/ticks')).json['code']).toBe('unauthenticated');
    expect((await asked.host.fetch('/v1/ticks', { persona: as.user() })).json['code']).toBe('policy_denied');
  });
});

describe('the socket door', () => {
  const connect = (path: string, token?: string) => {
    const socket = new WebSocket(`wss://127.0.0.1:${asked.host.process.port}${path}`, {
      ca: asked.host.stores.authority.pq.files.rootCertificate,
      servername: 'probe.ops.sys.localhost',
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
      headers: {
        host: 'probe.ops.sys.localhost',
        'x-platform-correlation-id': 'ws-1',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      },
    } as never);
    socket.on('error', () => undefined);
    return socket;
  };
  const refused = (path: string, token?: string) =>
    new Promise<{ status: number; code: unknown }>((resolve, reject) => {
      const socket = connect(path, token);
      socket.once('open', () => reject(new Error('it opened')));
      socket.on('error', () => undefined);
      socket.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, code: (JSON.parse(text) as { code: string }).code }));
      });
    });

  test('talks both ways once it is accepted', async () => {
    const socket = connect('/v1/talk', asked.host.mint.token(reader, 'probe'));
    const received: unknown[] = [];
    const closed = new Promise<number>(resolve => socket.once('close', resolve));
    socket.on('message', data => {
      received.push(JSON.parse(String(data)));
      if (received.length === 1) socket.send('{"n":1}');
      else socket.close(1000);
    });
    expect(await closed).toBe(1000);
    expect(received).toEqual([{ hello: reader.id, correlationId: 'ws-1' }, { heard: { n: 1 } }]);
  });

  test('what is not JSON closes the connection with 1007', async () => {
    const socket = connect('/v1/talk', asked.host.mint.token(reader, 'probe'));
    const closed = new Promise<number>(resolve => socket.once('close', resolve));
    socket.once('message', () => socket.send('not json'));
    expect(await closed).toBe(1007);
  });

  test('a refusal before it is accepted answers over HTTP, and nothing is upgraded', async () => {
    expect(await refused('/v1/talk')).toEqual({ status: 401, code: 'unauthenticated' });
    expect(await refused('/v1/talk', asked.host.mint.token(as.user(), 'probe'))).toEqual({ status: 403, code: 'policy_denied' });
    expect(await refused('/v1/closed-talk', asked.host.mint.token(reader, 'probe'))).toEqual({ status: 409, code: 'thing_taken' });
    expect(await refused('/v1/things', asked.host.mint.token(reader, 'probe'))).toEqual({ status: 404, code: 'not_found' });
    const told = () =>
      asked.host.logged.filter(({ msg, status }) => msg === 'request answered' && [401, 403, 409, 404].includes(status as number));
    expect(told().slice(-4)).toMatchObject([
      { operation: 'talk', status: 401 },
      { operation: 'talk', status: 403 },
      { operation: 'closedTalk', status: 409 },
      { operation: 'none', status: 404 },
    ]);
  });

  test('a client that breaks off before it is accepted harms nobody', async () => {
    const wire = netConnect(asked.host.process.port, '127.0.0.1');
    const socket = tlsConnect(
      {
        socket: wire,
        servername: 'probe.ops.sys.localhost',
        ca: asked.host.stores.authority.pq.files.rootCertificate,
        minVersion: 'TLSv1.3',
        ecdhCurve: 'X25519MLKEM768',
      },
      () =>
        socket.write(
          `GET /v1/slow-talk HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`,
        ),
    );
    socket.on('error', () => undefined);
    await world.entered.promise;
    wire.resetAndDestroy();
    await world.left.promise;
    expect((await asked.host.fetch('/v1/greet')).status).toBe(200);
  });

  test('a plain request to a socket path says what to do', async () => {
    expect((await asked.host.fetch('/v1/talk')).json['detail']).toBe('Connect with a WebSocket upgrade.');
  });
});

/** A request whose body is still to come: what is sent later, and the answer whole. */
function slowRequest(head: string): Promise<{ send: (text: string) => void; answer: Promise<string> }> {
  return new Promise((resolve, reject) => {
    const socket = tlsConnect(
      {
        socket: netConnect(asked.host.process.port, '127.0.0.1'),
        servername: 'probe.ops.sys.localhost',
        ca: asked.host.stores.authority.pq.files.rootCertificate,
        minVersion: 'TLSv1.3',
        ecdhCurve: 'X25519MLKEM768',
      },
      () => {
        let text = '';
        const { promise: answer, resolve: answered } = Promise.withResolvers<string>();
        socket.on('data', chunk => (text += chunk.toString()));
        socket.on('close', () => answered(text));
        socket.write(head);
        resolve({ send: sent => void socket.write(sent), answer });
      },
    );
    socket.on('error', reject);
  });
}

describe('item 9: the doors of bytes go the way of every request', () => {
  const { writer } = asked;
  const post = (path: string, body: string, more: object = {}) => asked.host.fetch(path, { method: 'POST', body, ...more });

  test('a raw door takes no more than its limit, in its own form of error, and its handler reads JSON as the kernel does', async () => {
    const large = 'x'.repeat(65);
    const scim = (status: string) => ({ schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status });
    expect((await post('/v1/raw/text', 'x'.repeat(64))).json).toEqual({ given: 'x'.repeat(64) });
    const refused = await post('/v1/raw/text', large);
    expect([refused.status, refused.json]).toEqual([413, { ...scim('413'), detail: 'At most 64 bytes.' }]);
    const head = `POST /v1/raw/text HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`;
    const chunked = await slowRequest(`${head}28\r\n${'x'.repeat(40)}\r\n`);
    chunked.send(`28\r\n${'x'.repeat(40)}\r\n`);
    expect(await chunked.answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close[\s\S]*At most 64 bytes/i);
    const typed = { headers: { 'content-type': 'text/plain' } };
    expect((await post('/v1/raw/json', '{"a":1}')).json).toEqual({ given: { a: 1 } });
    expect((await post('/v1/raw/any', '{"a":1}', typed)).json).toEqual({ given: { a: 1 } });
    expect((await post('/v1/raw/json', '{"a":1}', typed)).status).toBe(415);
    expect((await post('/v1/raw/json', '{"a":"\\u0000"}')).status).toBe(400);
  });

  test('a door that adds to its refusals is given the one of the kernel, which tells nothing of the inside', async () => {
    const refused = await asked.host.fetch('/v1/raw/refused');
    expect([refused.status, refused.headers['content-type']]).toEqual([500, 'application/scim+json; charset=utf-8']);
    expect(refused.text).not.toContain('secret of the inside');
    // A store that is lost is no fault of the service, by whatever error it says so.
    const lost = await asked.host.fetch('/v1/raw/lost');
    expect([lost.status, lost.headers['retry-after']]).toEqual([503, '2']);
    expect(asked.host.logged.some(({ msg, code }) => msg === 'request failed' && code === 'internal')).toBe(true);
  });

  test('a raw door is asked no more often than it declares, and says when again', async () => {
    const refused = await asked.host.fetch('/v1/raw/text');
    expect([refused.status, refused.json['status'], Number(refused.headers['retry-after']) > 0]).toEqual([429, '429', true]);
    expect(refused.headers['ratelimit-policy']).toBe('"raw";q=9;w=60');
  });

  test('a stream and a socket hold to their rates', async () => {
    const ask = () => asked.host.fetch('/v1/rated-ticks', { persona: reader, headers: { accept: 'text/event-stream' } });
    expect([(await ask()).status, (await ask()).json['code']]).toEqual([200, 'rate_limited']);
    const upgrade = `GET /v1/rated-talk HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`;
    expect((await asked.raw(upgrade)).status).toBe(101);
    expect(await asked.raw(upgrade)).toMatchObject({ status: 429, text: expect.stringMatching(/retry-after: \d+[\s\S]*rate_limited/) });
  });

  test('a node door asks who comes, holds its limits and counts by caller', async () => {
    const before = world.calls.filter(call => call === 'node').length;
    const stranger = await post('/v1/node/x', 'a');
    expect([stranger.status, stranger.json['error']]).toEqual([401, 'invalid_client']);
    expect((await post('/v1/node/x', 'a', { persona: as.user() })).json).toMatchObject({ error: 'access_denied' });
    expect((await post('/v1/node/x', 'x'.repeat(65), { persona: reader })).json).toEqual({
      error: 'invalid_request',
      error_description: 'At most 64 bytes.',
    });
    expect(world.calls.filter(call => call === 'node')).toHaveLength(before);
    for (let run = 0; run < 5; run++)
      expect((await post('/v1/node/x', 'said', { persona: reader })).json).toEqual({ who: reader.id, body: 'said' });
    const often = await post('/v1/node/x', 'said', { persona: reader });
    expect([often.status, often.json['error'], Number(often.headers['retry-after']) > 0]).toEqual([429, 'temporarily_unavailable', true]);
    expect((await post('/v1/node/x', 'said', { persona: writer })).status).toBe(200);
  });

  test('an upload streams to its handler, up to its own limit and behind its gate', async () => {
    const put = (size: number, persona = writer) =>
      asked.host.fetch('/v1/files/a', { method: 'PUT', persona, body: Buffer.alloc(size), headers: { 'content-type': 'image/png' } });
    const made = await put(200_000);
    expect([made.status, made.json]).toEqual([201, { name: 'a', size: 200_000 }]);
    expect((await put(1, reader)).json['code']).toBe('policy_denied');
    const refused = await put(200_001);
    expect([refused.status, refused.json]).toEqual([
      413,
      expect.objectContaining({ code: 'file_too_large', detail: 'At most 200000 bytes.' }),
    ]);
    expect((await asked.host.fetch('/v1/files/a', { persona: reader })).text).toBe('not a put: GET');
    expect((await asked.host.fetch(`/v1/files/${'a'.repeat(21)}`, { method: 'PUT', persona: writer, body: 'x' })).status).toBe(400);
  });

  test('an upload reaches its handler before it is whole, and is over when nothing more comes', async () => {
    const first = Promise.withResolvers<number>();
    world.onPiece = first.resolve;
    const token = asked.host.mint.token(writer, 'probe');
    const slow = await slowRequest(
      `PUT /v1/files/slow HTTP/1.1\r\n${HOST}authorization: Bearer ${token}\r\ncontent-length: 10\r\n\r\n12345`,
    );
    expect(await first.promise).toBe(5);
    await asked.host.clock.advance('29s');
    await asked.host.clock.advance('10s');
    expect(await slow.answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*body_timeout/i);
  });
});
