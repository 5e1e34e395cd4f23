import { gateActions } from '@platform/sdk';
import { expect, test } from 'vitest';
import { as } from '../persona.ts';
import { type ConformanceSubject, sample, sampleParams } from './conformance-subject.ts';

/** A body that takes members it does not name says so. */
const isOpen = (body: object): boolean => (body as { additionalProperties?: unknown }).additionalProperties === true;

/** How every route must answer what it cannot take, and say of itself what it can. */
export function answerPromises(subject: ConformanceSubject): void {
  const { gated, ownsAccess, routes } = subject;
  const { base, actions } = subject.contract;

  test('F-28 F-34 a wrong method, an unknown path and an Accept that admits nothing are refused in problem form, which nobody may take for something else', async () => {
    await subject.use(async host => {
      const refused = async (path: string, method: string, accept = 'application/json') => {
        const answer = await host.fetch(path, { method, headers: { accept } });
        expect([path, answer.headers['content-type'], answer.headers['x-content-type-options']]).toEqual([
          path,
          expect.stringContaining('application/problem+json'),
          'nosniff',
        ]);
        return answer;
      };
      const wrong = await refused('/v1/health', 'DELETE');
      expect([wrong.status, wrong.json['code'], wrong.headers['allow']]).toEqual([405, 'method_not_allowed', 'GET, HEAD']);
      expect((await refused('/v1/nothing-is-here', 'GET')).status).toBe(404);
      expect((await refused('/v1/health', 'GET', 'image/png')).json).toMatchObject({ status: 406, code: 'not_acceptable' });
      expect((await host.fetch('/v1/health')).headers['x-content-type-options']).toBe('nosniff');
    });
  });

  test('unknown members of a body are refused with a pointer to each', async () => {
    await subject.use(async host => {
      for (const [name, declared] of gated.filter(([, { options: route }]) => route.body && !isOpen(route.body))) {
        const { method, options: route } = declared;
        const [action = ''] = gateActions(route.gate) ?? [];
        if (actions[action]?.principals?.every((kind: string) => kind === 'machine')) continue;
        const persona = as.user(...(gateActions(route.gate) ?? []).map(action => subject.scope(action)));
        // A service that says itself what people hold has never heard of this one: it is asked with the scopes in hand.
        if (ownsAccess) {
          const call = (host.by(persona) as unknown as Record<string, (input: object) => Promise<unknown>>)[name];
          const refused = await call?.({ params: sampleParams(declared), targetEnvId: persona.envId, body: { no_such_member: 1 } }).catch(
            (error: unknown) => error,
          );
          expect([name, refused]).toEqual([name, expect.objectContaining({ status: 400, code: 'validation_failed' })]);
          expect((refused as { extra: { errors: { pointer: string }[] } }).extra.errors.map(({ pointer }) => pointer)).toContain(
            '/no_such_member',
          );
          continue;
        }
        const answer = await host.fetch(`${sample(declared)}?target_env_id=${persona.envId}`, {
          method,
          persona,
          body: JSON.stringify({ no_such_member: 1 }),
        });
        expect([name, answer.status, answer.json['code']]).toEqual([name, 400, 'validation_failed']);
        expect((answer.json['errors'] as { pointer: string }[]).map(({ pointer }) => pointer)).toContain('/no_such_member');
      }
    });
  });

  test('the interface description names every public path once, with an operation id of its own', async () => {
    await subject.use(async host => {
      const { json } = await host.fetch('/openapi.json');
      expect(json['openapi']).toBe('3.1.0');
      const operations = Object.values(json['paths'] as Record<string, Record<string, { operationId: string }>>).flatMap(path =>
        Object.values(path).map(({ operationId }) => operationId),
      );
      const requests = routes
        .filter(([, { door, options: route }]) => door === 'request' && !route.hidden)
        .map(([name]) => `${base.id}.${name}`);
      expect(operations).toEqual(expect.arrayContaining(requests));
    });
  });
}
