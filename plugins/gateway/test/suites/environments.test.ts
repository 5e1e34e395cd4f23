import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

/** Calls into an environment, the own one or another. */
export function describeEnvironments(given: () => World): void {
  describe('environments', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
    });

    const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
    const get = (path: string, headers: Record<string, string> = {}) =>
      world.ask('GET', path, { headers: { cookie: browser.cookie, ...headers } });
    const targeted = (path: string, env = ENV) => get(path, { 'x-bff-target-env-id': env });

    describe('another environment', () => {
      test('GWY-013 GWY-058 GWY-059 GWY-060 is entered with a token of the delegator for this person, environment and service, fetched once', async () => {
        await Promise.all([targeted('/proxy/lending/v1/loans'), targeted('/proxy/lending/v1/loans')]);
        await targeted('/proxy/lending/v1/loans');
        const [exchange, ...more] = world.identity.grants(EXCHANGE);
        expect(more).toEqual([]);
        expect(exchange).toMatchObject({
          path: '/mtls/oauth/token',
          as: 'delegator',
          form: {
            client_id: 'bff-delegator',
            actor_token: world.identity.issued[0],
            subject_token: world.identity.issued[3],
            audience: 'lending',
            resource: `urn:platform:env:${ENV}`,
          },
        });
        expect(exchange?.form).not.toHaveProperty('scope');
        expect(new Set(world.sent.map(({ headers }) => headers['authorization']))).toEqual(new Set([`Bearer ${world.identity.issued[4]}`]));
        expect(world.sent[0]?.headers['x-bff-target-env-id']).toBe(ENV);
        await targeted('/proxy/sys/v1/env');
        expect(world.identity.grants(EXCHANGE)).toHaveLength(2);
        for (let time = 0; time < 2; time++) await targeted('/proxy/lending/v1/loans', SYSTEM.envId);
        expect(world.identity.grants(EXCHANGE)).toHaveLength(3);
        expect(world.identity.grants('client_credentials')).toHaveLength(1);
      });

      test("F-22 GWY-058 GWY-059 the session's own is entered the same way when it is named", async () => {
        for (const service of ['sys', 'lending']) await targeted(`/proxy/${service}/v1/o`, SYSTEM.envId);
        expect(world.identity.grants(EXCHANGE).map(({ form }) => [form['audience'], form['resource']])).toEqual(
          ['sys', 'lending'].map(service => [service, `urn:platform:env:${SYSTEM.envId}`]),
        );
        expect(world.sent.map(({ headers }) => headers['authorization'])).not.toContain(`Bearer ${world.identity.issued[0]}`);
      });

      test('F-22 a service of a vertical never sees the token that every service of the platform takes', async () => {
        expect((await get('/proxy/lending/v1/loans')).status).toBe(200);
        expect(world.identity.grants(EXCHANGE).map(({ form }) => [form['audience'], form['resource']])).toEqual([
          ['lending', `urn:platform:env:${SYSTEM.envId}`],
        ]);
        expect(world.sent[0]?.headers['authorization']).toBe(`Bearer ${world.identity.issued.at(-1)}`);
        expect(world.sent[0]?.headers).not.toHaveProperty('x-bff-target-env-id');
        await get('/proxy/sys/v1/o');
        expect(world.sent[1]?.headers['authorization']).toBe(`Bearer ${world.identity.issued[0]}`);
      });

      test.each([
        ['GWY-080 a refusal is 403', { status: 403, error: 'invalid_target' }, [403, 'target_denied']],
        ['a refusal in the form of RFC 6749 is 403', { status: 400, error: 'invalid_target' }, [403, 'target_denied']],
        ['GWY-081 an identity service that fails is 502', { status: 503 }, [502, 'identity_unavailable']],
        ['GWY-081 an identity service that is away is 502', 'down', [502, 'identity_unavailable']],
      ] as const)('%s', async (_, refusal, expected) => {
        world.identity.refusals.set(EXCHANGE, refusal);
        const answer = await targeted('/proxy/lending/v1/loans');
        expect([answer.status, await codeOf(answer)]).toEqual(expected);
        // GWY-082
        expect(world.sent).toEqual([]);
      });

      test('a delegator whose token is no longer known gets a new one', async () => {
        await targeted('/proxy/lending/v1/loans');
        world.identity.refusals.set(EXCHANGE, { status: 400, error: 'invalid_grant' });
        expect((await targeted('/proxy/sys/v1/o')).status).toBe(403);
        expect(world.identity.grants('client_credentials')).toHaveLength(2);
      });

      test('a change of access makes the next call ask again', async () => {
        await targeted('/proxy/lending/v1/loans');
        await world.accessChanged();
        await targeted('/proxy/lending/v1/loans');
        expect(world.identity.grants(EXCHANGE)).toHaveLength(2);
      });

      test('header and query must name the same one', async () => {
        const answer = await targeted(`/proxy/lending/v1/loans?target_env_id=${SYSTEM.envId}`);
        expect([answer.status, await codeOf(answer)]).toEqual([400, 'target_mismatch']);
        expect((await targeted(`/proxy/lending/v1/loans?target_env_id=${ENV}`)).status).toBe(200);
      });

      test('an organization is only named, and the environment wins over it', async () => {
        await get('/proxy/sys/v1/o', { 'x-bff-target-org-id': ENV });
        await get('/proxy/sys/v1/o', { 'x-bff-target-org-id': ENV, 'x-bff-target-env-id': ENV });
        expect(world.sent.map(({ path }) => path)).toEqual([`/v1/o?target_org_id=${ENV}`, '/v1/o']);
        expect(world.identity.grants(EXCHANGE)).toHaveLength(1);
      });
    });

    describe('a service that an environment switched off', () => {
      test('is 403 there, and open again as soon as the registry says so on either way', async () => {
        world.beside.disabled.add('lending');
        const refused = await targeted('/proxy/lending/v1/loans');
        expect([refused.status, await codeOf(refused)]).toEqual([403, 'service_disabled']);
        expect(world.identity.grants(EXCHANGE)).toEqual([]);
        expect((await get('/proxy/lending/v1/loans')).status).toBe(200);
        world.beside.disabled.clear();
        expect((await targeted('/proxy/lending/v1/loans')).status).toBe(403);
        await world.kv.call('PUBLISH', 'platform:sys:domain:changed', JSON.stringify({ scope: 'env', env_id: ENV }));
        await eventually(async () => (await targeted('/proxy/lending/v1/loans')).status).toBe(200);
        world.beside.disabled.add('lending');
        await world.hear('platform:sys:service:updated', ENV, { env_id: ENV, service: 'lending' });
        expect((await targeted('/proxy/lending/v1/loans')).status).toBe(403);
      });
    });
  });
}
