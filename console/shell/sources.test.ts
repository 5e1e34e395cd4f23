import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('..', import.meta.url).pathname;
const files = globSync('**/*.{ts,tsx,html,css}', { cwd: root, exclude: ['dist/**', '**/*.test.ts'] });
const source = (file: string) => readFileSync(root + file, 'utf8');

/** Wire ids of the services, and the one vertical that every build knows. */
const IDS = 'sys auth app bus post bff acme captain proxy func stat workflow storage cron secrets db web ai platform'.split(' ').join('|');

test('CON-010 no file of the console names a service or a vertical', () => {
  expect(files.length).toBeGreaterThan(60);
  const named = new RegExp(`(['"\`])(${IDS})\\1|\\b(${IDS}):[a-z]+:[a-z]+|/proxy/(${IDS})\\b`);
  // What a page is about is said by the wire: `platform` is no service there.
  const scope = "scope: 'platform' | 'org' | 'env';";
  expect(source('api/page-def.ts')).toContain(scope);
  expect(files.filter(file => named.test(source(file).replace(scope, '')))).toEqual([]);
});

test('CON-012 the only key that outlives the page is the collapsed rail', () => {
  const keys = files.flatMap(file =>
    [...source(file).matchAll(/(?:localStorage|sessionStorage|indexedDB|document\.cookie)[^\n]*/g)].map(([line]) => `${file}: ${line}`),
  );
  expect(keys).toEqual([
    "shell/rail/rail.tsx: localStorage.getItem(COLLAPSED) === 'true');",
    'shell/rail/rail.tsx: localStorage.setItem(COLLAPSED, String(!folded));',
  ]);
  expect(source('shell/rail/rail.tsx')).toContain("const COLLAPSED = 'dash.rail.collapsed'");
});

test('CON-021 only the client talks to the network, and it alone fetches', () => {
  const calls = files.filter(file => /\bfetch\(|XMLHttpRequest|EventSource|sendBeacon/.test(source(file)));
  expect(calls).toEqual(['api/gateway/gateway-client.ts']);
  expect(files.filter(file => /new WebSocket\(/.test(source(file)))).toEqual(['api/live/live-channel.ts']);
  const asked = [...source('api/gateway/gateway-client.ts').matchAll(/['`}](\/[a-z]+\/[a-z-]*)/g)].map(([, path]) => path);
  expect([...new Set(asked)].sort()).toEqual(['/auth/login', '/auth/session', '/auth/sign-out', '/proxy/']);
});

test('CON-031 what the generic pages send is a POST', () => {
  const page = source('pages/service-page.tsx');
  expect(page).toContain("method: 'POST'");
  expect(files.filter(file => /method: '(PUT|DELETE)'/.test(source(file))).sort()).toEqual(['api/members-api.ts', 'api/registry-api.ts']);
});
