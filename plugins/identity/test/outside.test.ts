import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Ctx } from '../src/context.ts';
import { fetchOutside } from '../src/outside.ts';

const LONG = 300_000;
const server = createServer((req, res) => {
  if (req.url === '/redirect') res.writeHead(302, { location: '/' }).end();
  else res.end(req.url === '/long' ? 'x'.repeat(LONG) : `${req.method} ${req.headers.accept}`);
});
let port: number;
beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
});

const ask = (address: string, production: boolean) =>
  fetchOutside({ platform: { production } } as Ctx, new URL(address), {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(10_000),
  });

describe('a server outside that somebody named', () => {
  test('is asked in development wherever it is; no redirect is followed, and an answer without end is cut', async () => {
    expect(await ask(`http://127.0.0.1:${port}/`, false)).toEqual({ status: 200, text: 'GET application/json' });
    expect(await ask(`http://127.0.0.1:${port}/redirect`, false)).toMatchObject({ status: 302 });
    await expect(ask(`http://127.0.0.1:${port}/long`, false)).rejects.toThrow('too long');
  });

  test('is not asked in production where it is an address of our own network, by number or by name', async () => {
    for (const host of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[fd00::1]',
      'localhost',
      '2130706433',
    ])
      await expect([host, await ask(`http://${host}:${port}/`, true).catch((error: Error) => error.message)]).toEqual([
        host,
        'a private address is not asked',
      ]);
  });
});
