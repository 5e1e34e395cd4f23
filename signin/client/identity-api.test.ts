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

test('SGN-011 SGN-012 every request stays on the own origin, under /v1 or /oauth', async () => {
  await Promise.all([
    api.branding(),
    api.signIn({ email: 'e', password: 'p', oauth: {} }),
    api.signUp({ email: 'e', password: 'p', oauth: {} }),
    api.verifyMfa({ challenge_id: 'c', method: 'totp', code: '1' }),
    api.changePassword({ password: 'p', oauth: {} }),
    api.requestReset('e'),
    api.resetPassword({ token: 't', password: 'p' }),
    api.verifyEmail('t'),
    api.requestVerification('e'),
    api.consent('c', 's'),
    api.consentAccounts('f'),
    api.continueAuthorization({ decision: 'approve' }),
    api.device('c'),
    api.decideDevice('c', 'deny'),
    api.ciba('../x'),
    api.decideCiba('i', 'deny'),
    api.walletChallenge('a'),
    api.walletVerify({ challenge_id: 'c', signature: 's' }),
    api.requestRecovery('e'),
    api.confirmRecovery('t'),
    api.cancelRecovery('t'),
    api.finishRecovery({ token: 't', password: 'p' }),
    api.signOut(),
  ]);
  expect(seen.filter(({ url }) => !/^\/(v1|oauth)\//.test(url))).toEqual([]);
  expect(seen.some(({ url }) => url === '/v1/ciba/..%2Fx')).toBe(true);
});

test('requests say which language the page speaks, so that mail does too', async () => {
  await api.requestReset('e');
  expect(seen.map(({ headers }) => headers['accept-language'])).toEqual(['de']);
});

test('SGN-019 SGN-037 branding is asked for with credentials; requests carry a content type', async () => {
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
});

test('SGN-039 x-platform-csrf appears only after a session token id, and only on changes', async () => {
  await api.signOut();
  answer = { status: 'ok', session_token_id: 'sid' };
  await api.signIn({ email: 'e', password: 'p', oauth: {} });
  await api.signOut();
  await api.branding();
  expect(seen.map(({ headers }) => headers['x-platform-csrf'])).toEqual([undefined, undefined, 'sid', undefined]);
});

test('SGN-027 the sign-out call exists', async () => {
  await api.signOut();
  expect(seen[0]).toMatchObject({ url: '/v1/sign-out', method: 'POST' });
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
