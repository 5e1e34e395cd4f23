import { createPublicKey, verify } from 'node:crypto';
import type * as openid from 'openid-client';
import { refreshTokenGrant, tokenIntrospection } from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AccountKeeper } from '../fixtures/account-keeper.ts';
import { appStore, application, authorize, REDIRECT } from '../fixtures/applications.ts';
import type { Browser } from '../fixtures/browser.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

let world: World;
let keeper: AccountKeeper;
const HOST = 'auth.prod.bank.localhost';
const ADA = 'ada@example.org';
let ada: string;
let tenant: string;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  keeper = await AccountKeeper.open();
  tenant = await world.environment(HOST);
  ada = await world.person(ADA, { envId: tenant });
  await world.registry.putRole({ params: { role: 'reader' }, body: { scopes: ['sys:read', 'auth:users:read'] }, targetEnvId: tenant });
  await world.registry.putUserRole({ params: { user_id: ada, role: 'reader' }, targetEnvId: tenant });
});
afterAll(async () => {
  await keeper[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
beforeEach(() => world.forgetTries());

const signIn = async (browser: Browser, oauth: object) => {
  const answer = await browser.post('/v1/sign-in', { email: ADA, password: CHOSEN, oauth });
  return browser.get(String(answer.json['next']));
};
const contextOf = (location: string) => Object.fromEntries(new URL(location, `https://${HOST}:8443`).searchParams);
/** From the request to the consent page. */
const toConsent = async (config: openid.Configuration, browser: Browser, more: Record<string, string> = {}) => {
  const begun = await authorize(config, browser, more);
  const page = begun.page.location.startsWith('/sign-in') ? await signIn(browser, begun.oauth()) : begun.page;
  return { ...begun, location: page.location, context: contextOf(page.location) };
};
const decide = (browser: Browser, context: Record<string, string>, body: object) =>
  browser.post('/oauth/authorize/continue', { ...withoutFlow(context), ...body });
const withoutFlow = ({ consent_flow: _flow, ...context }: Record<string, string>) => context;

describe('consent', () => {
  test('IDN-005 IDN-009 an application of somebody else is let in by the person, for what she allows and no more', async () => {
    const config = await application(world, { grant_types: ['authorization_code', 'refresh_token'] }, HOST);
    const browser = world.browser(HOST);
    const { context, location, redeem } = await toConsent(config, browser, { scope: 'openid email sys:read' });
    expect(location).toMatch(/^\/consent\?/);
    expect(context).not.toHaveProperty('consent_flow');
    const asking = await browser.get(
      `/v1/consent?${new URLSearchParams({ client_id: context['client_id'] as string, scope: context['scope'] as string })}`,
    );
    expect(asking.json).toEqual({
      client: { name: 'Ledger', logo_url: null },
      scopes: [
        { scope: 'openid', title: 'Know that it is you' },
        { scope: 'email', title: 'See your e-mail address' },
        { scope: 'sys:read', title: expect.stringMatching(/\w/) },
      ],
    });
    const answer = await decide(browser, context, { decision: 'approve' });
    const tokens = await redeem((await browser.get(String(answer.json['redirect_to']))).location);
    const claims = claimsOf(tokens.access_token);
    // She holds auth:users:read too; the application did not ask for it, and its token says that it is held to its scope.
    expect(claims).toMatchObject({ sub: ada, scope: 'openid email sys:read', limited: true, aud: ['sys'], token_type: 'access' });
    const fresh = await refreshTokenGrant(config, tokens.refresh_token as string);
    expect(claimsOf(fresh.access_token)).toMatchObject({ scope: 'openid email sys:read', limited: true });
  });

  test('a consent is remembered for the same scopes; more scopes, or prompt=consent, ask again', async () => {
    const config = await application(world, {}, HOST);
    const browser = world.browser(HOST);
    const first = await toConsent(config, browser);
    await browser.get(String((await decide(browser, first.context, { decision: 'approve' })).json['redirect_to']));
    expect((await authorize(config, browser)).page.location).toContain(REDIRECT);
    expect((await authorize(config, world.browser(HOST))).page.location).toMatch(/^\/sign-in/);
    expect((await authorize(config, browser, { prompt: 'consent' })).page.location).toMatch(/^\/consent/);
    const wider = await authorize(config, browser, { scope: 'openid email profile' });
    expect(wider.page.location).toMatch(/^\/consent/);
    await browser.get(String((await decide(browser, contextOf(wider.page.location), { decision: 'approve' })).json['redirect_to']));
    expect((await authorize(config, browser, { scope: 'openid email profile' })).page.location).toContain(REDIRECT);
  });

  test('IDN-005 what was allowed is listed at the account and taken back there: nothing of it can be renewed, and the next time asks', async () => {
    const config = await application(world, { grant_types: ['authorization_code', 'refresh_token'] }, HOST);
    const browser = world.browser(HOST);
    const { context, redeem } = await toConsent(config, browser);
    const client = context['client_id'] as string;
    const tokens = await redeem(
      (await browser.get(String((await decide(browser, context, { decision: 'approve' })).json['redirect_to']))).location,
    );
    const other = await application(world, { client_name: 'Abacus' }, HOST);
    const kept = await toConsent(other, browser);
    await decide(browser, kept.context, { decision: 'approve' });
    const list = async () =>
      ((await browser.get('/v1/account/consents')).json['items'] as { client_id: string }[]).filter(({ client_id }) =>
        [client, kept.context['client_id']].includes(client_id),
      );
    expect((await list()).map(({ client_id }) => client_id)).toEqual([kept.context['client_id'], client]);
    expect((await list())[1]).toMatchObject({
      client: { name: 'Ledger' },
      scopes: [{ scope: 'openid', title: 'Know that it is you' }, { scope: 'email' }],
      granted_at: expect.stringMatching(/^\d{4}-/),
    });
    // Neither a stranger nor somebody else's page takes it back.
    expect((await world.browser(HOST).post(`/v1/account/consents/${client}/withdraw`, {})).json['code']).toBe('session_required');
    const own = browser.origin;
    browser.origin = 'https://evil.example';
    expect((await browser.post(`/v1/account/consents/${client}/withdraw`, {})).json['code']).toBe('bad_origin');
    browser.origin = own;
    expect(await list()).toHaveLength(2);
    const userinfo = async (token: string) => (await world.reach('/oauth/userinfo', { host: HOST, token })).status;
    const active = async (token: string) => (await tokenIntrospection(config, token)).active;
    expect([await userinfo(tokens.access_token), await active(tokens.access_token)]).toEqual([200, true]);
    expect((await browser.post(`/v1/account/consents/${client}/withdraw`, {})).status).toBe(204);
    // The token that is out there is good for nothing from now on, here and wherever the mark is looked at.
    expect([await userinfo(tokens.access_token), await active(tokens.access_token)]).toEqual([401, false]);
    expect(await world.kv('GET', `revoked:gid:${String(claimsOf(tokens.access_token)['gid'])}`)).toBe('1');
    expect((await list()).map(({ client_id }) => client_id)).toEqual([kept.context['client_id']]);
    await expect(refreshTokenGrant(config, tokens.refresh_token as string)).rejects.toMatchObject({ error: 'invalid_grant' });
    const anew = await toConsent(config, browser);
    expect(anew.location).toMatch(/^\/consent/);
    const next = await anew.redeem(
      (await browser.get(String((await decide(browser, anew.context, { decision: 'approve' })).json['redirect_to']))).location,
    );
    expect([await userinfo(next.access_token), await userinfo(tokens.access_token)]).toEqual([200, 401]);
    expect((await browser.post(`/v1/account/consents/${client}/withdraw`, {})).status).toBe(204);
    expect((await authorize(other, browser)).page.location).toContain(REDIRECT);
    expect(await world.audited('auth.consent.withdrawn', client)).toMatchObject({ details: { user_id: ada } });
    expect((await browser.post(`/v1/account/consents/${client}/withdraw`, {})).json['code']).toBe('consent_not_found');
    // Somebody else's is as unknown as none.
    await world.person('mallory@example.org', { envId: tenant });
    const eve = world.browser(HOST);
    await eve.post('/v1/sign-in', { email: 'mallory@example.org', password: CHOSEN, oauth: {} });
    expect((await eve.get('/v1/account/consents')).json['items']).toEqual([]);
    expect((await eve.post(`/v1/account/consents/${kept.context['client_id']}/withdraw`, {})).json['code']).toBe('consent_not_found');
    expect(await list()).toHaveLength(1);
  });

  test('who declines sends the application away, and is asked the next time', async () => {
    const config = await application(world, {}, HOST);
    const browser = world.browser(HOST);
    const { context, state } = await toConsent(config, browser);
    const back = await browser.get(String((await decide(browser, context, { decision: 'deny' })).json['redirect_to']));
    expect(Object.fromEntries(new URL(back.location).searchParams)).toMatchObject({ error: 'access_denied', state });
    expect((await authorize(config, browser)).page.location).toMatch(/^\/consent/);
  });

  test('an application gets no scope that it did not register', async () => {
    const config = await application(world, { scope: 'openid email' }, HOST);
    const browser = world.browser(HOST);
    const { context, redeem } = await toConsent(config, browser, { scope: 'openid email sys:read' });
    const landed = await browser.get(String((await decide(browser, context, { decision: 'approve' })).json['redirect_to']));
    const claims = claimsOf((await redeem(landed.location)).access_token);
    expect(claims).toMatchObject({ scope: 'openid email', aud: [context['client_id']] });
  });

  test('nobody is asked about an application nobody registered', async () => {
    const answer = await world.browser(HOST).get('/v1/consent?client_id=nobody&scope=openid');
    expect([answer.status, answer.json['code']]).toEqual([404, 'client_not_found']);
  });
});

describe('accounts', () => {
  const bank = () => application(world, { consent_accounts_uri: keeper.uri, grant_types: ['authorization_code', 'refresh_token'] }, HOST);
  const account = (id: string) => ({ id, name: `Account ${id}`, mask: `••${id}`, type: 'checking' });

  test('IDN-005 SGN-029 are listed for the flow of the page, all selected, and those chosen are in every token of the grant', async () => {
    keeper.lists(account('1'), account('2'), account('3'));
    const config = await bank();
    const browser = world.browser(HOST);
    const { context, redeem } = await toConsent(config, browser, { consent_flow: 'fdx' });
    expect(context['consent_flow']).toMatch(/^fdx\.[\w-]+$/);
    const flow = context['consent_flow'] as string;
    const listed = await browser.get(`/v1/consent/accounts?consent_flow=${flow}`);
    expect(listed.json).toEqual({ accounts: ['1', '2', '3'].map(id => ({ ...account(id), selected: true })) });
    // The bank is asked for this person by an assertion it can check with the realm's published keys.
    const { url, assertion } = keeper.asked.at(-1) as { url: string; assertion: string };
    expect(url).toBe('/accounts?consent_flow=fdx');
    expect(claimsOf(assertion)).toMatchObject({
      iss: `https://${HOST}:8443`,
      sub: ada,
      aud: new URL(keeper.uri).origin,
      client_id: context['client_id'],
    });
    const [head = '', body = '', signature = ''] = assertion.split('.');
    const { kid, alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string; alg: string };
    const { json } = await world.reach('/.well-known/jwks.json', { host: HOST });
    const key = (json['keys'] as (JsonWebKey & { kid: string })[]).find(each => each.kid === kid) as JsonWebKey;
    expect(alg).toBe('ES256');
    expect(
      verify(
        'sha256',
        Buffer.from(`${head}.${body}`),
        { key: createPublicKey({ key, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
        Buffer.from(signature, 'base64url'),
      ),
    ).toBe(true);
    // Only what was shown can be chosen.
    const foreign = await decide(browser, context, { decision: 'approve', consent_flow: flow, selected_account_ids: ['1', '99'] });
    expect([foreign.status, foreign.json['code']]).toEqual([400, 'account_not_offered']);
    const answer = await decide(browser, context, { decision: 'approve', consent_flow: flow, selected_account_ids: ['1', '3'] });
    const tokens = await redeem((await browser.get(String(answer.json['redirect_to']))).location);
    expect(claimsOf(tokens.access_token)['selected_account_ids']).toEqual(['1', '3']);
    const fresh = await refreshTokenGrant(config, tokens.refresh_token as string);
    expect(claimsOf(fresh.access_token)['selected_account_ids']).toEqual(['1', '3']);
    // The same flow goes on without a page and keeps the choice; another flow asks.
    const again = await authorize(config, browser, { consent_flow: 'fdx' });
    expect(claimsOf((await again.redeem(again.page.location)).access_token)['selected_account_ids']).toEqual(['1', '3']);
    expect((await authorize(config, browser, { consent_flow: 'other' })).page.location).toMatch(/^\/consent/);
  });

  test('none may be chosen, and then none are in the token', async () => {
    keeper.lists(account('1'));
    const config = await bank();
    const browser = world.browser(HOST);
    const { context, redeem } = await toConsent(config, browser);
    const flow = context['consent_flow'] as string;
    await browser.get(`/v1/consent/accounts?consent_flow=${flow}`);
    const answer = await decide(browser, context, { decision: 'approve', consent_flow: flow, selected_account_ids: [] });
    const tokens = await redeem((await browser.get(String(answer.json['redirect_to']))).location);
    expect(claimsOf(tokens.access_token)['selected_account_ids']).toEqual([]);
  });

  test('are for the person of this authorization alone, and not without a session', async () => {
    keeper.lists(account('1'));
    const { context } = await toConsent(await bank(), world.browser(HOST));
    const nobody = await world.browser(HOST).get(`/v1/consent/accounts?consent_flow=${String(context['consent_flow'])}`);
    expect([nobody.status, nobody.json['code']]).toEqual([401, 'session_required']);
    await world.person('eve@example.org', { envId: tenant });
    const eve = world.browser(HOST);
    await eve.post('/v1/sign-in', { email: 'eve@example.org', password: CHOSEN, oauth: {} });
    const other = await eve.get(`/v1/consent/accounts?consent_flow=${String(context['consent_flow'])}`);
    expect([other.status, other.json['code']]).toEqual([404, 'interaction_not_found']);
  });

  test('an application that names no source shares none, and the page says so', async () => {
    const config = await application(world, {}, HOST);
    const browser = world.browser(HOST);
    const { context } = await toConsent(config, browser, { consent_flow: 'fdx' });
    const listed = await browser.get(`/v1/consent/accounts?consent_flow=${String(context['consent_flow'])}`);
    expect(listed.json).toEqual({ accounts: [], message: expect.stringContaining('none are shared') });
  });

  test.each([
    ['an error', { status: 500, body: '{}' }],
    ['no JSON', { status: 200, body: '<html>' }],
    ['no accounts', { status: 200, body: '{"accounts":[{"id":7}]}' }],
    ['too much', { status: 200, body: JSON.stringify({ accounts: [], more: 'x'.repeat(300_000) }) }],
    ['one account twice', { status: 200, body: JSON.stringify({ accounts: [account('1'), account('1')] }) }],
  ])('a source that answers %s is a clear 502', async (_what, answer) => {
    keeper.answer = answer;
    const browser = world.browser(HOST);
    const { context } = await toConsent(await bank(), browser);
    const listed = await browser.get(`/v1/consent/accounts?consent_flow=${String(context['consent_flow'])}`);
    expect([listed.status, listed.json['code']]).toEqual([502, 'accounts_unavailable']);
  });
});
