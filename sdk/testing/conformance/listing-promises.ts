import { gateActions } from '@platform/sdk';
import { expect, test } from 'vitest';
import { as } from '../persona.ts';
import { type ConformanceSubject, sample, sampleParams } from './conformance-subject.ts';

/** In the form of ours, and of a list that nobody has. */
const OF_ANOTHER_LIST = Buffer.from(JSON.stringify(['no such list', 'a', 'b'])).toString('base64url');

/** How every listing must take a cursor (G-K-04). */
export function listingPromises(subject: ConformanceSubject): void {
  const { actions } = subject.contract;
  const listings = subject.gated.filter(([, { method, options }]) => method === 'GET' && 'cursor' in (options.query ?? {}));
  if (listings.length === 0) return;

  test('G-K-04 every listing refuses a cursor that is none with invalid_cursor, and answers no page to one of another list', async () => {
    await subject.use(async host => {
      for (const [name, route] of listings) {
        const named = gateActions(route.options.gate) ?? [];
        if (named.length > 0 && named.every(action => actions[action]?.principals?.every((kind: string) => kind === 'machine'))) continue;
        const persona = as.user(...named.map(action => subject.scope(action)));
        const asked = async (cursor: string): Promise<unknown[]> => {
          if (!subject.ownsAccess) {
            const answer = await host.fetch(`${sample(route)}?target_env_id=${persona.envId}&cursor=${cursor}`, { persona });
            return [name, answer.status, answer.json['code']];
          }
          const call = (host.by(persona) as unknown as Record<string, (input: object) => Promise<unknown>>)[name];
          const refused = await call?.({ params: sampleParams(route), targetEnvId: persona.envId, query: { cursor } }).catch(
            (error: unknown) => error,
          );
          return [name, (refused as { status?: number }).status ?? 200, (refused as { code?: string }).code];
        };
        expect(await asked('zzz')).toEqual([name, 400, 'invalid_cursor']);
        const [, status] = await asked(OF_ANOTHER_LIST);
        expect([name, Number(status) >= 400]).toEqual([name, true]);
      }
    });
  });
}
