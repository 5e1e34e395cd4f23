import { get, post, Type } from '@platform/sdk';
import { describe, expect, test } from 'vitest';
import { inScope } from '../telemetry/request-scope.ts';
import { type LocalService, ServiceCaller } from './service-caller.ts';
import { BackendGround, codeOf, OK } from './fixtures/backend-ground.ts';

const ground = BackendGround.use();
const { backend, poolsTo } = ground;

describe('a typed call', () => {
  const routes = {
    read: get('/v1/things/{thing_id}', { summary: 'Read', gate: { public: 'for a test' }, query: { q: Type.String() } }),
    make: post('/v1/things', { summary: 'Make', gate: { public: 'for a test' }, body: Type.Any() }),
  };
  const problems = { thing_taken: { status: 409, title: 'Taken', retry: 'never' as const } };

  test('carries path, query and correlation id over the wire and throws the other side’s problem under its name', async () => {
    const body = '{"code":"thing_taken","status":409,"detail":"Choose another."}';
    const { port, seen } = await backend(socket =>
      socket.end(`HTTP/1.1 409 Conflict\r\ncontent-type: application/problem+json\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
    );
    const client = new ServiceCaller(poolsTo(port).pools).client(ground.caller, 'probe', routes, problems);
    const refusal = await inScope({ correlationId: 'click-9', service: 'test' }, async () =>
      client['read']?.({ params: { thing_id: 'a/b' }, query: { q: 'x y', none: undefined } }),
    ).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ service: 'probe', code: 'thing_taken', status: 409, detail: 'Choose another.' });
    expect(seen[0]).toMatch(/^GET \/v1\/things\/a%2Fb\?q=x\+y HTTP\/1\.1/);
    expect(seen[0]).toContain('x-platform-correlation-id: click-9');
  });

  test('that changes something is made once when the connection breaks, and again when the other side says it did nothing', async () => {
    const lost = await backend(socket => socket.destroy());
    expect(
      await codeOf(
        new ServiceCaller(poolsTo(lost.port).pools)
          .client(ground.caller, 'probe', routes, problems)
          ['make']?.({ body: {} }) as Promise<unknown>,
      ),
    ).toBe('backend_unreachable');
    expect(lost.seen).toHaveLength(1);
    const busy = await backend(socket =>
      socket.end(busy.seen.length === 1 ? 'HTTP/1.1 503 Busy\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}' : OK),
    );
    expect(
      await new ServiceCaller(poolsTo(busy.port).pools).client(ground.caller, 'probe', routes, problems)['make']?.({ body: {} }),
    ).toEqual({
      ok: true,
    });
    expect(busy.seen).toHaveLength(2);
  });

  test('in this process goes through JSON and carries the correlation id of the request that makes it', async () => {
    const given: Record<string, unknown>[] = [];
    const services = new ServiceCaller(poolsTo().pools);
    const local: LocalService = {
      call: async (operation, input) => (given.push({ operation, ...input }), { at: new Date(0), none: undefined }),
    };
    using registered = services.addLocal('probe', local);
    expect(registered).toBeDefined();
    const answer = await inScope({ correlationId: 'click-3', service: 'test' }, () =>
      services
        .client(ground.caller, 'probe', routes, problems)
        ['make']?.({ body: { at: new Date(0), none: undefined }, targetEnvId: 'env-1', idempotencyKey: 'k' }),
    );
    expect(answer).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(given[0]).toMatchObject({
      operation: 'make',
      body: { at: '1970-01-01T00:00:00.000Z' },
      headers: { 'x-platform-correlation-id': 'click-3', 'x-platform-target-env-id': 'env-1', 'idempotency-key': 'k' },
    });
  });
});
