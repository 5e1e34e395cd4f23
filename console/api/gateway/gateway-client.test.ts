import { beforeEach, expect, test } from 'vitest';
import { GatewayClient } from './gateway-client.ts';
import { liveUrl } from './gateway-origin.ts';
import { LogRing } from '../live/log-ring.ts';
import type { Problem } from './problem.ts';
import { targetHeaders, targetQuery } from './target.ts';

interface Seen {
  url: string;
  method: string;
  headers: Record<string, string>;
  credentials: string | undefined;
}

let seen: Seen[];
let answers: Response[];
let client: GatewayClient;

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

beforeEach(() => {
  seen = [];
  answers = [];
  const fake = async (url: unknown, init: RequestInit = {}) => {
    seen.push({ url: String(url), method: init.method ?? 'GET', headers: init.headers as Record<string, string>, credentials: init.credentials });
    return answers.shift() ?? json({});
  };
  client = new GatewayClient({ host: 'console.ops.sys.localhost:8443', log: new LogRing(), fetch: fake as typeof fetch });
});

test('CON-008 CON-021 every call goes to bff.<current host>, with the cookie', async () => {
  answers.push(json({ csrf_token: 't' }));
  await client.session();
  await client.call('orders', '/v1/admin/rows');
  await client.signOut();
  const gateway = 'bff.console.ops.sys.localhost:8443';
  expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
    `GET https://${gateway}/auth/session`,
    `GET https://${gateway}/proxy/orders/v1/admin/rows`,
    `POST https://${gateway}/auth/sign-out`,
  ]);
  expect(client.loginUrl('#/orgs')).toBe(`https://${gateway}/auth/login?return_to=%2F%23%2Forgs`);
  expect(liveUrl('console.ops.sys.localhost:8443')).toBe(`wss://${gateway}/ws`);
  expect(seen.every(({ credentials }) => credentials === 'include')).toBe(true);
});

test('CON-022 mutations carry the session’s CSRF token and reads do not', async () => {
  answers.push(json({ csrf_token: 'secret' }));
  await client.session();
  await client.call('s', '/v1/x', { method: 'POST', body: {} });
  await client.call('s', '/v1/x');
  expect(seen[1]?.headers['X-BFF-CSRF']).toBe('secret');
  expect(seen[2]?.headers).not.toHaveProperty('X-BFF-CSRF');
});

test('CON-023 the environment wins and the two target headers never meet', () => {
  expect(targetHeaders({ env: 'e', org: 'o' })).toEqual({ 'X-BFF-Target-Env-Id': 'e' });
  expect(targetHeaders({ org: 'o' })).toEqual({ 'X-BFF-Target-Org-Id': 'o' });
  expect(targetHeaders(undefined)).toEqual({});
  expect(targetQuery({ env: 'e', org: 'o' })).toEqual({ target_env_id: 'e' });
});

test('CON-024 the target is repeated in the query', async () => {
  await client.call('s', '/v1/x', { target: { env: 'e1' }, query: { limit: 5, gone: undefined } });
  await client.call('s', '/v1/x', { target: { org: 'o1' } });
  expect(new URL(seen[0]?.url ?? '').search).toBe('?limit=5&target_env_id=e1');
  expect(new URL(seen[1]?.url ?? '').search).toBe('?target_org_id=o1');
});

test('CON-025 every request carries a correlation id, one per user action', async () => {
  await client.call('s', '/a');
  await client.call('s', '/b');
  const action = client.beginAction();
  await client.call('s', '/c');
  const ids = seen.map(({ headers }) => headers['x-platform-correlation-id']);
  expect(ids[0]).toMatch(/^dsh-/);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[2]).toBe(action);
  expect(action).not.toBe(ids[0]);
});

test('CON-041 a 401 surfaces as an error of the client', async () => {
  answers.push(json({ code: 'no_session', title: 'No session', correlation_id: 'c' }, 401));
  const problem = await client.call<never>('s', '/x').catch((error: Problem) => error);
  expect({ status: problem.status, code: problem.code, correlationId: problem.correlationId }).toEqual({ status: 401, code: 'no_session', correlationId: 'c' });
  expect(seen).toHaveLength(1);
});

test('a stale CSRF token is renewed once', async () => {
  answers.push(json({ code: 'csrf_mismatch' }, 403), json({ csrf_token: 'new' }), json({ ok: true }));
  expect(await client.call('s', '/x', { method: 'POST' })).toEqual({ ok: true });
  expect(seen[2]?.headers['X-BFF-CSRF']).toBe('new');
});

test('the way to sign-in brings back to the same hash', () => {
  expect(client.loginUrl('#/home?org=o 1')).toBe('https://bff.console.ops.sys.localhost:8443/auth/login?return_to=%2F%23%2Fhome%3Forg%3Do%201');
});

test('a network that goes in the middle of an answer is one that cannot be reached', async () => {
  const body = new ReadableStream({ pull: controller => controller.error(new TypeError('network error')) });
  answers.push(new Response(body));
  await expect(client.call('s', '/x')).rejects.toMatchObject({ status: 0, code: 'unreachable', passing: true });
});
