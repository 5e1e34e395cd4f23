import { gateActions } from '@platform/sdk';
import { expect, test } from 'vitest';
import { as, type Persona } from '../persona.ts';
import { type ConformanceSubject, sample } from './conformance-subject.ts';

/** Whom every route must refuse. */
export function gatePromises(subject: ConformanceSubject): void {
  const { gated, ownsAccess } = subject;
  const { base, actions } = subject.contract;

  test('every gated route refuses the nameless with 401 and the way to be named', async () => {
    await subject.use(async host => {
      for (const [name, route] of gated) {
        const answer = await host.fetch(sample(route), { method: route.method });
        expect([name, answer.status, answer.json['code']]).toEqual([name, 401, 'unauthenticated']);
        expect(answer.headers['www-authenticate']).toContain('Bearer');
        expect(answer.headers['content-type']).toContain('application/problem+json');
      }
    });
  });

  test('every gated route refuses the unscoped, and the wrong kind, with 403', async () => {
    await subject.use(async host => {
      for (const [name, asked] of gated) {
        const { method, options: route } = asked;
        const declared = (gateActions(route.gate) ?? []).map(action => actions[action]);
        const machineOnly = declared.every(action => action?.principals?.every((kind: string) => kind === 'machine') ?? false);
        if (typeof route.gate === 'object' && 'authenticated' in route.gate) continue;
        if (declared.length === 0) {
          // Any signed-in person will do: a workload is none.
          const refused = await host.fetch(sample(asked), { method, persona: as.machine('probe') });
          expect([name, refused.status, refused.json['code']]).toEqual([name, 403, 'user_required']);
          continue;
        }
        const answer = await host.fetch(`${sample(asked)}?target_env_id=${as.user().envId}`, { method, persona: as.user() });
        expect([name, answer.status]).toEqual([name, 403]);
        expect(answer.json['code']).toBe(machineOnly ? 'm2m_required' : 'policy_denied');
      }
    });
  });

  test('F-27 its gauges are for workloads and for who may read the service, and for nobody else', async () => {
    await subject.use(async host => {
      expect((await host.fetch('/v1/metrics')).status).toBe(401);
      if (ownsAccess) return;
      const status = async (persona: Persona) => (await host.fetch('/v1/metrics', { persona })).status;
      expect([
        await status(as.user()),
        await status(as.user(subject.scope(`${base.id}:metrics:read`), subject.scope(`${base.id}:read`))),
      ]).toEqual([403, 200]);
      expect((await host.fetch('/v1/metrics', { as: await host.workload(base.id) })).status).toBe(200);
    });
  });
}
