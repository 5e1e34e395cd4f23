import { expect, test } from 'vitest';
import { AuditTrail } from './audit-trail.ts';
import type { GatewayClient } from './gateway/gateway-client.ts';
import { Problem } from './gateway/problem.ts';

const problem = (status: number) => new Problem({ status, code: 'x', title: 'x', correlationId: '' });

function trail(status: number, second: 'answers' | 'fails' = 'answers') {
  const asked: string[] = [];
  const call = async (service: string, path: string) => {
    asked.push(`${service} ${path}`);
    if (asked.length === 1 || second === 'fails') throw problem(asked.length === 1 ? status : 500);
    return { items: [], next: null };
  };
  return { asked, audit: new AuditTrail({ call } as unknown as GatewayClient, { registry: 'one', identity: 'two' }) };
}

test('CON-027 who acted is asked of identity: in the environment, and where somebody is none of its people, among those of the console', async () => {
  const asked: unknown[] = [];
  let missing = 0;
  const call = async (service: string, path: string, { target }: { target?: object }) => {
    asked.push([service, path, target]);
    if (missing-- > 0) throw problem(404);
    return { user_id: 'u', email: 'ada@example.org', display_name: null };
  };
  const audit = new AuditTrail({ call } as unknown as GatewayClient, { registry: 'one', identity: 'two' });
  expect(await audit.actor('u', 'e')).toMatchObject({ email: 'ada@example.org' });
  missing = 1;
  expect(await audit.actor('a/b', 'e')).toMatchObject({ email: 'ada@example.org' });
  expect(asked).toEqual([
    ['two', '/v1/admin/users/u', { env: 'e' }],
    ['two', '/v1/admin/users/a%2Fb', { env: 'e' }],
    ['two', '/v1/admin/users/a%2Fb', undefined],
  ]);
  missing = 2;
  await expect(audit.actor('u', 'e')).rejects.toMatchObject({ status: 404 });
});

test('CON-027 identity’s own trail stands in on 403, 404 and 5xx', async () => {
  for (const status of [403, 404, 500, 503]) {
    const { asked, audit } = trail(status);
    expect((await audit.read({ env_id: 'e' })).source).toBe('identity');
    expect(asked).toEqual(['one /v1/audit', 'two /v1/admin/audit']);
  }
});

test('other refusals and a failing substitute show what the canonical trail said', async () => {
  await expect(trail(400).audit.read({ env_id: 'e' })).rejects.toMatchObject({ status: 400 });
  await expect(trail(403, 'fails').audit.read({ env_id: 'e' })).rejects.toMatchObject({ status: 403 });
});

test('a verification goes on from step to step until there is a verdict', async () => {
  const asked: unknown[] = [];
  const call = async (_: string, path: string, { query }: { query: { cursor?: string } }) => {
    asked.push([path, query.cursor]);
    return { status: asked.length === 2 ? 'intact' : 'unfinished', position: asked.length, head: 2, next_cursor: asked.length === 2 ? null : 'further' };
  };
  const audit = new AuditTrail({ call } as unknown as GatewayClient, { registry: 'one', identity: 'two' });
  const told: number[] = [];
  expect(await audit.verify('e', ({ position }) => told.push(position), new AbortController().signal)).toMatchObject({ status: 'intact' });
  expect(asked).toEqual([
    ['/v1/audit/verification', undefined],
    ['/v1/audit/verification', 'further'],
  ]);
  expect(told).toEqual([1, 2]);
});
