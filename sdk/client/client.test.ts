import { defineContract, get, isProblem, post, Type } from '@platform/sdk';
import { expect, test } from 'vitest';
import { createClient } from './index.ts';

const open = { public: 'for a test' } as const;
const contract = defineContract({
  id: 'probe',
  title: 'Probe',
  placement: { tier: 50 },
  actions: {},
  events: {},
  problems: { thing_taken: { status: 409, title: 'Taken', retry: 'never' } },
  routes: {
    read: get('/v1/things/{thing_id}', {
      params: { thing_id: Type.String() },
      summary: 'Read',
      gate: open,
      query: { q: Type.Optional(Type.String()) },
      returns: Type.Object({ ok: Type.Boolean() }),
    }),
    make: post('/v1/things', { summary: 'Make', gate: open, body: Type.Object({ name: Type.String() }), problems: ['thing_taken'] }),
  },
});
const answering = (response: Response) => {
  const sent: { url: string; init: RequestInit }[] = [];
  const fetch = (async (url: string, init: RequestInit) => (sent.push({ url, init }), response)) as typeof globalThis.fetch;
  return { sent, client: createClient(contract, { baseUrl: 'https://probe.example.org', token: () => 'the-token', fetch }) };
};

test('a call is the route’s request: path, query, bearer, target and key', async () => {
  const { client, sent } = answering(Response.json({ ok: true }));
  expect(await client.read({ params: { thing_id: 'a/b' }, query: { q: 'x y' }, targetEnvId: 'env-1', idempotencyKey: 'k' })).toEqual({
    ok: true,
  });
  expect(sent[0]?.url).toBe('https://probe.example.org/v1/things/a%2Fb?q=x+y');
  expect(sent[0]?.init).toMatchObject({
    method: 'GET',
    headers: { authorization: 'Bearer the-token', 'x-platform-target-env-id': 'env-1', 'idempotency-key': 'k' },
  });
});

test('a declared problem is thrown under its code, an answer that is none under its status', async () => {
  const taken = answering(Response.json({ code: 'thing_taken', status: 409, detail: 'Choose another.' }, { status: 409 }));
  const problem = await taken.client.make({ body: { name: 'x' } }).catch((error: unknown) => error);
  expect(isProblem(problem)).toBe(true);
  expect(problem).toMatchObject({ code: 'thing_taken', status: 409, message: 'Choose another.' });
  await expect(answering(new Response('<html>', { status: 502 })).client.make({ body: { name: 'x' } })).rejects.toMatchObject({
    status: 502,
  });
});
