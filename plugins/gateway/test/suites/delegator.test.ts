import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { gateway } from '../../contract/index.ts';
import { type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

/** The workload that acts in other environments. */
export function describeDelegator(given: () => World): void {
  describe('delegator', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const get = (path: string, headers: Record<string, string> = {}) =>
      world.ask('GET', path, { headers: { cookie: browser.cookie, ...headers } });
    const later = (seconds: number) => world.later(seconds);

    describe('the delegator', () => {
      const file = () => join(world.stores.dataDir, 'bff', 'delegator.json');
      /** A process that no other has registered for. */
      const first = () => {
        rmSync(file());
        return world.another();
      };

      test('GWY-086 registers itself when the gateway starts, and leaves a file that only its user reads', async () => {
        await first();
        await eventually(async () => world.identity.registrations.length).toBe(1);
        expect(world.identity.registrations[0]).toMatchObject({
          as: 'delegator',
          metadata: { token_endpoint_auth_method: 'tls_client_auth', tls_client_auth_subject_dn: 'CN=m2m-bff-delegator' },
        });
        await eventually(async () => JSON.parse(readFileSync(file(), 'utf8')) as object).toMatchObject({
          client_id: 'bff-delegator',
          issuer: 'https://auth.ops.sys.localhost:8443',
        });
        expect(statSync(file()).mode & 0o777).toBe(0o600);
      });

      test('GWY-086 is who the file says it is, without asking again, unless the file is of somebody else', async () => {
        await first();
        await eventually(() => existsSync(file())).toBe(true);
        const second = await world.another();
        const headers = { cookie: browser.cookie, 'x-bff-target-env-id': ENV };
        expect((await second.ask('GET', '/proxy/lending/v1/loans', { headers })).status).toBe(200);
        expect(world.identity.registrations).toHaveLength(1);
        writeFileSync(file(), JSON.stringify({ client_id: 'bff-delegator', issuer: 'https://auth.ops.sys.elsewhere' }));
        await world.another();
        await eventually(async () => world.identity.registrations.length).toBe(2);
      });

      test('GWY-087 GWY-081 that cannot register tries 30 times, 3 seconds apart; the gateway serves, delegation is 502 and readiness says why', async () => {
        world.identity.refusals.set('register', 'down');
        const lost = await first();
        const tries = () => world.identity.registrations.length;
        const after = async (duration: string) => {
          await lost.host.clock.advance(duration);
          return tries();
        };
        const healthy = async () => (await lost.host.fetch('/readiness')).json['checks'];
        // The first try is refused while the process is ready already.
        await eventually(() => after('3s')).toBe(2);
        expect([await after('2s'), await after('1s')]).toEqual([2, 3]);
        expect([await after('83s'), await after('1s')]).toEqual([30, 31]);
        expect(await after('30s')).toBe(31);
        expect(await healthy()).toMatchObject({ delegator: { ok: false } });
        const person = await lost.signIn();
        expect((await lost.ask('GET', '/proxy/sys/v1/o', { headers: { cookie: person.cookie } })).status).toBe(200);
        const targeted = () => lost.ask('GET', '/proxy/sys/v1/o', { headers: { cookie: person.cookie, 'x-bff-target-env-id': ENV } });
        const answer = await targeted();
        expect([answer.status, await codeOf(answer)]).toEqual([502, 'delegator_unavailable']);
        world.identity.refusals.clear();
        expect((await targeted()).status).toBe(200);
        expect(await healthy()).toMatchObject({ delegator: { ok: true } });
      });

      test('GWY-071 GWY-072 gets its own token with its certificate, and for its four scopes', async () => {
        await get('/proxy/sys/v1/o', { 'x-bff-target-env-id': ENV });
        const [own] = world.identity.grants('client_credentials');
        expect(own).toMatchObject({ path: '/mtls/oauth/token', as: 'delegator', hostname: 'auth.ops.sys.localhost' });
        expect(own?.form).toMatchObject({
          client_id: 'bff-delegator',
          scope: 'platform:delegate:read platform:scim:read platform:scim:write platform:sys:instances:read',
        });
        expect(Object.values(gateway.base.workloads.delegator).flat().sort()).toEqual([
          'delegate:read',
          'scim:read',
          'scim:write',
          'sys:instances:read',
        ]);
      });

      test('GWY-013 an exchanged token is kept for its life and no longer, and not beyond the session', async () => {
        const exchanges = () => world.identity.grants('urn:ietf:params:oauth:grant-type:token-exchange').length;
        const call = () => get('/proxy/sys/v1/o', { 'x-bff-target-env-id': ENV });
        await call();
        later(560);
        await call();
        expect(exchanges()).toBe(1);
        later(20);
        await call();
        expect(exchanges()).toBe(2);
        await world.ask('POST', '/auth/sign-out', { headers: browser.headers });
        browser = await world.signIn();
        await call();
        expect(exchanges()).toBe(3);
      });
    });
  });
}
