import { as, newId } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import type { World } from '../fixtures/world.ts';

const DEFAULTS = { waf_mode: 'default', waf_large_bodies: 'default', rate_limit: 'default' } as const;
const ATTACK = { path: `/find?q=${encodeURIComponent("1' union select password from users--")}` };

/** What operators ask of the ingress for one environment. */
export function describeSettings(given: () => World): void {
  const operator = (env_id: string) => given().host.by(as.userIn(env_id, 'proxy:settings:write', 'proxy:findings:read'));
  /** A host of an environment of its own. */
  const tenant = (attributes: Record<string, unknown> = {}) => {
    const env_id = newId();
    const host = `echo.prod.s${env_id.slice(-12)}.localhost`;
    given().attributes.set(env_id, attributes);
    given().hosts.set(host, { service: 'echo', status: 'active', env_id });
    return { host, env_id };
  };
  const put = (env_id: string, body: object, by = operator(env_id)) =>
    by.putSettings({ targetEnvId: env_id, body: { ...DEFAULTS, ...body } });

  describe('settings of an environment', () => {
    test('G-PROXY-06 what an operator saves counts from the next request on, and leaves nothing when it is taken back', async () => {
      const world = given();
      const { host, env_id } = tenant({ waf_enabled: false });
      const read = () => operator(env_id).settings({ targetEnvId: env_id });
      expect(await read()).toEqual({
        ...DEFAULTS,
        waf_mode: 'off',
        in_force: { waf_mode: 'off', waf_large_bodies: true, rate_limit: false, rate_limit_rps: 100 },
      });
      expect((await world.ask(host, ATTACK)).status).toBe(200);
      const wanted = { waf_mode: 'block', waf_large_bodies: 'off', rate_limit: 'on', rate_limit_rps: 7 };
      const in_force = { waf_mode: 'block', waf_large_bodies: false, rate_limit: true, rate_limit_rps: 7 };
      expect(await put(env_id, wanted)).toEqual({ ...wanted, in_force });
      expect([(await world.ask(host, ATTACK)).status, await read()]).toEqual([403, { ...wanted, in_force }]);
      await put(env_id, { waf_mode: 'detect' });
      expect((await world.ask(host, ATTACK)).status).toBe(200);
      expect((await operator(env_id).findings({})).items[0]).toMatchObject({ env_id, outcome: 'passed' });
      await put(env_id, {});
      expect(world.attributes.get(env_id)).toEqual({});
    });

    test('G-K-10 a change is told to every process, and is in the trail with what was before, once', async () => {
      const world = given();
      const { env_id } = tenant();
      for (const waf_mode of ['block', 'block', 'default']) await put(env_id, { waf_mode });
      await world.host.clock.advance('2s');
      const audits = () => world.host.audits.filter(({ action, env_id: of }) => action === 'proxy.settings.updated' && of === env_id);
      await expect
        .poll(() => audits().map(({ details }) => details))
        .toEqual([
          { changes: { waf_mode: { from: 'default', to: 'block' } } },
          { changes: { waf_mode: { from: 'block', to: 'default' } } },
        ]);
      await expect
        .poll(() => world.host.bus.filter(event => event.event_type === 'platform:proxy:policy:updated' && event.env_id === env_id))
        .toMatchObject(Array(3).fill({ stream_family: 'policy', payload: { service: 'proxy', policy_set: null, kind: 'attributes' } }));
    });

    test('G-PROXY-06 who may not, and what is no setting, changes nothing', async () => {
      const { env_id } = tenant();
      const reader = given().host.by(as.userIn(env_id, 'proxy:settings:read'));
      await expect(put(env_id, { waf_mode: 'off' }, reader)).rejects.toMatchObject({ code: 'policy_denied' });
      for (const body of [{ waf_mode: 'loud' }, { rate_limit_rps: 0 }, { rate_limit_rps: 1.5 }, { rate_limit: true }, { more: 1 }])
        await expect(put(env_id, body)).rejects.toMatchObject({ code: 'validation_failed' });
      expect(given().attributes.get(env_id)).toEqual({});
    });
  });
}
