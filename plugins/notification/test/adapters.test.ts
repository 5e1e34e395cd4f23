import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPrivateAddress } from '@platform/sdk';
import { openTestStores, type TestStores } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { GatewaySettings, Outgoing } from '../src/adapters/adapter.ts';
import { Adapters } from '../src/adapters/adapters.ts';
import { addressOf, looksPrivate } from '../src/adapters/private-address.ts';
import { judged, Smtp } from '../src/adapters/smtp.ts';
import type { Ctx } from '../src/context.ts';
import { Breaker } from '../src/delivery/breaker.ts';
import { isOneAddress, senderOf } from '../src/people/mail-address.ts';
import { isQuiet, isZone } from '../src/people/quiet-hours.ts';
import { MailServer } from './fixtures/mail-server.ts';
import { RelayServer } from './fixtures/relay-server.ts';

let stores: TestStores;
beforeAll(async () => {
  stores = await openTestStores();
});
afterAll(() => stores[Symbol.asyncDispose]());

const outgoing = (more: Partial<Outgoing> = {}): Outgoing => ({
  deliveryId: 'd',
  notificationId: 'n',
  envId: 'e',
  to: 'ada@example.org',
  subject: 'S',
  text: 't',
  html: '<p>t</p>',
  headers: {},
  messageId: '<d@post.localhost>',
  tries: 0,
  ...more,
});
const gateway = (more: Partial<GatewaySettings> = {}): GatewaySettings => ({
  gateway_id: 'g',
  channel: 'email',
  gateway_url: null,
  secret_ref: null,
  config: { from: 'shop@example.com' },
  version: 1,
  private_ok: true,
  ...more,
});
const signal = () => AbortSignal.timeout(30_000);

describe('the secret of a gateway', () => {
  test.each([
    ['taken', 202],
    ['refused', 500],
  ] as const)('NTF-017 is wiped after a dispatch that was %s', async (_, status) => {
    await using relay = await RelayServer.open();
    relay.answer = response => response.writeHead(status).end();
    const secret = Buffer.from('the-key');
    const ctx = {
      secrets: { read: async () => secret },
      own: <T>(made: T) => made,
      clock: { now: () => new Date() },
      platform: { domain: 'localhost' },
      log: { warn: () => undefined, info: () => undefined },
    };
    const adapters = new Adapters(ctx as unknown as Ctx);
    await adapters.dispatch(outgoing(), gateway({ gateway_url: relay.url, secret_ref: 'file:///x' }), signal()).catch(() => undefined);
    expect(relay.posted[0]?.headers.authorization).toBe('Bearer the-key');
    expect([...secret]).toEqual(Array.from({ length: secret.length }, () => 0));
  });
});

describe('SMTP', () => {
  const certificate = async () => {
    const leaf = await stores.authority.classical.issue({ commonName: 'mail.test', names: ['dns:localhost'], usages: ['server'], days: 1 });
    return { cert: leaf.chain, key: leaf.key as string };
  };
  const trusting = () => new Smtp({ now: Date.now, ca: readFileSync(join(stores.dataDir, 'ca', 'classical', 'root.crt'), 'utf8') });

  test.each([
    ['STARTTLS', 'smtp', false],
    ['TLS from the first byte', 'smtps', true],
  ] as const)('signs in over %s, and many mails share few connections', async (_, scheme, secure) => {
    await using server = await MailServer.open({ ...(await certificate()), secure });
    await using smtp = trusting();
    const at = gateway({ gateway_url: `${scheme}://localhost:${server.port}` });
    await Promise.all(
      Array.from({ length: 30 }, (_each, n) =>
        smtp.dispatch(outgoing({ messageId: `<${n}@x>` }), at, Buffer.from('shop:open sesame'), signal()),
      ),
    );
    expect(server.received.map(({ secure: encrypted, user }) => [encrypted, user])).toEqual(
      Array.from({ length: 30 }, () => [true, 'shop']),
    );
    expect(server.connections).toBeLessThanOrEqual(8);
  });

  test('shows no secret to a server that does not encrypt, and none to one that nobody vouches for', async () => {
    await using plain = await MailServer.open();
    await using smtp = trusting();
    await expect(
      smtp.dispatch(outgoing(), gateway({ gateway_url: `smtp://localhost:${plain.port}` }), Buffer.from('shop:open sesame'), signal()),
    ).rejects.toThrow();
    expect(plain.received).toEqual([]);
    await using server = await MailServer.open(await certificate());
    await using strict = new Smtp({ now: Date.now });
    await expect(
      strict.dispatch(
        outgoing(),
        gateway({ gateway_id: 'h', gateway_url: `smtp://localhost:${server.port}` }),
        Buffer.from('shop:open sesame'),
        signal(),
      ),
    ).rejects.toMatchObject({
      away: true,
    });
  });

  test('a refused sign-in says so without the secret', async () => {
    await using server = await MailServer.open(await certificate());
    await using smtp = trusting();
    const refused = smtp.dispatch(
      outgoing(),
      gateway({ gateway_url: `smtp://localhost:${server.port}` }),
      Buffer.from('shop:wrong horse'),
      signal(),
    );
    await expect(refused).rejects.toThrow('the server refused the credentials (535)');
  });

  test('another version of a gateway is another connection; what nobody uses is closed', async () => {
    await using server = await MailServer.open();
    let now = 0;
    await using smtp = new Smtp({ now: () => now });
    const at = (version: number) => gateway({ version, gateway_url: `smtp://127.0.0.1:${server.port}` });
    for (const version of [1, 1, 2]) await smtp.dispatch(outgoing(), at(version), undefined, signal());
    expect(server.connections).toBe(2);
    now = 31_000;
    smtp.sweep();
    await smtp.dispatch(outgoing(), at(2), undefined, signal());
    expect(server.connections).toBe(3);
  });

  test.each([
    [{ code: 'EENVELOPE', responseCode: 550, response: '550 5.1.1 no such user' }, true, false],
    [{ code: 'EENVELOPE', responseCode: 550, response: '550 5.7.1 blocked' }, false, false],
    [{ code: 'EENVELOPE', responseCode: 452, response: '452 4.2.2 full' }, false, false],
    [{ code: 'EMESSAGE', responseCode: 554, response: '554 5.6.0 spam' }, false, false],
    [{ code: 'ESOCKET' }, false, true],
    [{ code: 'ETIMEDOUT' }, false, true],
  ])('%j: whether the address is refused for good, and whether the server is away', (error, permanent, away) => {
    expect(judged(Object.assign(new Error('words'), error))).toMatchObject({ permanent, away });
  });
});

describe('addresses', () => {
  test('one address is exactly one', () => {
    for (const good of ['a@b.example', 'a.b+c@sub.b.example', "o'neil@b.example", 'ä@b.example'])
      expect([good, isOneAddress(good)]).toEqual([good, true]);
    for (const bad of [
      'a',
      '@b',
      'a@',
      'a@b,c@d',
      'a@b;c@d',
      '<a@b>',
      'a@b\r\nRCPT TO:<x@y>',
      'a b@c',
      'a@b c',
      '.a@b',
      'a..b@c',
      '"a"@b',
      'a@-b',
      `${'a'.repeat(65)}@b`,
      'a@b\u0000',
    ])
      expect([bad, isOneAddress(bad)]).toEqual([bad, false]);
    expect(senderOf('Shop, Inc <shop@b.example>')).toEqual({ name: 'Shop, Inc', address: 'shop@b.example' });
    expect([senderOf('a@b.example, c@d.example'), senderOf('X <a@b>, <c@d>')]).toEqual([undefined, undefined]);
  });

  test('private addresses are known in every spelling, and a gateway that may not reach them does not', async () => {
    for (const address of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '::1',
      'fd00::1',
      'fe80::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      'fec0::1',
      '64:ff9b:1::7f00:1',
      '2001:0:7f00:1::1',
      '0.0.0.0',
    ])
      expect([address, isPrivateAddress(address)]).toEqual([address, true]);
    for (const address of ['8.8.8.8', '2606:4700::1']) expect([address, isPrivateAddress(address)]).toEqual([address, false]);
    for (const host of ['localhost', '[::1]', 'relay', 'relay.internal']) expect([host, looksPrivate(host)]).toEqual([host, true]);
    await expect(addressOf('localhost', { privateOk: false })).rejects.toThrow('private addresses alone');
    expect((await addressOf('localhost', { privateOk: true })).address).toMatch(/^(127\.|::1)/);
  });
});

describe('quiet hours', () => {
  const at = (time: string) => new Date(`2026-${time}Z`);
  test('NTF-028 begin with the first hour, end before the last, wrap past midnight, and last the day where they are one; in UTC, wherever the process is', () => {
    vi.stubEnv('TZ', 'Asia/Tokyo');
    expect(at('06-01T03:30').getHours()).toBe(12);
    const quiet = (start_hour: number, end_hour: number, time: string) => isQuiet([{ start_hour, end_hour }], at(`06-01T${time}`));
    expect([quiet(9, 17, '08:59'), quiet(9, 17, '09:00'), quiet(9, 17, '16:59'), quiet(9, 17, '17:00')]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect([quiet(22, 7, '21:59'), quiet(22, 7, '22:00'), quiet(22, 7, '06:59'), quiet(22, 7, '07:00')]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect([quiet(5, 5, '00:00'), quiet(5, 5, '13:00')]).toEqual([true, true]);
    expect(isQuiet([], at('06-01T03:00'))).toBe(false);
    expect(
      isQuiet(
        [
          { start_hour: 1, end_hour: 2 },
          { start_hour: 3, end_hour: 4 },
        ],
        at('06-01T03:30'),
      ),
    ).toBe(true);
    vi.unstubAllEnvs();
  });

  test('H-28 follow the clock of their zone through summer and winter', () => {
    const quiet = (time: string) => isQuiet([{ start_hour: 22, end_hour: 7 }], at(time), 'Europe/Berlin');
    expect([quiet('01-15T20:59'), quiet('01-15T21:00'), quiet('07-15T19:59'), quiet('07-15T20:00')]).toEqual([false, true, false, true]);
    expect([isZone('Europe/Berlin'), isZone('UTC'), isZone('Mars/Olympus'), isZone('+02:00')]).toEqual([true, true, false, false]);
  });
});

describe('a provider that does not answer', () => {
  test('H-26 is left alone after two tries, asked by one at a time later, and by all when it answers', () => {
    let now = 0;
    const breaker = new Breaker(() => now);
    for (const _ of [1, 2]) {
      expect(breaker.admits('g')).toBe(true);
      breaker.silent('g');
    }
    expect([breaker.admits('g'), breaker.admits('other')]).toEqual([false, true]);
    now = 30_000;
    expect([breaker.admits('g'), breaker.admits('g')]).toEqual([true, false]);
    breaker.silent('g');
    expect(breaker.admits('g')).toBe(false);
    now = 60_000;
    expect(breaker.admits('g')).toBe(true);
    breaker.answered('g');
    expect([breaker.admits('g'), breaker.admits('g')]).toEqual([true, true]);
  });
});
