import { beforeEach, describe, expect, test } from 'vitest';
import { PERSON } from '../fixtures/fake-identity.ts';
import { type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

/** The directory of an environment. */
export function describeDirectory(given: () => World): void {
  describe('directory', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
      world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['delegate:write', 'scim:write']);
    });

    describe('the directory of an environment', () => {
      const USER = 'u-1';
      const scim = (method: string, path = '', body?: object) =>
        world.ask(method, `/delegate/scim/users${path}`, {
          ...(body ? { body: JSON.stringify(body) } : {}),
          headers: {
            ...browser.headers,
            'x-bff-target-env-id': ENV,
            ...(body ? { 'content-type': 'application/scim+json', 'content-length': String(JSON.stringify(body).length) } : {}),
          },
        });

      test("GWY-041 is asked in six ways at the environment's identity service, with the delegator's certificate and token", async () => {
        world.backend = ({ method }) =>
          method === 'DELETE'
            ? new Response(null, { status: 204 })
            : Response.json({ id: USER }, { status: method === 'POST' ? 201 : 200, headers: { etag: 'W/"1"' } });
        const answers = [
          await scim('GET', '?filter=userName%20eq%20%22a%22&count=5'),
          await scim('POST', '', { userName: 'a' }),
          await scim('GET', `/${USER}`),
          await scim('PUT', `/${USER}`, { userName: 'b' }),
          await scim('PATCH', `/${USER}`, { Operations: [] }),
          await scim('DELETE', `/${USER}`),
        ];
        expect(answers.map(({ status }) => status)).toEqual([200, 201, 200, 200, 200, 204]);
        expect(answers[0]?.headers.get('etag')).toBe('W/"1"');
        expect(world.sent.map(({ method, path, body }) => [method, path, body])).toEqual([
          ['GET', '/scim/v2/Users?filter=userName%20eq%20%22a%22&count=5', ''],
          ['POST', '/scim/v2/Users', '{"userName":"a"}'],
          ['GET', `/scim/v2/Users/${USER}`, ''],
          ['PUT', `/scim/v2/Users/${USER}`, '{"userName":"b"}'],
          ['PATCH', `/scim/v2/Users/${USER}`, '{"Operations":[]}'],
          ['DELETE', `/scim/v2/Users/${USER}`, ''],
        ]);
        const own = world.identity.grants('client_credentials');
        expect(own).toHaveLength(1);
        for (const sent of world.sent) {
          expect(sent).toMatchObject({ service: 'auth', as: 'delegator', hostname: 'auth.prod.shop.localhost' });
          expect(sent.headers['authorization']).toBe(`Bearer ${world.identity.issued.find(token => token.startsWith('m2m.'))}`);
        }
      });

      test('GWY-041 GWY-082 is read and changed only by who may there, and never with the token of the staff', async () => {
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['scim:read']);
        expect([(await scim('GET')).status, (await scim('DELETE', `/${USER}`)).status]).toEqual([200, 403]);
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, []);
        const refused = await scim('GET');
        expect([refused.status, await codeOf(refused)]).toEqual([403, 'target_denied']);
        expect((await world.ask('POST', '/delegate/scim/users', { body: '{}', headers: { cookie: browser.cookie } })).status).toBe(403);
        expect(world.sent.map(({ method }) => method)).toEqual(['GET']);
        expect(world.sent[0]?.headers['authorization']).not.toContain(world.identity.issued[0]);
      });

      test('GWY-081 that does not believe the delegator is 502, the session stays, and the next call brings a new token', async () => {
        world.backend = () => new Response(null, { status: 401 });
        const answer = await scim('GET');
        expect([answer.status, await codeOf(answer)]).toEqual([502, 'delegator_unavailable']);
        world.backend = () => Response.json({});
        expect((await scim('GET')).status).toBe(200);
        expect(world.identity.grants('client_credentials')).toHaveLength(2);
      });

      test('GWY-066 GWY-041 is not in reach of an application of a tenant, and such a one asks customers of its own environment only', async () => {
        const instance = '018f0000-0000-7000-8000-00000000f001';
        const elsewhere = '018f0000-0000-7000-8000-00000000e002';
        world.beside.apps.set(instance, {
          auth_mode: 'open',
          auth_group: null,
          allow_signup: false,
          oauth_client_id: 'console',
          scope_whitelist: ['openid'],
          service_whitelist: ['auth', 'lending'],
        });
        world.identity.access = { env_id: ENV, auth_env: ENV };
        world.beside.scopesIn.set(`${PERSON} ${elsewhere}`, ['delegate:write']);
        const at = { host: 'bff.shop.localhost', tenant: { envId: ENV, appInstanceId: instance }, origin: 'https://shop.localhost:8443' };
        browser = await world.signIn({}, at);
        const refused = await world.ask('GET', '/delegate/scim/users', { ...at, headers: browser.headers });
        expect([refused.status, await codeOf(refused)]).toEqual([403, 'not_whitelisted']);
        const begin = async (envId: string) =>
          (
            await world.ask('POST', '/delegate/start', {
              ...at,
              headers: browser.headers,
              body: JSON.stringify({ env_id: envId, login_hint: 'customer@example.org' }),
            })
          ).status;
        expect([await begin(ENV), await begin(elsewhere)]).toEqual([202, 403]);
        expect(world.sent).toEqual([]);
      });

      test.each(['.', '..', '%2e%2e'])('a person called %s is no way out of the directory', async id => {
        const answer = await world.ask('GET', `/delegate/scim/users/${id}`, { headers: browser.headers }).catch(() => undefined);
        expect(answer?.status ?? 404).toBeGreaterThanOrEqual(400);
        expect(world.sent).toEqual([]);
      });
    });
  });
}
