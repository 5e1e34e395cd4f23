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
