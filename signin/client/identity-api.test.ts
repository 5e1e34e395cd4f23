import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { meterText } from './password-field.ts';
import { messagesOf } from '../messages.ts';
import { contextOf, pathWith } from '../oauth-context.ts';
import { correlation } from './correlation.ts';
import { IdentityApi } from './identity-api.ts';

let seen: { url: string; method: string; headers: Record<string, string>; body: unknown; credentials: unknown }[];
let answer: unknown;
let status: number;
let api: IdentityApi;

beforeEach(() => {
  seen = [];
  answer = {};
  status = 200;
  const fake = async (url: unknown, init: RequestInit = {}) => {
    seen.push({
      url: String(url),
      method: init.method ?? '',
      headers: init.headers as Record<string, string>,
      body: init.body && JSON.parse(String(init.body)),
      credentials: init.credentials,
    });
    return new Response(JSON.stringify(answer), { status });
  };
  api = new IdentityApi('sgn-1', 'de', fake as typeof fetch);
});

test('SGN-011 SGN-012 SGN-037 SGN-038 every request stays on the own origin, under /v1 or /oauth, and carries content type and correlation', async () => {
  const calls = Object.values(api) as ((...args: string[]) => Promise<unknown>)[];
  expect(calls.length).toBeGreaterThan(40);
  for (const call of calls) await call('../x', 'https://evil.example');
  expect(seen).toHaveLength(calls.length);
  expect(seen.filter(({ url }) => !/^\/(v1|oauth)\//.test(url) || url.includes('/../'))).toEqual([]);
  const sent = seen.map(({ headers }) => [headers['content-type'], headers['x-platform-correlation-id']].join(' '));
  expect(new Set(sent)).toEqual(new Set(['application/json sgn-1']));
  await api.ciba('../x');
  expect(seen.at(-1)?.url).toBe('/v1/ciba/..%2Fx');
});

test('requests say which language the page speaks, so that mail does too', async () => {
  await api.requestReset('e');
  expect(seen.map(({ headers }) => headers['accept-language'])).toEqual(['de']);
});

test('SGN-019 branding is asked for with credentials', async () => {
  await api.branding();
  expect(seen[0]).toMatchObject({
    url: '/v1/branding',
    method: 'GET',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
  });
});

test('SGN-038 one correlation id for the browsing session', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  } as Storage;
  const first = correlation(storage);
  expect(first).toMatch(/^sgn-[0-9a-f-]{36}$/);
  expect(correlation(storage)).toBe(first);
  expect([...kept.keys()]).toEqual(['platform.correlation']);
  kept.clear();
  expect(correlation(storage)).not.toBe(first);
});

test('SGN-039 x-platform-csrf appears only after a session token id, and only on changes', async () => {
  await api.signOut();
  answer = { status: 'ok', session_token_id: 'sid' };
  await api.signIn({ email: 'e', password: 'p', oauth: {} });
  await api.signOut();
  await api.branding();
  expect(seen.map(({ headers }) => headers['x-platform-csrf'])).toEqual([undefined, undefined, 'sid', undefined]);
});

test('SGN-027 the sign-out call exists, and no page makes it', async () => {
  await api.signOut();
  expect(seen[0]).toMatchObject({ url: '/v1/sign-out', method: 'POST' });
  const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.ts') && !/identity-api|\.test\./.test(name),
  );
  expect(sources.length).toBeGreaterThan(10);
  for (const name of sources)
    expect([name, /signOut|sign-out/.test(readFileSync(join(import.meta.dirname, name), 'utf8'))]).toEqual([name, false]);
});

test('SGN-030 approval forwards the selected accounts', async () => {
  await api.continueAuthorization({ client_id: 'c', decision: 'approve', consent_flow: 'f', selected_account_ids: ['1'] });
  expect(seen[0]?.body).toEqual({ client_id: 'c', decision: 'approve', consent_flow: 'f', selected_account_ids: ['1'] });
});

test('a refusal keeps what the service said', async () => {
  status = 501;
  answer = { code: 'not_implemented', detail: 'Not here.', correlation_id: 'auth-1' };
  await expect(api.requestReset('e')).rejects.toMatchObject({
    status: 501,
    code: 'not_implemented',
    detail: 'Not here.',
    correlationId: 'auth-1',
  });
});

test('SGN-028 only the context travels', () => {
  const query = { client_id: 'c', state: '', uid: 'u', password: 'no' };
  expect(contextOf(query)).toEqual({ client_id: 'c', uid: 'u' });
  expect(pathWith('/mfa', query, { challenge_id: 'x' })).toBe('/mfa?client_id=c&uid=u&challenge_id=x');
});

test('the meter counts to twelve and stops at 128', () => {
  const m = messagesOf('en');
  expect([0, 5, 12, 128, 129].map(n => meterText(n, m))).toEqual([
    m.meter_empty,
    '5 of at least 12 characters',
    m.meter_good,
    m.meter_good,
    m.meter_long,
  ]);
});
