import * as openid from 'openid-client';
import { SYSTEM } from '@platform/sdk';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { appStore, application, authorize } from '../fixtures/applications.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.eager.localhost';
let world: World;
let envId: string;
let config: openid.Configuration;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  envId = await world.environment(HOST);
  await world.person('ada@example.org', { envId });
  config = await application(world, { first_party: true, grant_types: ['authorization_code', 'refresh_token'] }, HOST);
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const keyOf = (env: string, clientId: string) => `auth:rate:token:${env}:${clientId}`;
const counted = async () => Number(await world.kv('GET', keyOf(envId, config.clientMetadata().client_id)));
async function tokens() {
  const browser = world.browser(HOST);
  const { oauth, redeem } = await authorize(config, browser);
  const answer = await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: oauth() });
  return redeem((await browser.get(String(answer.json['next']))).location);
}

test('each client has 600 tokens a minute, whoever fetches them for it', async () => {
  await world.kv('SET', keyOf(SYSTEM.envId, 'bff'), '600', 'EX', '60');
  const form = { grant_type: 'client_credentials', client_id: 'bff' };
  const often = await world.mtls('/mtls/oauth/token', form);
  expect([often.status, often.json['error'], often.headers['retry-after']]).toEqual([429, 'temporarily_unavailable', '10']);
  // The gateway fetches the console's tokens too, over the same connection.
  const other = await world.mtls('/mtls/oauth/token', {
    grant_type: 'authorization_code',
    client_id: 'console',
    code: 'unknown',
    code_verifier: 'v'.repeat(43),
    redirect_uri: 'https://nowhere.example',
  });
  expect([other.status, other.json['error']]).toEqual([400, 'invalid_grant']);
});

test('an application has them too, and they are its own: a stranger who only names it uses none up', async () => {
  const given = await tokens();
  expect(await counted()).toBe(1);
  const stranger = (headers: Record<string, string>) =>
    world.reach('/oauth/token', {
      method: 'POST',
      host: HOST,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'x',
        client_id: config.clientMetadata().client_id,
        client_secret: 'a guess',
      }).toString(),
    });
  expect((await stranger({})).json['error']).toBe('invalid_client');
  expect(await counted()).toBe(1);
  await world.kv('SET', keyOf(envId, config.clientMetadata().client_id), '600', 'EX', '60');
  await expect(openid.refreshTokenGrant(config, given.refresh_token as string)).rejects.toMatchObject({
    status: 429,
    error: 'temporarily_unavailable',
  });
  // Its minute ends.
  await world.kv('DEL', keyOf(envId, config.clientMetadata().client_id));
  expect((await openid.refreshTokenGrant(config, given.refresh_token as string)).access_token).toMatch(/^ey/);
});
