import { pageDefinition } from '@platform/kernel/http/pages/page-definition';
import { as, type Persona } from '@platform/testing';
import { calculateJwkThumbprint, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose';
import * as openid from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { authorize, fetchOf, REDIRECT } from '../fixtures/applications.ts';
import { CHOSEN, claimsOf, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.apps.localhost';
const ADA = 'ada@example.org';
let world: World;
let tenant: string;
let ada: string;
let admin: Persona;
let lending: Persona;
beforeAll(async () => {
  world = await World.start();
  tenant = await world.environment(HOST);
  ada = await world.person(ADA, { envId: tenant });
  admin = as.userIn(tenant, 'auth:clients:write');
  lending = { ...as.machine('lending', 'auth:clients:write'), vertical: 'acme' };
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

type Made = Readonly<Record<string, unknown>> & { readonly client_id: string; readonly client_secret?: string };
const by = (persona = admin) => world.host.by(persona);
const create = async (said: object = {}, persona = admin, targetEnvId?: string) =>
  (await by(persona).createClient({
    body: { client_name: 'Ledger', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], ...said },
    ...(targetEnvId ? { targetEnvId } : {}),
  })) as Made;
const configured = ({ client_id, client_secret, ...made }: Made) =>
  openid.discovery(
    new URL(`https://${HOST}:8443`),
    client_id,
    { id_token_signed_response_alg: String(made['id_token_signed_response_alg']) },
    client_secret ? openid.ClientSecretBasic(client_secret) : openid.None(),
    { [openid.customFetch]: fetchOf(world) },
  );
const signIn = async (made: Made, more: Record<string, string> = {}) => {
  const config = await configured(made);
  const browser = world.browser(HOST);
  const { oauth, redeem } = await authorize(config, browser, more);
  const answer = await browser.post('/v1/sign-in', { email: ADA, password: CHOSEN, oauth: oauth() });
  return redeem((await browser.get(String(answer.json['next']))).location);
};
const tokenEndpoint = (made: Made, secret: string) =>
  world.reach('/oauth/token', {
    method: 'POST',
    host: HOST,
    body: 'grant_type=refresh_token&refresh_token=x',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${made.client_id}:${secret}`).toString('base64')}`,
    },
  });

describe('an administrator of an environment', () => {
  test('F-33 holds the scope there by the built-in role, and a viewer does not', async () => {
    await world.registry.provisionAccess({ body: { template: 'env', org_id: world.org, env_id: tenant, owner: ada } });
    const viewer = await world.person('viewer@example.org', { envId: tenant });
    const other = await world.person('admin@example.org', { envId: tenant });
    const join = (userId: string, level: string) =>
      world.registry.putGroupMember({ params: { group: `platform:env:${tenant}:${level}`, user_id: userId }, targetEnvId: tenant });
    await join(viewer, 'viewers');
    await join(other, 'admins');
    const holds = async (user_id: string) =>
      (await world.registry.userScopes({ params: { user_id }, query: { env_id: tenant } })).scopes.includes('auth:clients:write');
    expect([await holds(ada), await holds(other), await holds(viewer)]).toEqual([true, true, false]);
  });

  test('F-33 registers an application: the secret is told once, and the application signs people in with it', async () => {
    const made = await create({ first_party: true, logo_uri: 'https://app.example.org/logo.png' });
    expect(made).toMatchObject({
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      has_secret: true,
      registered_by: admin.id,
      logo_uri: 'https://app.example.org/logo.png',
    });
    const tokens = await signIn(made);
    expect(claimsOf(tokens.access_token)).toMatchObject({ sub: ada, client_id: made.client_id });
    for (const shown of [await by().getClient({ params: { client_id: made.client_id } }), ...(await by().listClients()).items])
      expect(shown).not.toHaveProperty('client_secret');
    await world.audited('auth.client.created', made.client_id);
  });

  test('F-33 types redirect addresses one a line, and is told which one is no address', async () => {
    const lines = 'https://a.example.org/x?y=1,2\n https://b.example.org/\r\nhttps://a.example.org/x?y=1,2';
    expect(await create({ redirect_uris: lines })).toMatchObject({
      redirect_uris: ['https://a.example.org/x?y=1,2', 'https://b.example.org/'],
    });
    await expect(create({ redirect_uris: 'http://evil.example.org/' })).rejects.toMatchObject({
      code: 'client_metadata_invalid',
      status: 400,
    });
    await expect(create({ redirect_uris: '' })).rejects.toMatchObject({ code: 'client_metadata_invalid' });
  });

  test('F-33 changes the secret: the one before is worth nothing at the next request', async () => {
    const made = await create();
    const { client_secret: next } = await by().rotateClientSecret({ params: { client_id: made.client_id } });
    expect([
      (await tokenEndpoint(made, made.client_secret as string)).json['error'],
      (await tokenEndpoint(made, next)).json['error'],
    ]).toEqual(['invalid_client', 'invalid_grant']);
    const open = await create({ token_endpoint_auth_method: 'none' });
    expect(open).not.toHaveProperty('client_secret');
    await expect(by().rotateClientSecret({ params: { client_id: open.client_id } })).rejects.toMatchObject({
      code: 'client_without_secret',
    });
    await world.audited('auth.client.secret_rotated', made.client_id);
  });

  test('F-33 changes what an application is; what is not said stays', async () => {
    const made = await create({ logo_uri: 'https://app.example.org/logo.png', scope: 'openid email' });
    const changed = (await by().updateClient({
      params: { client_id: made.client_id },
      body: { client_name: 'Books', redirect_uris: 'https://new.example.org/' },
    })) as Made;
    expect(changed).toMatchObject({
      client_name: 'Books',
      redirect_uris: ['https://new.example.org/'],
      logo_uri: 'https://app.example.org/logo.png',
      scope: 'openid email',
      has_secret: true,
    });
    expect(changed).not.toHaveProperty('client_secret');
    expect((await tokenEndpoint(made, made.client_secret as string)).json['error']).toBe('invalid_grant');
  });

  test('F-33 deletes an application, with what it was granted', async () => {
    const made = await create({ first_party: true });
    const tokens = await signIn(made);
    await by().removeClient({ params: { client_id: made.client_id } });
    await expect(by().getClient({ params: { client_id: made.client_id } })).rejects.toMatchObject({ code: 'client_not_found' });
    expect((await tokenEndpoint(made, made.client_secret as string)).json['error']).toBe('invalid_client');
    expect((await world.reach('/oauth/userinfo', { host: HOST, token: tokens.access_token })).status).toBe(401);
  });

  test('F-33 sees the applications of the own environment, page by page, and of no other', async () => {
    const elsewhere = as.userIn(await world.environment('auth.prod.others.localhost'), 'auth:clients:write');
    const theirs = await create({}, elsewhere);
    for (const call of [by().getClient, by().removeClient, by().rotateClientSecret])
      await expect(call({ params: { client_id: theirs.client_id } })).rejects.toMatchObject({ code: 'client_not_found' });
    const denied = await world.host.fetch(`/v1/clients?target_env_id=${elsewhere.envId}`, { persona: admin });
    expect([denied.status, denied.json['code']]).toEqual([403, 'target_denied']);
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await by().listClients({ query: { limit: 2, ...(cursor ? { cursor } : {}) } });
      ids.push(...page.items.map(({ client_id }) => client_id));
      cursor = page.next_cursor;
    }
    expect(ids).not.toContain(theirs.client_id);
    expect(ids).toEqual([...new Set(ids)].sort().reverse());
    await expect(by().listClients({ query: { cursor: 'x' } })).rejects.toMatchObject({ code: 'invalid_cursor' });
  });

  test('F-33 has a page for it that shows a new secret', () => {
    const { sections } = pageDefinition(world.host.manifest, 'clients') as { sections: object[] };
    const [above, table] = sections as [{ actions: object[] }, { row_actions: { id: string; then: string }[] }];
    expect(above.actions).toEqual([expect.objectContaining({ id: 'createClient', then: 'show' })]);
    expect(table.row_actions.find(({ id }) => id === 'rotateClientSecret')).toMatchObject({ then: 'show', confirm: expect.any(String) });
    const { form } = above.actions[0] as { form: { name: string; type: string; options?: object[] }[] };
    expect(form.map(({ name, type }) => [name, type])).toEqual([
      ['client_name', 'text'],
      ['redirect_uris', 'textarea'],
      ['grant_types', 'multiselect'],
      ['token_endpoint_auth_method', 'select'],
      ['application_type', 'select'],
      ['scope', 'textarea'],
      ['first_party', 'bool'],
      ['logo_uri', 'textarea'],
      ['id_token_signed_response_alg', 'select'],
    ]);
  });
});

describe('a vertical', () => {
  test('F-33 registers applications where it is at home and nowhere else, and none that nobody is asked about', async () => {
    const elsewhere = await world.environment('auth.prod.nolending.localhost');
    world.homes.set(tenant, [{ service: 'lending', enabled: true }]);
    world.homes.set(elsewhere, [{ service: 'lending', enabled: false }]);
    const made = await create({}, lending, tenant);
    expect(made).toMatchObject({ registered_by: 'lending', first_party: false });
    await expect(create({}, lending, elsewhere)).rejects.toMatchObject({ status: 403, code: 'vertical_elsewhere' });
    await expect(create({}, { ...lending, id: 'other' }, tenant)).rejects.toMatchObject({ code: 'vertical_elsewhere' });
    await expect(create({}, lending)).rejects.toMatchObject({ code: 'target_env_required' });
    await expect(create({ first_party: true }, lending, tenant)).rejects.toMatchObject({ code: 'client_metadata_invalid' });
    const registered = by(lending).registerClient({
      body: { client_name: 'x', redirect_uris: [REDIRECT], first_party: true },
      targetEnvId: tenant,
    });
    await expect(registered).rejects.toMatchObject({ code: 'client_metadata_invalid' });
    await expect(
      by(lending).registerClient({ body: { client_name: 'x', redirect_uris: [REDIRECT] }, targetEnvId: elsewhere }),
    ).rejects.toMatchObject({ code: 'vertical_elsewhere' });
  });

  test('F-33 may ask for the scope, and gets tokens that carry it', async () => {
    await world.registry.putWorkload({ params: { name: 'lending' }, body: { vertical: 'acme', scopes: ['platform:auth:clients:write'] } });
    expect(claimsOf(await world.machineToken('lending'))).toMatchObject({ vertical: 'acme', scope: 'auth:clients:write' });
  });
});

describe('what an application may ask for', () => {
  test.each(['platform:sys:read', 'sys:read'])('F-33 %s is the same scope at registration and at a pushed request', async scope => {
    await world.registry.putUserRole({ params: { user_id: ada, role: 'platform:env:owner' }, targetEnvId: tenant });
    const made = await create({ first_party: true, scope: `openid email ${scope}` });
    const config = await configured(made);
    const verifier = openid.randomPKCECodeVerifier();
    const fields = {
      redirect_uri: REDIRECT,
      scope: `openid ${scope}`,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    };
    const url = await openid.buildAuthorizationUrlWithPAR(config, fields);
    const browser = world.browser(HOST);
    const page = await browser.get(url.href);
    const answer = await browser.post('/v1/sign-in', {
      email: ADA,
      password: CHOSEN,
      oauth: Object.fromEntries(new URL(page.location, url).searchParams),
    });
    const landed = new URL((await browser.get(String(answer.json['next']))).location);
    const pushed = await openid.authorizationCodeGrant(config, landed, { pkceCodeVerifier: verifier });
    const asked = await signIn(made, { scope: `openid ${scope}` });
    for (const { scope: given } of [pushed, asked]) expect(String(given).split(' ')).toEqual(['openid', 'sys:read']);
  });

  test('F-33 is not to register other applications', async () => {
    await expect(create({ scope: 'openid auth:clients:write' })).rejects.toMatchObject({ code: 'client_metadata_invalid' });
  });
});

describe('signatures', () => {
  test('F-33 an ID token is signed by RS256 where the application chose it; its access token is one that services read', async () => {
    const made = await create({ first_party: true, id_token_signed_response_alg: 'RS256' });
    const tokens = await signIn(made);
    expect([decodeProtectedHeader(String(tokens.id_token)).alg, decodeProtectedHeader(tokens.access_token).alg]).toEqual([
      'RS256',
      'ES256',
    ]);
    expect((await world.reach('/oauth/userinfo', { host: HOST, token: tokens.access_token })).json['email']).toBe(ADA);
    const kept = await world.sql<
      { state: string; text: string }[]
    >`select state, public_jwk::text as text from signing_keys where alg = 'RS256' order by state`;
    expect(kept.map(({ state }) => state)).toEqual(['current', 'next']);
    for (const { text } of kept) expect(Object.keys(JSON.parse(text)).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
  });

  test.each(['Ed25519', 'EdDSA'])('F-33 a proof of possession may be signed by %s (RFC 9864)', async alg => {
    const made = await create({ first_party: true });
    const config = await configured(made);
    const { publicKey, privateKey } = await generateKeyPair(alg);
    const jwk = await exportJWK(publicKey);
    const browser = world.browser(HOST);
    const verifier = openid.randomPKCECodeVerifier();
    const code_challenge = await openid.calculatePKCECodeChallenge(verifier);
    const page = await browser.get(
      openid.buildAuthorizationUrl(config, { redirect_uri: REDIRECT, scope: 'openid', code_challenge, code_challenge_method: 'S256' }).href,
    );
    const answer = await browser.post('/v1/sign-in', {
      email: ADA,
      password: CHOSEN,
      oauth: Object.fromEntries(new URL(page.location, `https://${HOST}:8443`).searchParams),
    });
    const code = new URL((await browser.get(String(answer.json['next']))).location).searchParams.get('code') as string;
    const proof = new SignJWT({ htm: 'POST', htu: `https://${HOST}:8443/oauth/token`, jti: crypto.randomUUID() }).setIssuedAt();
    const redeemed = await world.reach('/oauth/token', {
      method: 'POST',
      host: HOST,
      body: new URLSearchParams({ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: REDIRECT }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${made.client_id}:${made.client_secret}`).toString('base64')}`,
        dpop: await proof.setProtectedHeader({ alg, typ: 'dpop+jwt', jwk }).sign(privateKey),
      },
    });
    expect([redeemed.status, redeemed.json['token_type']]).toEqual([200, 'DPoP']);
    expect(claimsOf(String(redeemed.json['access_token']))['cnf']).toEqual({ jkt: await calculateJwkThumbprint(jwk) });
  });
});
