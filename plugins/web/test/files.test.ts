import { registry } from '@platform/registry/contract';
import { statistics } from '@platform/statistics/contract';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { SYSTEM } from '@platform/sdk';
import { as, boot, type BootedHost, manifestOf } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { web } from '../contract/index.ts';
import plugin from '../src/plugin.ts';
import { StaticFiles } from '../src/static-files.ts';

let host: BootedHost<typeof web>;
beforeAll(async () => {
  const manifests = [registry, statistics].map(contract => manifestOf(contract, '1.0.0'));
  host = (await boot(plugin, { manifests })) as BootedHost<typeof web>;
});
afterAll(() => host[Symbol.asyncDispose]());

const GATEWAY = 'https://bff.console.ops.sys.localhost:8443';
const asset = async () => /(?:src|href)="\.?(\/?assets\/[^"]+)"/.exec((await host.fetch('/')).text)?.[1]?.replace(/^\/?/, '/') as string;

describe("the console's host", () => {
  test('the page is the same under both its names, asked for anew each time', async () => {
    const [root, index] = [await host.fetch('/'), await host.fetch('/index.html')];
    expect(root).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
    });
    expect(root.text).toContain('<html');
    expect(index.text).toBe(root.text);
  });

  test('CON-042 one build serves every place of a platform: no name of a platform or a tenant is compiled in, and each part is the same for whoever asks', async () => {
    const { headers, text } = await host.fetch('/');
    const paths = [...text.matchAll(/(?:src|href)="\.?(\/?assets\/[^"]+)"/g)].map(([, path = '']) => path.replace(/^\/?/, '/'));
    const parts = await Promise.all(paths.map(path => host.fetch(path)));
    expect([paths.length > 0, parts.every(({ status }) => status === 200)]).toEqual([true, true]);
    const { json, text: config } = await host.fetch('/console.json');
    // What differs between platforms comes by console.json when the page starts.
    const names = [json['gateway'] as string, 'ops.sys.', SYSTEM.orgId, SYSTEM.envId];
    for (const name of names)
      expect([name, [text, ...parts.map(part => part.text)].some(part => part.includes(name))]).toEqual([name, false]);
    expect(names.filter(name => !config.includes(name))).toEqual([]);
    for (const name of ['console.ops.sys.localhost', 'web.ops.sys.localhost']) {
      const again = await host.fetch('/', { host: name, persona: as.user('sys:read') });
      expect([name, again.text === text, again.headers['etag'] === headers['etag'], again.headers['vary']]).toEqual([
        name,
        true,
        true,
        headers['vary'],
      ]);
    }
  });

  test('assets are immutable', async () => {
    expect(await host.fetch(await asset())).toMatchObject({
      status: 200,
      headers: { 'cache-control': 'public, max-age=31536000, immutable' },
    });
  });

  test('GWY-001 the content policy lets the page talk to its gateway and nobody else, and nobody frame it', async () => {
    const { headers } = await host.fetch('/');
    const policy = Object.fromEntries(
      String(headers['content-security-policy'])
        .split('; ')
        .map(part => [part.split(' ')[0], part.split(' ').slice(1)]),
    );
    expect(policy).toMatchObject({
      'default-src': ["'self'"],
      'connect-src': ["'self'", GATEWAY, GATEWAY.replace('https:', 'wss:')],
      'frame-ancestors': ["'none'"],
      'base-uri': ["'none'"],
      'form-action': ["'self'", GATEWAY],
    });
    expect(JSON.stringify({ ...policy, 'style-src-attr': [] })).not.toContain('unsafe');
    expect(headers['referrer-policy']).toBe('no-referrer');
  });

  test('CON-038 console.json says where the gateway is and what to listen to', async () => {
    const { status, json } = await host.fetch('/console.json');
    expect([status, json]).toMatchObject([
      200,
      {
        gateway: GATEWAY,
        services: { registry: 'sys', identity: 'auth', app_store: 'app' },
        system: { org_id: SYSTEM.orgId, env_id: SYSTEM.envId },
      },
    ]);
    expect(json['live_types']).toEqual(
      expect.arrayContaining([
        'platform:sys:org:created',
        'platform:sys:org:updated',
        'platform:sys:env:created',
        'platform:sys:env:updated',
        'platform:sys:env:archived',
        'platform:stat:traffic:snapshot',
      ]),
    );
    expect(json['live_types']).not.toContain('platform:sys:binding:created');
  });

  test.each([
    '/nothing.js',
    '/assets/',
    '/assets/nothing.js',
    '/index.html/',
    '/../package.json',
    '/..%2fpackage.json',
    '/%2e%2e/%2e%2e/package.json',
    '/assets/..%2f..%2f..%2fpackage.json',
    '/etc/passwd',
    '//etc/passwd',
  ])('%s is not there', async path => {
    const { status, text } = await host.fetch(path);
    expect([400, 404]).toContain(status);
    expect(text).not.toMatch(/"name"|root:/);
  });

  test('only reading is allowed', async () => {
    expect((await host.fetch('/', { method: 'POST' })).status).toBe(405);
    const head = await host.fetch('/', { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
  });
});

describe('files of a bundle', () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-web-'));
  mkdirSync(join(directory, 'assets'));
  writeFileSync(join(directory, 'index.html'), '<html></html>');
  writeFileSync(join(directory, 'assets', 'a.1234.js'), 'let a = 1;');
  writeFileSync(join(directory, 'odd.bin'), 'x');
  const files = new StaticFiles(directory);
  afterAll(() => rmSync(directory, { recursive: true }));
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    files.respond(path, new Request('https://x/', { headers, method }));

  test('are compressed for whoever reads that', async () => {
    const compressed = get('/assets/a.1234.js', { 'accept-encoding': 'gzip, br' });
    expect([compressed?.headers.get('content-encoding'), compressed?.headers.get('vary')]).toEqual(['br', 'accept-encoding']);
    expect(get('/assets/a.1234.js', { 'accept-encoding': 'gzip, br;q=0' })?.headers.has('content-encoding')).toBe(false);
    expect(brotliDecompressSync(Buffer.from((await compressed?.arrayBuffer()) as ArrayBuffer)).toString()).toBe('let a = 1;');
    expect([await get('/assets/a.1234.js')?.text(), get('/assets/a.1234.js')?.headers.get('content-encoding')]).toEqual([
      'let a = 1;',
      null,
    ]);
  });

  test('are not sent again to whoever has them', () => {
    const etag = get('/index.html')?.headers.get('etag') as string;
    expect([get('/index.html', { 'if-none-match': etag })?.status, get('/index.html', { 'if-none-match': '"other"' })?.status]).toEqual([
      304, 200,
    ]);
  });

  test('have a type each, and none outside the bundle', () => {
    expect(files.size).toBe(3);
    expect([get('/odd.bin')?.headers.get('content-type'), get('/../odd.bin'), get('/assets'), get('odd.bin')]).toEqual([
      'application/octet-stream',
      undefined,
      undefined,
      undefined,
    ]);
  });
});
