import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { type ClientHello, isPostQuantum, isStrict, readClientHello } from '../../src/connections/client-hello.ts';
import { peekHello } from '../../src/connections/hello-peek.ts';
import { isPiped } from '../../src/connections/piped.ts';
import { isPrivate } from '../../src/connections/private-source.ts';

/** The first flight of Node's own client. */
async function helloOf(options: { servername?: string; ecdhCurve?: string }): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = tlsConnect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options });
  client.on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk]);
    if (readClientHello(bytes) !== 'more') break;
  }
  client.destroy();
  server.close();
  return bytes;
}
/** The same handshake in records of so many bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}
const hybrid = await helloOf({ servername: 'Console.ops.sys.localhost' });
const strict = await helloOf({ servername: 'sys.ops.sys.localhost', ecdhCurve: 'X25519MLKEM768' });
const classical = await helloOf({ servername: 'old.example', ecdhCurve: 'X25519:P-256' });

describe('ING-030 the ClientHello', () => {
  test('ING-030 says the name and the key exchange', () => {
    const [browser, workload, old] = [hybrid, strict, classical].map(bytes => readClientHello(bytes) as ClientHello);
    expect([browser, workload, old].map(hello => hello?.name)).toEqual([
      'console.ops.sys.localhost',
      'sys.ops.sys.localhost',
      'old.example',
    ]);
    expect([browser, workload, old].map(hello => isStrict(hello as ClientHello))).toEqual([false, true, false]);
    expect([browser, workload, old].map(hello => isPostQuantum(hello as ClientHello))).toEqual([true, true, false]);
  });

  test('ING-030 of a post-quantum client is longer than one packet, and is waited for whole', () => {
    expect(strict.length).toBeGreaterThan(1_300);
    for (let length = 0; length < strict.length; length++)
      expect([length, readClientHello(strict.subarray(0, length))]).toEqual([length, 'more']);
  });

  test.each([1, 7, 100, 1_000])('ING-030 is read over records of %i bytes', size => {
    expect(readClientHello(inRecords(strict, size))).toEqual(readClientHello(strict));
  });

  test.each([
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
    ['an alert', Buffer.from([21, 3, 1, 0, 2, 1, 0])],
    ['a ServerHello', Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
    ['an empty record', Buffer.from([22, 3, 3, 0, 0])],
    ['a hello of a megabyte', Buffer.from([22, 3, 3, 0, 4, 1, 16, 0, 0])],
    ['SSL 2', Buffer.from([0x80, 0x2e, 1, 0, 2])],
  ])('ING-030 %s is none', (_, bytes) => {
    expect(readClientHello(bytes)).toBe('not tls');
  });

  test('ING-030 with any byte changed never throws, and never takes long', () => {
    let state = 7;
    const next = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
    for (let turn = 0; turn < 20_000; turn++) {
      const bytes = Buffer.from([hybrid, strict, classical][next(3)] as Buffer);
      for (let change = next(4); change >= 0; change--) bytes[next(bytes.length)] = next(256);
      const read = readClientHello(bytes.subarray(0, next(2) ? bytes.length : next(bytes.length)));
      expect(read === 'more' || read === 'not tls' || Array.isArray(read.groups)).toBe(true);
    }
  });
});

describe('the peek', () => {
  /** What is left to read after a peek at what a client sends in pieces. */
  async function peeked(bytes: Buffer, piece: number, timeoutMs = 5_000) {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, noDelay: true });
    const [socket] = (await once(server, 'connection')) as [Socket];
    const reading = peekHello(socket, timeoutMs);
    for (let at = 0; at < bytes.length; at += piece) {
      client.write(bytes.subarray(at, at + piece));
      await new Promise(resolve => setImmediate(resolve));
    }
    const hello = await reading;
    const left: Buffer[] = [];
    if (hello) {
      client.end();
      for await (const chunk of socket as AsyncIterable<Buffer>) left.push(chunk);
    }
    for (const one of [client, socket]) one.destroy();
    server.close();
    return { hello, left: Buffer.concat(left) };
  }

  test.each([1, 200, 65_536])('ING-030 at pieces of %i bytes takes no byte away', async piece => {
    const sent = Buffer.concat([strict, Buffer.from('what follows at once')]);
    const { hello, left } = await peeked(sent, piece);
    expect([hello?.name, left.equals(sent)]).toEqual(['sys.ops.sys.localhost', true]);
  });

  test('ING-030 gives up on what is no TLS, and on what does not come', async () => {
    expect((await peeked(Buffer.from('GET / HTTP/1.1\r\n\r\n'), 4)).hello).toBeUndefined();
    expect((await peeked(strict.subarray(0, 100), 50, 20)).hello).toBeUndefined();
  });
});

test('G-PROXY-01 what is inside, and what is not', () => {
  const inside = [
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '127.0.0.1',
    '100.64.0.1',
    '::1',
    'fc00::1',
    'fdff::1',
    '::ffff:10.0.0.1',
  ];
  const outside = [
    '11.0.0.1',
    '172.32.0.1',
    '192.169.0.1',
    '100.128.0.1',
    '8.8.8.8',
    '2001:db8::1',
    'fe80::1',
    '::ffff:8.8.8.8',
    undefined,
  ];
  expect([inside.map(isPrivate), outside.map(isPrivate)]).toEqual([inside.map(() => true), outside.map(() => false)]);
});

test('ING-002 G-PROXY-01 who is piped: workloads inside that ask for names of the platform, or as it is set', () => {
  const [browser, workload] = [hybrid, strict].map(bytes => readClientHello(bytes) as ClientHello) as [ClientHello, ClientHello];
  const [on, names, off] = [
    { layer7: true, piped: 'workloads' },
    { layer7: true, piped: 'names' },
    { layer7: false, piped: 'workloads' },
  ] as const;
  const cases = [
    [on, '10.0.0.1', workload, 'platform', true],
    [on, '10.0.0.1', browser, 'platform', false],
    [on, '8.8.8.8', workload, 'platform', false],
    [on, '10.0.0.1', workload, 'registry', false],
    [on, '10.0.0.1', workload, 'custom', false],
    [names, '10.0.0.1', browser, 'platform', true],
    [names, '10.0.0.1', browser, 'registry', false],
    [names, '8.8.8.8', browser, 'platform', false],
    [off, '8.8.8.8', browser, 'custom', true],
  ] as const;
  expect(cases.map(([config, from, hello, source]) => isPiped(config, { from, hello, source }))).toEqual(
    cases.map(([, , , , piped]) => piped),
  );
});
