import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { ManualClock } from '@platform/testing';
import { ingress } from '../../contract/index.ts';
import { openChallenges } from '../../src/management/open-ports.ts';

/** The port of challenges under these settings, and what it owns. */
async function opened(config: { httpPort?: number }, production = false) {
  const clock = new ManualClock();
  const owned: (AsyncDisposable & Disposable & { port?: number })[] = [];
  const said: string[] = [];
  const asked: number[] = [];
  const log = {
    warn: (_: object, message: string) => void said.push(message),
    error: (_: object, message: string) => void said.push(message),
  };
  const ctx = {
    config: { address: '127.0.0.1', ...config },
    platform: { production },
    clock,
    every: clock.every.bind(clock),
    own: (resource: never) => void owned.push(resource),
    listen: async (_door: string, server: Server, { port, address }: { port: number; address: string }) => {
      asked.push(port);
      // The port of the machine that runs the test is not taken.
      if (port === 80) throw Object.assign(new Error('not here'), { code: 'EACCES' });
      server.listen(port, address);
      await once(server, 'listening');
      return false;
    },
    log,
  };
  await openChallenges(ctx as never);
  return {
    clock,
    said,
    asked,
    ports: () => owned.flatMap(({ port }) => port ?? []),
    close: () => Promise.all(owned.map(one => one[Symbol.asyncDispose]?.() ?? one[Symbol.dispose]?.())),
  };
}

test('ING-011 in development there is no plain port unless it is asked for', async () => {
  expect((await opened({})).ports()).toEqual([]);
  expect((await opened({ httpPort: 0 }, true)).ports()).toEqual([]);
});

test('ING-011 in production it is port 80 unless PLATFORM_PROXY_HTTP_PORT says another, and one that may not be opened is told of and stops nothing', async () => {
  const { asked, said } = await opened({}, true);
  expect([asked, said]).toEqual([[80], ['certificates of names outside cannot be had']]);
  expect(ingress.base.config.properties.httpPort).toMatchObject({ env: 'PLATFORM_PROXY_HTTP_PORT' });
});

test('ING-011 a port that an instance before this one still has is taken over when it leaves', async () => {
  const before = createServer().listen(0, '127.0.0.1');
  await once(before, 'listening');
  const { port } = before.address() as AddressInfo;
  const { clock, said, ports, close } = await opened({ httpPort: port });
  await clock.advance('1s');
  expect([ports(), said]).toEqual([[], ['a port of the ingress is taken; it is tried again every second']]);
  before.close();
  await once(before, 'close');
  await clock.advance('1s');
  expect(ports()).toEqual([port]);
  await clock.advance('5s');
  expect(ports()).toEqual([port]);
  await close();
});
