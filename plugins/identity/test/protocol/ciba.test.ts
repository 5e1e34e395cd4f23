import * as openid from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appStore, application, authorize, fetchOf } from '../fixtures/applications.ts';
import type { Browser } from '../fixtures/browser.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.shop.localhost';
let world: World;
let customer: string;
let staff: string;
let staffToken: string;
let delegator: openid.Configuration;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  const tenant = await world.environment(HOST);
  customer = await world.person('customer@example.org', { envId: tenant });
  await world.person('other@example.org', { envId: tenant });
  await world.registry.putRole({ params: { role: 'buyer' }, body: { scopes: ['sys:read', 'auth:users:read'] }, targetEnvId: tenant });
  await world.registry.putUserRole({ params: { user_id: customer, role: 'buyer' }, targetEnvId: tenant });
  staff = await world.person('grace@example.org');
  staffToken = (await world.tokens(world.browser(), 'grace@example.org')).access_token;
  delegator = await openid.discovery(
    new URL(`https://${HOST}:8443`),
    'bff-delegator',
    { use_mtls_endpoint_aliases: true },
    openid.TlsClientAuth(),
    {
      [openid.customFetch]: fetchOf(world, 'bff-delegator'),
    },
  );
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const begin = (more: Record<string, string> = {}) =>
  openid.initiateBackchannelAuthentication(delegator, {
    scope: 'openid sys:read',
    login_hint: 'customer@example.org',
    actor_token: staffToken,
    binding_message: 'Order 4711',
    ...more,
  });
const signedIn = async (email = 'customer@example.org'): Promise<Browser> => {
  const browser = world.browser(HOST);
  await browser.post('/v1/sign-in', { email, password: CHOSEN, oauth: {} });
  return browser;
};
const poll = async (id: string, headers: Record<string, string> = {}) =>
  world.mtls(
    '/mtls/oauth/token',
    { grant_type: 'urn:openid:params:grant-type:ciba', client_id: 'bff-delegator', auth_req_id: id },
    'bff-delegator',
    { host: HOST, headers },
  );
const proof = async () => openid.getDPoPHandle(delegator, await openid.randomDPoPKeyPair('ES256', { extractable: true }));

describe('assisted sign-in', () => {
  test('IDN-005 IDN-019 the customer who was named allows it, and the staff gets a token of the customer, in its own name, bound to a key', async () => {
    const started = await begin();
    expect(started).toMatchObject({ auth_req_id: expect.any(String), expires_in: 300, interval: 5 });
    const browser = await signedIn();
    const shown = await browser.get(`/v1/ciba/${started.auth_req_id}`);
    expect(shown.json).toEqual({
      client: { name: 'Customer support' },
      actor_display: 'grace',
      binding_message: 'Order 4711',
      expires_at: expect.stringMatching(/Z$/),
    });
    const decided = await browser.post(`/v1/ciba/${started.auth_req_id}/decision`, { decision: 'approve' });
    expect([decided.status, decided.json]).toEqual([200, { status: 'approved' }]);
    const tokens = await openid.pollBackchannelAuthenticationGrant(delegator, { ...started, interval: 0 }, undefined, {
      DPoP: await proof(),
    });
    expect(tokens.token_type).toBe('dpop');
    const claims = claimsOf(tokens.access_token);
    expect(claims).toMatchObject({
      token_type: 'delegated',
      sub: customer,
      act: { sub: staff, client_id: 'bff-delegator' },
      scope: 'openid sys:read',
      aud: ['sys'],
      cnf: { jkt: expect.stringMatching(/^[\w-]{43}$/) },
    });
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(600);
    expect(claims).not.toHaveProperty('sid');
    const kept = await world.sql<{ payload: object }[]>`select payload from oidc_state where model = 'BackchannelAuthenticationRequest'`;
    expect(JSON.stringify(kept)).not.toContain(staffToken.slice(0, 40));
  });

  test('the customer is told by mail, in the own language, which application asks and where to decide; nothing more, and not without end', async () => {
    await world.sql`update users set locale = 'de' where user_id = ${customer}`;
    await world.sql`delete from work_tasks where name = 'mail'`;
    const { auth_req_id: id } = await begin();
    const [mail, ...more] = await world.mails('customer@example.org');
    expect([mail?.subject, more]).toEqual(['Jemand möchte für Sie handeln', []]);
    expect(mail?.body).toContain(`\nhttps://${HOST}:8443/ciba?auth_req_id=${id}\n`);
    expect(mail?.body).toContain('Customer support');
    // Who acts and what to compare is shown to the customer who signed in.
    for (const secret of ['grace', 'Order 4711', staff, customer, staffToken.slice(0, 40)])
      expect([secret, mail?.body.includes(secret)]).toEqual([secret, false]);
    expect(
      (await world.sql<{ row: string }[]>`select work_tasks::text as row from work_tasks`).filter(({ row }) => row.includes(id)),
    ).toEqual([]);
    const browser = await signedIn();
    const path = /https:\S+/.exec(mail?.body ?? '')?.[0] as string;
    expect((await browser.get(path)).text).toContain('data-step="ciba"');
    for (let run = 0; run < 6; run++) await begin();
    expect(await world.mails('customer@example.org')).toHaveLength(5);
    expect(await world.mails('other@example.org')).toEqual([]);
  });

  test('a mail that cannot be written does not hold up the request', async () => {
    await world.sql`alter table work_tasks rename to work_tasks_away`;
    try {
      expect(await begin()).toMatchObject({ auth_req_id: expect.any(String) });
    } finally {
      await world.sql`alter table work_tasks_away rename to work_tasks`;
    }
  });

  test('IDN-019 without a proof of possession there is no token, and the request is not used up', async () => {
    const { auth_req_id: id, ...rest } = await begin();
    const browser = await signedIn();
    await browser.post(`/v1/ciba/${id}/decision`, { decision: 'approve' });
    const bare = await poll(id);
    expect([bare.status, bare.json['error']]).toEqual([400, 'invalid_grant']);
    const tokens = await openid.pollBackchannelAuthenticationGrant(delegator, { ...rest, auth_req_id: id, interval: 0 }, undefined, {
      DPoP: await proof(),
    });
    expect(claimsOf(tokens.access_token)['sub']).toBe(customer);
  });

  test('nobody but the customer who was named sees or decides', async () => {
    const { auth_req_id: id } = await begin({ login_hint: customer });
    const nobody = await world.browser(HOST).get(`/v1/ciba/${id}`);
    expect([nobody.status, nobody.json['code']]).toEqual([401, 'session_required']);
    const other = await signedIn('other@example.org');
    expect((await other.get(`/v1/ciba/${id}`)).json['code']).toBe('approval_not_found');
    expect((await other.post(`/v1/ciba/${id}/decision`, { decision: 'approve' })).json['code']).toBe('approval_not_found');
    const browser = await signedIn();
    browser.origin = 'https://evil.example';
    expect((await browser.post(`/v1/ciba/${id}/decision`, { decision: 'approve' })).status).toBe(403);
    browser.origin = `https://${HOST}:8443`;
    expect((await browser.post(`/v1/ciba/${id}/decision`, { decision: 'deny' })).json).toEqual({ status: 'denied' });
    await world.audited('auth.ciba.denied');
    expect((await browser.post(`/v1/ciba/${id}/decision`, { decision: 'approve' })).json['code']).toBe('approval_not_found');
    await expect(
      openid.pollBackchannelAuthenticationGrant(delegator, { auth_req_id: id, expires_in: 300, interval: 0 }, undefined, {
        DPoP: await proof(),
      }),
    ).rejects.toMatchObject({
      error: 'access_denied',
    });
  });

  test('a poll waits, slows down, and is told that time is up', async () => {
    const { auth_req_id: id } = await begin();
    const headers = async () => {
      const handle = await proof();
      return { handle };
    };
    const grant = async () =>
      openid.genericGrantRequest(delegator, 'urn:openid:params:grant-type:ciba', { auth_req_id: id }, { DPoP: (await headers()).handle });
    await expect(grant()).rejects.toMatchObject({ error: 'authorization_pending' });
    await expect(grant()).rejects.toMatchObject({ error: 'slow_down' });
    await world.host.clock.advance('11s');
    await expect(grant()).rejects.toMatchObject({ error: 'authorization_pending' });
    await world.sql`update oidc_state set expires_at = now() - interval '1 second',
      payload = payload || jsonb_build_object('exp', extract(epoch from now())::int - 1) where model = 'BackchannelAuthenticationRequest'`;
    await expect(grant()).rejects.toMatchObject({ error: 'expired_token' });
    expect((await (await signedIn()).get(`/v1/ciba/${id}`)).json['code']).toBe('approval_not_found');
  });

  test.each([
    ['no staff', { actor_token: '' }, 'invalid_request'],
    ['a token that is nobody’s', { actor_token: 'x.y.z' }, 'invalid_request'],
    ['a customer nobody knows', { login_hint: 'nobody@example.org' }, 'unknown_user_id'],
    ['a person of another realm', { login_hint: 'grace@example.org' }, 'unknown_user_id'],
    ['a message of two lines', { binding_message: 'one\ntwo' }, 'invalid_binding_message'],
    ['a long message', { binding_message: 'x'.repeat(129) }, 'invalid_binding_message'],
    ['a hint of another kind', { login_hint_token: 'x', login_hint: '' }, 'invalid_request'],
  ])('is not begun with %s', async (_what, change, error) => {
    await expect(begin(change)).rejects.toMatchObject({ error });
  });

  test('what somebody else’s application holds of a person opens no assisted sign-in, and no exchange', async () => {
    const config = await application(world);
    const browser = world.browser();
    const begun = await authorize(config, browser);
    const signed = await browser.post('/v1/sign-in', { email: 'grace@example.org', password: CHOSEN, oauth: begun.oauth() });
    const page = await browser.get(String(signed.json['next']));
    const { consent_flow: _none, ...context } = Object.fromEntries(new URL(page.location, world.issuer).searchParams);
    const allowed = await browser.post('/oauth/authorize/continue', { ...context, decision: 'approve' });
    const { access_token: limited } = await begun.redeem((await browser.get(String(allowed.json['redirect_to']))).location);
    await expect(begin({ actor_token: limited })).rejects.toMatchObject({ error: 'invalid_request' });
    expect((await world.exchange(limited)).json['error']).toBe('invalid_grant');
  });

  test('is for the gateway’s delegator and for clients that registered for it', async () => {
    const refused = await world.mtls('/mtls/oauth/bc-authorize', { client_id: 'bff', scope: 'openid', login_hint: customer }, 'bff', {
      host: HOST,
    });
    expect([refused.status, refused.json['error']]).toEqual([401, 'invalid_client']);
    const other = await application(world, {}, HOST);
    await expect(openid.initiateBackchannelAuthentication(other, { scope: 'openid', login_hint: customer })).rejects.toMatchObject({
      error: 'invalid_request',
    });
    // Another's application asks in its own name: nobody acts.
    const shop = await application(
      world,
      { client_name: 'Shop', grant_types: ['urn:openid:params:grant-type:ciba'], redirect_uris: [] },
      HOST,
    );
    const started = await openid.initiateBackchannelAuthentication(shop, { scope: 'openid', login_hint: customer });
    const browser = await signedIn();
    expect((await browser.get(`/v1/ciba/${started.auth_req_id}`)).json).toMatchObject({ client: { name: 'Shop' }, actor_display: 'Shop' });
    await browser.post(`/v1/ciba/${started.auth_req_id}/decision`, { decision: 'approve' });
    const tokens = await openid.pollBackchannelAuthenticationGrant(shop, { ...started, interval: 0 }, undefined, {
      DPoP: await openid.getDPoPHandle(shop, await openid.randomDPoPKeyPair('ES256')),
    });
    expect(claimsOf(tokens.access_token)).toMatchObject({ token_type: 'access', sub: customer, limited: true });
    expect(claimsOf(tokens.access_token)).not.toHaveProperty('act');
  });
});
