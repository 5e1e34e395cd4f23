import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '@platform/testing';
import { PERSON } from '../fixtures/fake-identity.ts';
import { type AskOptions, type Browser, codeOf, ENV, type World } from '../fixtures/world.ts';

const CIBA = 'urn:openid:params:grant-type:ciba';
const CUSTOMER = '018f0000-0000-7000-8000-00000000c001';

/** Acting for customers who allow it. */
export function describeDelegations(given: () => World): void {
  describe('delegations', () => {
    let world: World;
    let browser: Browser;
    beforeEach(async () => {
      world = given();
      browser = await world.signIn();
      world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['delegate:write', 'scim:write']);
    });

    const post = (path: string, body: unknown, more: AskOptions = {}) =>
      world.ask('POST', path, {
        body: JSON.stringify(body),
        ...more,
        headers: { ...browser.headers, 'content-type': 'application/json', ...more.headers },
      });
    const get = (path: string, headers: Record<string, string> = {}) =>
      world.ask('GET', path, { headers: { cookie: browser.cookie, ...headers } });
    const start = async (more: object = {}) => {
      const answer = await post('/delegate/start', { env_id: ENV, login_hint: 'customer@example.org', ...more });
      return { status: answer.status, ...((await answer.json()) as { delegation_id: string; code: string }) };
    };
    const later = (seconds: number) => world.later(seconds);
    const poll = async (id: string) => (await (await post('/delegate/poll', { delegation_id: id })).json()) as { state: string };
    const task = () => world.pollDelegations();
    const decide = (decision: { error: string } | { sub: string }) =>
      world.identity.decisions.set(world.identity.asked.at(-1) as string, decision);
    const statusOf = async (id: string) => (await get(`/delegate/status?delegation_id=${id}`)).json() as Promise<Record<string, unknown>>;

    /** What the page hears over its stream. */
    async function listening(): Promise<{ text: () => string; end: () => void }> {
      const aborted = new AbortController();
      const response = await world.ask('GET', '/subscribe', { headers: { cookie: browser.cookie }, signal: aborted.signal });
      let text = '';
      void (async () => {
        for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
      })().catch(() => undefined);
      return { text: () => text, end: () => aborted.abort() };
    }

    describe('acting for a customer', () => {
      test("GWY-036 GWY-037 asks at the customer's own identity service, in the name of the person of the session", async () => {
        const started = await start({ scope: 'lending:read', binding_message: 'Order 4711' });
        expect(started).toMatchObject({
          status: 202,
          delegation_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          state: 'started',
          expires_in: 300,
          interval: 5,
        });
        const call = world.identity.calls.at(-1);
        expect(call).toMatchObject({ path: '/mtls/oauth/bc-authorize', hostname: 'auth.prod.shop.localhost', as: 'delegator' });
        expect(call?.form).toEqual({
          client_id: 'bff-delegator',
          scope: 'openid lending:read',
          login_hint: 'customer@example.org',
          binding_message: 'Order 4711',
          actor_token: world.identity.issued[0],
        });
        for (const act of [{ act: { sub: 'somebody' } }, { actor_token: 'x' }])
          expect(await start(act)).toMatchObject({ status: 400, code: 'malformed' });
      });

      test('G-K-03 is asked of the customer once for an Idempotency-Key, and of nobody whose session has ended', async () => {
        const ask = (more: object = {}, cookie = browser.headers) =>
          world.ask('POST', '/delegate/start', {
            body: JSON.stringify({ env_id: ENV, login_hint: 'customer@example.org', ...more }),
            headers: { ...cookie, 'content-type': 'application/json', 'idempotency-key': 'start-1' },
          });
        const first = await ask();
        const again = await ask();
        expect([again.status, await again.json(), again.headers.get('idempotent-replay')]).toEqual([202, await first.json(), 'true']);
        expect(world.identity.asked).toHaveLength(1);
        const other = await ask({ login_hint: 'another@example.org' });
        expect([other.status, await codeOf(other)]).toEqual([409, 'idempotency_key_reused']);
        expect(await codeOf(await ask({}, { ...browser.headers, cookie: '' }))).toBe('session_required');
      });

      test('GWY-038 GWY-022 is asked about with a proof of possession, and what comes back is kept here', async () => {
        const { delegation_id: id } = await start();
        later(5);
        expect(await poll(id)).toMatchObject({ delegation_id: id, state: 'started', expires_at: expect.any(String) });
        decide({ sub: CUSTOMER });
        later(5);
        expect(await poll(id)).toMatchObject({ state: 'approved' });
        const [first, second] = world.identity.grants(CIBA);
        expect(second).toMatchObject({
          as: 'delegator',
          hostname: 'auth.prod.shop.localhost',
          form: { auth_req_id: world.identity.asked[0] },
        });
        const { jwk, ...header } = decodeProtectedHeader(second?.proof as string);
        expect(header).toEqual({ alg: 'ES256', typ: 'dpop+jwt' });
        expect(jwk).not.toHaveProperty('d');
        const { payload } = await jwtVerify(second?.proof as string, await importJWK(jwk as object, 'ES256'));
        expect(payload).toMatchObject({ htm: 'POST', htu: 'https://auth.prod.shop.localhost:8443/mtls/oauth/token' });
        expect(first?.proof).not.toBe(second?.proof);
      });

      test('GWY-039 GWY-014 GWY-002 the status shows what is known of the token and never the token; at rest its secrets are sealed', async () => {
        const { delegation_id: id } = await start({ binding_message: 'Order 4711' });
        expect(await statusOf(id)).toMatchObject({
          state: 'started',
          customer: { user_id: null, env_id: ENV },
          token: { present: false, scope: null, expires_at: null, jkt: null },
        });
        decide({ sub: CUSTOMER });
        later(5);
        await poll(id);
        const shown = await statusOf(id);
        expect(shown).toMatchObject({
          delegation_id: id,
          state: 'approved',
          customer: { user_id: CUSTOMER, env_id: ENV },
          token: { present: true, scope: 'openid lending:read', expires_at: expect.any(String), jkt: expect.stringMatching(/^[\w-]{43}$/) },
          metadata: { login_hint: 'customer@example.org', binding_message: 'Order 4711' },
        });
        const token = world.identity.issued.at(-1) as string;
        const kept = String(await world.kv.call('GET', `bff:delegation:${id}`));
        for (const secret of [token, world.identity.asked[0] as string, '"d":']) expect(JSON.stringify(shown) + kept).not.toContain(secret);
        // The record ends by itself, some minutes after the token.
        expect(Number(await world.kv.call('PTTL', `bff:delegation:${id}`))).toBeLessThanOrEqual(900_000);
        // The request itself is good for as long as the identity service said, and is asked about no more.
        const { delegation_id: late } = await start();
        const asked = world.identity.grants(CIBA).length;
        later(300);
        expect(await poll(late)).toMatchObject({ state: 'expired' });
        expect(world.identity.grants(CIBA)).toHaveLength(asked);
      });

      test.each([
        ['GWY-022 the customer declines', { error: 'access_denied' }, 'denied'],
        ['GWY-022 the customer lets it run out', { error: 'expired_token' }, 'expired'],
        ['GWY-022 the identity service refuses it', { error: 'invalid_grant' }, 'failed'],
        ['GWY-022 the customer allows it', { sub: CUSTOMER }, 'approved'],
      ] as const)('GWY-023 GWY-088 when %s the page is told once, whoever asks', async (_, decision, state) => {
        const page = await listening();
        const { delegation_id: id } = await start();
        const other = await world.another();
        decide(decision);
        for (const process of [world, other]) process.later(5);
        await Promise.all([task(), poll(id), other.pollDelegations(), poll(id)]);
        expect(await statusOf(id)).toMatchObject({ state });
        later(60);
        await task();
        expect(world.identity.grants(CIBA)).toHaveLength(1);
        const type = state === 'expired' ? 'platform:delegation:expired' : 'platform:delegation:result';
        const payload = state === 'expired' ? { delegation_id: id } : { delegation_id: id, state };
        await eventually(async () => page.text()).toContain(JSON.stringify({ type, payload }).slice(0, -1));
        expect(page.text().match(/event: platform:delegation/g)).toHaveLength(1);
        page.end();
      });

      test('GWY-021 is asked about at most once an interval, slower when told so, and sixty times in all', async () => {
        world.identity.backchannel = { expires_in: 3_600, interval: 5 };
        const { delegation_id: id } = await start();
        const asked = () => world.identity.grants(CIBA).length;
        await poll(id);
        await task();
        expect(asked()).toBe(0);
        later(5);
        await task();
        await poll(id);
        expect(asked()).toBe(1);
        decide({ error: 'slow_down' });
        later(5);
        await task();
        later(5);
        await task();
        expect(asked()).toBe(2);
        decide({ error: 'authorization_pending' });
        later(5);
        await task();
        expect(asked()).toBe(3);
        for (let n = 0; n < 70; n++) {
          later(10);
          await task();
        }
        expect(asked()).toBe(60);
        expect(await statusOf(id)).toMatchObject({ state: 'expired' });
      });

      test('GWY-021 a process that is gone is taken over, and an identity service that is away decides nothing', async () => {
        const { delegation_id: id } = await start();
        world.identity.refusals.set(CIBA, 'down');
        later(5);
        const away = await post('/delegate/poll', { delegation_id: id });
        expect([away.status, await codeOf(away)]).toEqual([502, 'identity_unavailable']);
        later(5);
        await task();
        world.identity.refusals.clear();
        decide({ sub: CUSTOMER });
        const other = await world.another();
        other.later(5);
        await other.pollDelegations();
        expect(await statusOf(id)).toMatchObject({ state: 'approved' });
      });

      test("GWY-080 GWY-082 a call takes the customer's token or none", async () => {
        const { delegation_id: id } = await start();
        const call = (headers: object = {}) => get('/proxy/lending/v1/loans', { 'x-bff-delegation-id': id, ...headers });
        const early = await call();
        expect([early.status, await codeOf(early)]).toEqual([403, 'delegation_not_approved']);
        decide({ sub: CUSTOMER });
        later(5);
        await task();
        expect((await call()).status).toBe(200);
        expect(world.sent).toHaveLength(1);
        const token = world.identity.issued.at(-1) as string;
        expect(world.sent[0]?.headers).toMatchObject({ authorization: `DPoP ${token}`, 'x-bff-target-env-id': ENV });
        const elsewhere = await call({ 'x-bff-target-env-id': SYSTEM.envId });
        expect([elsewhere.status, await codeOf(elsewhere)]).toEqual([400, 'target_mismatch']);
        world.beside.disabled.add('lending');
        await world.hear('platform:sys:service:updated', ENV, {});
        expect(await codeOf(await call())).toBe('service_disabled');
        world.beside.disabled.clear();
        await world.hear('platform:sys:service:updated', ENV, {});
        later(601);
        const late = await call();
        expect([late.status, await codeOf(late)]).toEqual([403, 'delegation_not_approved']);
        expect(world.sent).toHaveLength(1);
      });

      test('F-18 each call carries a proof of its own that the key of the token is held here', async () => {
        const { delegation_id: id } = await start();
        decide({ sub: CUSTOMER });
        later(5);
        await task();
        const token = world.identity.issued.at(-1) as string;
        const { token: shown } = (await statusOf(id)) as { token: { jkt: string } };
        for (const method of ['GET', 'PUT'])
          await world.ask(method, '/proxy/lending/v1/loans/7?x=1', { headers: { ...browser.headers, 'x-bff-delegation-id': id } });
        const proofs = world.sent.map(({ headers }) => headers['dpop'] as string);
        expect(new Set(proofs).size).toBe(2);
        for (const [index, method] of ['GET', 'PUT'].entries()) {
          const { jwk } = decodeProtectedHeader(proofs[index] as string);
          expect(await calculateJwkThumbprint(jwk as object)).toBe(shown.jkt);
          const { payload } = await jwtVerify(proofs[index] as string, await importJWK(jwk as object, 'ES256'));
          expect(payload).toMatchObject({
            htm: method,
            htu: 'https://lending.ops.sys.localhost:8443/v1/loans/7',
            ath: createHash('sha256').update(token).digest('base64url'),
          });
        }
      });

      test('GWY-080 of another session is not there, and neither is one that nobody started', async () => {
        const { delegation_id: id } = await start();
        browser = await world.signIn();
        const answers = [
          await get('/proxy/lending/v1/loans', { 'x-bff-delegation-id': id }),
          await post('/delegate/poll', { delegation_id: id }),
          await get(`/delegate/status?delegation_id=${id}`),
          await post('/delegate/send-link', { delegation_id: id }),
          await get('/delegate/status?delegation_id=*'),
        ];
        expect(await Promise.all(answers.map(codeOf))).toEqual(Array(5).fill('delegation_not_found'));
        expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(404));
        expect(world.sent).toEqual([]);
      });

      test("is for who may in the customer's environment, at this moment", async () => {
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['delegate:read']);
        world.beside.scopesIn.set(`${PERSON} ${SYSTEM.envId}`, ['delegate:write']);
        expect(await start()).toMatchObject({ status: 403, code: 'target_denied' });
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['delegate:write']);
        const { delegation_id: id } = await start();
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, ['delegate:read']);
        expect((await post('/delegate/poll', { delegation_id: id })).status).toBe(403);
        expect((await get(`/delegate/status?delegation_id=${id}`)).status).toBe(200);
        world.beside.scopesIn.set(`${PERSON} ${ENV}`, []);
        expect((await get(`/delegate/status?delegation_id=${id}`)).status).toBe(403);
      });

      test.each([
        ['a customer nobody knows', { status: 400, error: 'unknown_user_id' }, 404, 'customer_not_found'],
        ['an environment where nobody is acted for', { status: 400, error: 'unauthorized_client' }, 403, 'delegation_refused'],
        ['a message that does not fit', { status: 400, error: 'invalid_binding_message' }, 400, 'malformed'],
        ['an identity service that fails', { status: 503 }, 502, 'identity_unavailable'],
      ] as const)('GWY-081 is not begun with %s', async (_, refusal, status, code) => {
        world.identity.refusals.set('/mtls/oauth/bc-authorize', refusal);
        expect(await start()).toMatchObject({ status, code });
      });

      test('GWY-040 a link is acknowledged and noted, and nothing is sent', async () => {
        const { delegation_id: id } = await start();
        const answer = await post('/delegate/send-link', { delegation_id: id, channel: 'sms' });
        expect([answer.status, await answer.json()]).toEqual([202, { acknowledged: true }]);
        expect(world.host.logged).toContainEqual(expect.objectContaining({ delegation_id: id, channel: 'sms' }));
        expect(world.sent).toEqual([]);
        expect((await world.ask('POST', '/delegate/send-link', { body: '{}', headers: { cookie: browser.cookie } })).status).toBe(403);
      });
    });
  });
}
