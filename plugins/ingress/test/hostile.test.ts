import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TENANT, World } from './fixtures/world.ts';
import { describeSettings } from './suites/settings.test.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const ECHO = 'echo.ops.sys.localhost';
let tenants = 0;
const tenant = () => {
  tenants += 1;
  const host = `echo.prod.h${tenants}.localhost`;
  world.hosts.set(host, { service: 'echo', status: 'active' });
  return { host, env_id: TENANT.env_id };
};
const figure = async (name: string) =>
  (await world.host.fetch('/v1/metrics', { persona: as.user('proxy:metrics:read') })).json[name] as number;

describe('HTTP/2', () => {
  const open = (host: string) =>
    connectHttp2(`https://${host}:${world.port}`, {
      host: '127.0.0.1',
      servername: host,
      ca: world.host.stores.authority.classical.files.rootCertificate,
    } as never);
  const ask = async (session: ClientHttp2Session, headers: Record<string, string>, body?: string) => {
    const stream = session.request(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    let text = '';
    stream.setEncoding('utf8').on('data', chunk => (text += chunk));
    const [answered] = (await once(stream, 'response')) as [Record<string, string>];
    await once(stream, 'end');
    return { status: Number(answered[':status']), headers: answered, text };
  };

  test('G-PROXY-04 requests, bodies and a hundred streams at once, with the context injected', async () => {
    const { host, env_id } = tenant();
    const session = open(host);
    expect(await ask(session, { ':path': '/a?b=c', 'x-platform-env-id': 'forged', 'x-other': 'kept', cookie: 'a=1' })).toMatchObject({
      status: 200,
      headers: { 'x-from': 'echo', 'strict-transport-security': expect.stringMatching(/^max-age=\d{7,}/) },
    });
    expect(world.seen.at(-1)).toMatchObject({
      url: '/a?b=c',
      peer: 'm2m-proxy',
      headers: {
        'x-platform-env-id': env_id,
        'x-platform-hostname': host,
        'x-other': 'kept',
        cookie: 'a=1',
        'x-forwarded-host': `${host}:${world.port}`,
      },
    });
    expect(Object.keys(world.seen.at(-1)?.headers ?? {}).filter(name => name.startsWith(':'))).toEqual([]);
    expect((await ask(session, { ':path': '/post', ':method': 'POST' }, 'x'.repeat(300_000))).status).toBe(200);
    expect(world.seen.at(-1)?.body.length).toBe(300_000);
    expect((await ask(session, { ':path': '/post', ':method': 'POST' }, 'no length')).status).toBe(200);
    expect(world.seen.at(-1)).toMatchObject({ body: 'no length', headers: { 'content-length': '9' } });
    expect(
      new Set((await Promise.all(Array.from({ length: 300 }, () => ask(session, { ':path': '/' })))).map(({ status }) => status)),
    ).toEqual(new Set([200]));
    expect(session.remoteSettings.maxConcurrentStreams).toBe(100);
    session.destroy();
  });

  test('G-PROXY-04 trailers pass both ways, and those of a request are screened as headers are', async () => {
    const [{ host }, strict] = [tenant(), 'echo.prod.strict.localhost'];
    const env_id = '018f0000-0000-7000-8000-0000000000f7';
    world.hosts.set(strict, { service: 'echo', status: 'active', env_id });
    world.attributes.set(env_id, { waf_mode: 'block' });
    const [session, screened] = [open(host), open(strict)];
    const sent = async (session: ClientHttp2Session, trailers: Record<string, string>, body = 'body') => {
      const stream = session.request({ ':path': '/trailed', ':method': 'POST', te: 'trailers' }, { waitForTrailers: true } as never);
      stream.once('wantTrailers', () => stream.sendTrailers(trailers));
      stream.end(body);
      let behind: Record<string, unknown> = {};
      stream.once('trailers', fields => (behind = fields)).resume();
      const [answered] = (await once(stream, 'response')) as [Record<string, string>];
      await once(stream, 'end');
      return { status: Number(answered[':status']), behind };
    };
    expect(await sent(session, { 'x-sum': 'abc' })).toMatchObject({ status: 200, behind: { 'x-sum': 'abc' } });
    expect(world.seen.at(-1)).toMatchObject({ url: '/trailed', body: 'body', trailers: { 'x-sum': 'abc' } });
    const large = 'x'.repeat(120_000);
    expect((await sent(session, { 'x-sum': 'large' }, large)).status).toBe(200);
    expect(world.seen.at(-1)).toMatchObject({ url: '/trailed', body: large, trailers: { 'x-sum': 'large' } });
    const before = world.seen.length;
    expect([(await sent(screened, { 'x-sum': "1' UNION SELECT password FROM users --" })).status, world.seen.length]).toEqual([
      403,
      before,
    ]);
    expect((await sent(screened, { 'x-sum': 'abc' })).status).toBe(200);
    for (const each of [session, screened]) each.destroy();
  });

  test('H-14 ING-032 what names two hosts, another host, or too much is refused', async () => {
    const { host } = tenant();
    const asked = async (headers: Record<string, string>) => {
      const session = open(host);
      const { status } = await ask(session, { ':path': '/', ...headers });
      session.destroy();
      return status;
    };
    expect(await asked({ ':authority': host, host: ECHO })).toBe(400);
    expect(await asked({ ':authority': ECHO })).toBe(421);
    expect(await asked({ ':scheme': 'http' })).toBe(400);
    expect(await asked(Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`x-n-${index}`, '1'])))).toBe(431);
    expect(await asked(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`x-n-${index}`, '1'])))).toBe(200);
  });

  test('F-31 a connection that asks for nothing is over when its time is', async () => {
    const { host } = tenant();
    const socket = connectTls({ host: '127.0.0.1', port: world.port, servername: host, ALPNProtocols: ['h2'], rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('h2');
    socket.on('error', () => undefined).resume();
    await once(socket, 'close');
  });
});

describeSettings(() => world);

describe('F-31 what a client must not do', () => {
  test('F-31 TLS is 1.3 alone, with a post-quantum key exchange where the client can', async () => {
    const before = await figure('edge_handshakes_post_quantum_total');
    const socket = world.open(ECHO);
    await once(socket, 'secureConnect');
    expect([socket.getProtocol(), (socket.getEphemeralKeyInfo() as { name?: string }).name]).toEqual(['TLSv1.3', 'X25519MLKEM768']);
    await expect.poll(() => figure('edge_handshakes_post_quantum_total')).toBe(before + 1);
    socket.destroy();
    const old = connectTls({ host: '127.0.0.1', port: world.port, servername: ECHO, maxVersion: 'TLSv1.2', rejectUnauthorized: false });
    expect(
      await Promise.race([once(old, 'error').then(() => 'refused'), once(old, 'secureConnect').then(() => 'taken')]).catch(() => 'refused'),
    ).toBe('refused');
  });

  test.each([
    ['an empty Host', `GET / HTTP/1.1\r\nHost: \r\n\r\n`, 400],
    ['a Host with a path', `GET / HTTP/1.1\r\nHost: ${ECHO}/a\r\n\r\n`, 400],
    ['another protocol', `GET / HTTP/2.0\r\nHost: ${ECHO}\r\n\r\n`, 400],
    ['another coding', `POST / HTTP/1.1\r\nHost: ${ECHO}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
    ['dot segments', `GET /a/%2e%2e/b HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\n\r\n`, 400],
    ['a backslash', `GET /a\\b HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\n\r\n`, 400],
    ['another upgrade, which is ignored', `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`, 200],
    ['a header that never ends', `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nX-Slow: `, 408],
  ])('F-31 H-14 %s', async (_, text, status) => {
    expect(await world.raw(ECHO, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  test('F-23 ING-037 a hundred headers of the client pass', async () => {
    const headers = Array.from({ length: 98 }, (_, index) => `X-N-${index}: 1\r\n`).join('');
    expect(await world.raw(ECHO, `GET / HTTP/1.1\r\nHost: ${ECHO}\r\nConnection: close\r\n${headers}\r\n`)).toMatch(
      /^HTTP\/1\.1 200 [\s\S]*strict-transport-security/i,
    );
    expect(world.seen.at(-1)?.headers['x-n-97']).toBe('1');
  });
});

describe('F-31 deadlines act at their time', () => {
  /** A client whose bytes go out as `pass` says, and whose raw connection is answered. */
  const through = async (pass: (chunk: Buffer, sent: number) => Buffer) => {
    const raw = connectTcp({ host: '127.0.0.1', port: world.port, noDelay: true });
    await once(raw, 'connect');
    let sent = 0;
    const half = new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _encoding, done) {
        const passed = pass(chunk, sent++);
        if (passed.length > 0) raw.write(passed);
        done();
      },
    });
    raw.on('data', chunk => half.push(chunk)).on('error', () => undefined);
    const secured = connectTls({ socket: half, servername: ECHO, rejectUnauthorized: false });
    secured.on('error', () => undefined);
    return { raw, secured };
  };

  test('F-31 half a hello, and a handshake that stops, are cut', async () => {
    const before = await figure('edge_connections');
    const hello = await through((chunk, sent) => (sent === 0 ? chunk.subarray(0, 300) : Buffer.alloc(0)));
    const stopped = await through((chunk, sent) => (sent === 0 ? chunk : Buffer.alloc(0)));
    expect(await figure('edge_connections')).toBe(before + 2);
    await Promise.all([hello, stopped].map(({ raw }) => once(raw, 'close')));
    await expect.poll(() => figure('edge_connections')).toBe(before);
    for (const { secured } of [hello, stopped]) secured.destroy();
  });

  test('F-31 a connection that says nothing is 408', async () => {
    expect(await world.raw(ECHO, '')).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('facts 3 floods of HTTP/2', () => {
  test('H-12 F-17 a client that opens streams and gives no room keeps eighty answers, and none when its time is over', async () => {
    const { host } = tenant();
    const session = connectHttp2(`https://${host}:${world.port}`, {
      host: '127.0.0.1',
      servername: host,
      rejectUnauthorized: false,
      settings: { initialWindowSize: 0 },
    } as never);
    await once(session, 'remoteSettings');
    const ended: number[] = [];
    for (let turn = 0; turn < 100; turn++) {
      const stream = session.request({ ':path': turn % 2 ? '/endless' : '/' });
      stream.on('error', () => undefined).once('close', () => ended.push(stream.rstCode));
      await once(stream, 'response');
    }
    const unread = async () => [await figure('edge_unread'), await figure('edge_requests'), ended.length];
    await expect.poll(async () => (await world.host.clock.advance('1s'), unread())).toEqual([80, 80, 20]);
    expect(await figure('backend_streams')).toBeLessThanOrEqual(80);
    expect((await world.ask(ECHO)).status).toBe(200);
    // What it says meanwhile is no reading: pings, and room for one byte.
    for (let turn = 0; turn < 4; turn++) {
      await new Promise(resolve => session.ping(resolve));
      session.settings({ initialWindowSize: turn });
      await world.host.clock.advance('30s');
    }
    await expect.poll(async () => (await world.host.clock.advance('1s'), unread())).toEqual([0, 0, 100]);
    expect(new Set(ended)).toEqual(new Set([8]));
    expect(await figure('edge_unread_late_total')).toBe(80);
    expect(await figure('edge_unread_ended_total')).toBe(20);
    await expect.poll(async () => [await figure('backend_streams'), await figure('backend_requests')]).toEqual([0, 0]);
    session.destroy();
  });

  test('a client that resets as fast as it asks loses its connection, and the service stays', async () => {
    const { host } = tenant();
    const session = connectHttp2(`https://${host}:${world.port}`, {
      host: '127.0.0.1',
      servername: host,
      rejectUnauthorized: false,
    } as never);
    session.on('error', () => undefined);
    await once(session, 'connect');
    const over = new Promise<void>(resolve => session.once('close', () => resolve()));
    const more = () => {
      for (let turn = 0; turn < 50 && !session.closed && !session.destroyed; turn++)
        session
          .request({ ':path': '/' })
          .on('error', () => undefined)
          .close(8);
      if (!session.closed && !session.destroyed) setImmediate(more);
    };
    more();
    await over;
    expect((await world.ask(ECHO)).status).toBe(200);
  });
});

test('G-PROXY-06 hosts, instances, certificates, settings and screening change, and two hundred WebSockets and running downloads live on', async () => {
  const { host } = tenant();
  const begun = async (text: string, answer: RegExp) => {
    const socket = world.open(host);
    await once(socket, 'secureConnect');
    socket.write(`GET ${text}\r\n\r\n`);
    expect(String((await once(socket, 'data'))[0])).toMatch(answer);
    return socket;
  };
  const sockets: TLSSocket[] = [];
  const live = `/live HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`;
  for (let group = 0; group < 10; group++)
    sockets.push(...(await Promise.all(Array.from({ length: 20 }, () => begun(live, /^HTTP\/1\.1 101 /)))));
  const downloads = await Promise.all(Array.from({ length: 3 }, () => begun(`/endless HTTP/1.1\r\nHost: ${host}`, /^HTTP\/1\.1 200 /)));
  for (const download of downloads) download.pause();
  const reloads = await figure('topology_reloads_total');
  await world.kv.call(
    'PUBLISH',
    'revoked:changed',
    Buffer.from(sockets[0]?.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '') ?? '', 'hex').toString('base64url'),
  );
  world.attributes.set(TENANT.env_id, { waf_mode: 'block', rate_limit_enabled: true, rate_limit_rps: 1 });
  world.hosts.set(host, { service: 'echo', status: 'suspended' });
  await world.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ scope: 'env', hostnames: [host] }));
  await world.changed('echo');
  await expect.poll(async () => (await world.ask(host)).status).toBe(403);
  await expect.poll(async () => (await world.host.clock.advance('1s'), figure('topology_reloads_total'))).toBeGreaterThan(reloads);
  expect(await figure('edge_requests')).toBe(203);
  for (const socket of sockets) {
    socket.write('still here');
    expect(String((await once(socket, 'data'))[0])).toBe('still here');
    socket.destroy();
  }
  for (const download of downloads) {
    const before = download.bytesRead;
    download.resume();
    // More than any buffer on the way held while it was paused.
    await expect.poll(() => download.bytesRead - before).toBeGreaterThan(16_000_000);
    download.destroy();
  }
  world.attributes.clear();
  await expect.poll(() => figure('edge_requests')).toBe(0);
});
