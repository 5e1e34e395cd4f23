import { eventBus } from '@platform/event-bus/contract';
import busPlugin from '@platform/event-bus/plugin';
import { operatorActions } from '@platform/kernel/host/operator-actions';
import { SYSTEM } from '@platform/sdk';
import { as, boot, type BootedHost, manifestOf } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { lending } from '../../../../e2e/verticals/lending/contract/index.ts';
import { PERSON } from '../fixtures/fake-identity.ts';
import { type AskOptions, type Browser, codeOf, ENV, type Sent, type World } from '../fixtures/world.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const DECIDE = {
  action: 'lending:decideLoan',
  service: 'lending',
  method: 'POST',
  path: '/v1/loans/{loan_id}/decision',
  params_schema: {
    type: 'object',
    properties: { loan_id: { type: 'string' }, approve: { type: 'boolean' } },
    required: ['loan_id', 'approve'],
    additionalProperties: false,
  },
  policy_action: 'acme:lending:decide',
  target_env: true,
};
const READ = { ...DECIDE, action: 'lending:listLoans', method: 'GET', path: '/v1/loans', params_schema: { type: 'object' } };

/** What services registered as actions. */
export function describeActions(given: () => World): void {
  describe('actions', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
      world.beside.services.push({ service: 'lending', vertical: 'acme', actions: [DECIDE, READ] });
      world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['acme:lending:decide']);
    });

    const dispatch = (action: string, body: unknown, more: AskOptions = {}) =>
      world.ask('POST', `/bff/action/${action}`, {
        body: JSON.stringify(body),
        ...more,
        headers: { ...browser.headers, 'content-type': 'application/json', ...more.headers },
      });
    const decide = (params: object = { loan_id: 'l 1', approve: true }, more: object = { target_env_id: ENV }) =>
      dispatch('lending:decideLoan', { params, ...more });

    describe('an action', () => {
      test('GWY-029 is a route that says so, with the members of its path and body as parameters and its gate as the question to policy', () => {
        const [decideLoan, ...others] = operatorActions(manifestOf(lending, 'test')) as (typeof DECIDE)[];
        expect(others).toEqual([]);
        expect(decideLoan).toMatchObject({
          ...DECIDE,
          params_schema: { type: 'object', required: ['loan_id', 'approve'], additionalProperties: false },
        });
        expect(Object.keys(decideLoan?.params_schema.properties ?? {}).sort()).toEqual(['approve', 'loan_id']);
      });

      test('GWY-029 is the call its service registered, for the person and environment of the request, and its answer comes back unchanged', async () => {
        world.backend = () => Response.json({ state: 'approved' }, { status: 202, headers: { etag: '"1"' } });
        const answer = await decide();
        expect([answer.status, answer.headers.get('etag'), await answer.json()]).toEqual([202, '"1"', { state: 'approved' }]);
        expect(world.sent).toHaveLength(1);
        expect(world.sent[0]).toMatchObject({
          service: 'lending',
          method: 'POST',
          path: '/v1/loans/l%201/decision',
          body: '{"approve":true}',
        });
        expect(world.sent[0]?.headers).toMatchObject({
          authorization: `Bearer ${world.identity.issued.at(-1)}`,
          'x-bff-target-env-id': ENV,
        });
        expect(world.identity.grants(EXCHANGE)[0]?.form).toMatchObject({ audience: 'lending', resource: `urn:platform:env:${ENV}` });
      });

      test('G-K-03 takes its Idempotency-Key along to the service that keeps it', async () => {
        const body = JSON.stringify({ params: { loan_id: '1', approve: true }, target_env_id: ENV });
        const headers = { ...browser.headers, 'content-type': 'application/json', 'idempotency-key': 'decide-1' };
        await world.ask('POST', '/bff/action/lending:decideLoan', { body, headers });
        expect(world.sent[0]?.headers).toMatchObject({ 'idempotency-key': 'decide-1' });
      });

      test('GWY-029 of a read puts its parameters into the query', async () => {
        expect((await dispatch('lending:listLoans', { params: { state: 'applied', limit: 5 }, target_env_id: ENV })).status).toBe(200);
        expect(world.sent[0]).toMatchObject({ method: 'GET', path: '/v1/loans?state=applied&limit=5', body: '' });
      });

      test('GWY-029 is asked of policy where it has its effect, and nowhere else', async () => {
        const denied = await decide(undefined, {});
        expect([denied.status, await codeOf(denied)]).toEqual([403, 'policy_denied']);
        world.beside.scopesIn.set(`${PERSON} ${SYSTEM.envId}`, ['acme:lending:decide']);
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, []);
        await world.scopesChanged();
        expect(await codeOf(await decide())).toBe('policy_denied');
        expect(world.sent).toEqual([]);
      });

      test.each([
        ['that nobody registered is 404', 'lending:burn', {}, 404, 'action_not_found'],
        ['with a parameter too many is 400', 'lending:decideLoan', { params: { loan_id: '1', approve: true, x: 1 } }, 400, 'malformed'],
        ['with one of another type is 400', 'lending:decideLoan', { params: { loan_id: '1', approve: 'yes' } }, 400, 'malformed'],
        ['without parameters is 400', 'lending:decideLoan', {}, 400, 'malformed'],
        [
          'that leaves the path is 400',
          'lending:decideLoan',
          { params: { loan_id: '..', approve: true }, target_env_id: ENV },
          400,
          'malformed',
        ],
        ['with a member nobody knows is 400', 'lending:decideLoan', { parameters: {} }, 400, 'malformed'],
        ['that is a list is 400', 'lending:decideLoan', [1], 400, 'malformed'],
        [
          'for no environment at all is 400',
          'lending:decideLoan',
          { params: { loan_id: '1', approve: true }, target_env_id: 'prod' },
          400,
          'malformed',
        ],
      ] as const)('%s', async (_, action, body, status, code) => {
        const answer = await dispatch(action, body);
        expect([answer.status, await codeOf(answer)]).toEqual([status, code]);
        expect(world.sent).toEqual([]);
      });

      test('GWY-029 needs the session, its origin and its CSRF token', async () => {
        const body = JSON.stringify({ params: { loan_id: '1', approve: true } });
        const path = '/bff/action/lending:decideLoan';
        expect(await codeOf(await world.ask('POST', path, { body }))).toBe('session_required');
        expect(await codeOf(await world.ask('POST', path, { body, headers: { cookie: browser.cookie } }))).toBe('csrf_mismatch');
        expect(await codeOf(await world.ask('POST', path, { body, headers: browser.headers, origin: 'https://evil.example' }))).toBe(
          'origin_denied',
        );
      });

      test.each([
        ['calls another service', { ...DECIDE, action: 'lending:x', service: 'sys' }, 'lending:x'],
        ["has another service's name", { ...DECIDE, action: 'sys:x' }, 'sys:x'],
        ['leads off the registered path', { ...DECIDE, action: 'lending:x', path: '//evil/v1' }, 'lending:x'],
        ['is no action', { action: 'lending:x' }, 'lending:x'],
      ])('that %s is not taken from the registry', async (_, def, name) => {
        world.beside.services.splice(0, 9, { service: 'lending', vertical: 'acme', actions: [def] });
        expect((await dispatch(name, { params: { loan_id: '1', approve: true }, target_env_id: ENV })).status).toBe(404);
      });

      test('GWY-029 is known for half a minute, and a service that came is known at once', async () => {
        await decide();
        world.beside.services.push({ service: 'desk', vertical: 'acme', actions: [{ ...READ, action: 'desk:list', service: 'desk' }] });
        const ask = async () => (await dispatch('desk:list', { target_env_id: ENV })).status;
        expect(await ask()).toBe(404);
        await world.registered({ service: 'desk' });
        await expect.poll(ask).toBe(200);
        world.beside.services.pop();
        expect(await ask()).toBe(200);
        world.later(31_000 / 1_000);
        expect(await ask()).toBe(404);
      });

      test('GWY-066 of a banned service is not for applications of tenants', async () => {
        world.beside.services.push({
          service: 'sys',
          vertical: 'platform',
          actions: [{ ...READ, action: 'sys:list', service: 'sys', policy_action: 'sys:read' }],
        });
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['sys:read', 'acme:lending:decide']);
        const instance = '018f0000-0000-7000-8000-00000000f001';
        world.beside.apps.set(instance, {
          auth_mode: 'open',
          auth_group: null,
          allow_signup: false,
          oauth_client_id: 'console',
          scope_whitelist: ['openid'],
          service_whitelist: ['sys', 'lending'],
        });
        world.identity.access = { env_id: ENV, auth_env: ENV };
        const at = { host: 'bff.shop.localhost', tenant: { envId: ENV, appInstanceId: instance }, origin: 'https://shop.localhost:8443' };
        browser = await world.signIn({}, at);
        const answers = await Promise.all(['sys:list', 'lending:listLoans'].map(action => dispatch(action, {}, at)));
        expect([answers[0]?.status, await codeOf(answers[0] as Response), answers[1]?.status]).toEqual([403, 'not_whitelisted', 200]);
      });
    });

    describe('events of an operator', () => {
      let host: BootedHost<typeof eventBus>;
      const produced: Record<string, unknown>[] = [];
      beforeAll(async () => {
        // On stores of its own: on the gateway's it would be an instance of the bus there, beside the one that is played.
        host = (await boot(busPlugin)) as BootedHost<typeof eventBus>;
      }, 120_000);
      afterAll(() => host[Symbol.asyncDispose]());
      beforeEach(() => {
        produced.length = 0;
        world.beside.services.push({ service: 'bus', vertical: 'platform', actions: operatorActions(manifestOf(eventBus, 'test')) });
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['bus:produce']);
        world.beside.scopesIn.set(`${PERSON} ${SYSTEM.envId}`, ['bus:produce']);
        // The real bus judges both calls: the person's, as the exchanged token reads, and the producer's.
        world.backend = async ({ path, method, body }: Sent) => {
          const { status, text } = await host.fetch(path, {
            method,
            body,
            persona: as.delegated(ENV, 'bus:produce'),
            headers: { 'x-platform-correlation-id': 'operator-1' },
          });
          return new Response(text, { status, headers: { 'content-type': 'application/json' } });
        };
        world.beside.produce = async body => {
          produced.push(body);
          return host.by(as.machine('bff-producer', 'bus:produce')).produce({ body: body as never }) as Promise<object>;
        };
      });

      const event = (more: object = {}) => ({ event_type: 'platform:desk:note:added', stream_family: 'desk', payload: { n: 1 }, ...more });
      const entries = async (envId: string) => {
        const reader = host.by(as.machine('desk', 'bus:consume'));
        const answer = (await reader.consume({
          body: { env_id: envId, stream_family: 'desk', consumer_group: `g-${produced.length}-${envId}`, count: 10, start: 'earliest' },
        })) as {
          entries: Record<string, unknown>[];
        };
        return answer.entries;
      };

      test("BUS-077 BUS-078 that the person may not say are said once by the platform's producer, after the person was refused", async () => {
        const answer = await dispatch('bus:produce', { params: event(), target_env_id: ENV });
        expect([answer.status, await answer.json()]).toEqual([
          200,
          { message_id: expect.any(String), stream: expect.stringContaining(ENV) },
        ]);
        expect([world.sent.length, produced.length]).toEqual([1, 1]);
        expect(world.sent[0]).toMatchObject({ service: 'bus', path: '/v1/produce' });
        expect(await entries(ENV)).toMatchObject([
          { event_type: 'platform:desk:note:added', env_id: ENV, publisher_subject: 'bff-producer', payload: { n: 1 } },
        ]);
      });

      test('BUS-078 a producer that is refused too is not asked again, and its refusal is the answer', async () => {
        const answer = await dispatch('bus:produce', { params: event({ event_type: 'acme:desk:note:added' }), target_env_id: ENV });
        expect([answer.status, await codeOf(answer)]).toEqual([403, 'event_ownership']);
        expect([world.sent.length, produced.length]).toEqual([1, 1]);
      });

      test('BUS-078 no other refusal is tried again', async () => {
        const malformed = await dispatch('bus:produce', { params: event({ stream_family: 'dlq' }), target_env_id: ENV });
        expect([malformed.status, await codeOf(malformed)]).toEqual([400, 'invalid_stream_family']);
        world.backend = () => Response.json({ code: 'policy_denied' }, { status: 403 });
        expect(await codeOf(await dispatch('bus:produce', { params: event(), target_env_id: ENV }))).toBe('policy_denied');
        expect(produced).toEqual([]);
      });

      test('a producer that fails is 500 with an id to ask by, and not a word of why', async () => {
        world.beside.produce = async () => {
          throw new Error('the shelf is empty');
        };
        const answer = await dispatch('bus:produce', { params: event(), target_env_id: ENV });
        const text = await answer.clone().text();
        expect([answer.status, await codeOf(answer), text.includes('shelf')]).toEqual([500, 'internal', false]);
        expect(JSON.parse(text)).toMatchObject({ correlation_id: answer.headers.get('x-platform-correlation-id') });
      });

      test('BUS-077 who may produce for a tenant only is no operator, and gets the refusal', async () => {
        world.beside.scopesIn.set(`${PERSON} ${SYSTEM.envId}`, ['sys:read']);
        const answer = await dispatch('bus:produce', { params: event(), target_env_id: ENV });
        expect([answer.status, await codeOf(answer)]).toEqual([403, 'event_ownership']);
        expect([world.sent.length, produced.length]).toEqual([1, 0]);
      });

      test('BUS-079 go into the environment that the body names, and policy is asked there', async () => {
        expect((await dispatch('bus:produce', { params: event({ env_id: ENV }) })).status).toBe(200);
        expect(produced[0]).toMatchObject({ env_id: ENV });
        const other = '018f0000-0000-7000-8000-00000000e002';
        const denied = await dispatch('bus:produce', { params: event({ env_id: other }) });
        expect([denied.status, await codeOf(denied)]).toEqual([403, 'policy_denied']);
        const two = await dispatch('bus:produce', { params: event({ env_id: other }), target_env_id: ENV });
        expect([two.status, await codeOf(two)]).toEqual([400, 'target_mismatch']);
        expect(produced).toHaveLength(1);
      });

      test("BUS-077 a vertical's own action never borrows the platform's voice", async () => {
        world.beside.services.splice(0, 9, {
          service: 'desk',
          vertical: 'acme',
          actions: [{ ...operatorActions(manifestOf(eventBus, 'test'))[0], action: 'desk:produce', service: 'desk' }],
        });
        world.backend = () => Response.json({ code: 'event_ownership' }, { status: 403 });
        const answer = await dispatch('desk:produce', { params: event(), target_env_id: ENV });
        expect([answer.status, await codeOf(answer)]).toEqual([403, 'event_ownership']);
        expect(produced).toEqual([]);
      });
    });
  });
}
