import { AccessClosures } from '@platform/kernel/identity/tokens/access-closure';
import { KeySet } from '@platform/kernel/identity/tokens/key-set';
import { Verifier } from '@platform/kernel/identity/tokens/verifier';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appStore, application, authorize } from '../fixtures/applications.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore], environment: { PLATFORM_AUTH_INTERNAL_TOKEN_ALG: 'ML-DSA-65' } });
  await world.person('ada@example.org');
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());

const headerOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { alg: string; kid: string };
const published = async (at = world.host) =>
  (await world.reach('/.well-known/jwks.json', { at })).json as unknown as { keys: (JsonWebKey & { kid: string; alg: string })[] };
const administrator = () => world.host.by(as.user('auth:keys:admin'));
/** As if the next keys had been published for as long as it takes. */
const settle = () => world.sql`update signing_keys set created_at = created_at - interval '11 minutes' where state = 'next'`;
/** A service that has read the key set once, and its cache is fresh. */
const service = async () => {
  let reads = 0;
  const known = await published();
  const keys = new KeySet(async () => {
    reads += 1;
    return known;
  });
  const closures = new AccessClosures({
    live: async versions => ({ versions: versions.map(() => '0'), revoked: false }),
    personScopes: async () => ['sys:read'],
    workload: async () => ({ vertical: 'platform', scopes: ['sys:read'] }),
  });
  const verifier = new Verifier({
    keys,
    closures,
    workloads: () => undefined,
    issuers: async issuer => (issuer === world.issuer ? SYSTEM.envId : undefined),
    possession: async () => undefined,
  });
  const verify = (token: string, thumbprint?: string) =>
    verifier.verify({
      authorization: `Bearer ${token}`,
      peer: thumbprint ? { workload: 'bff', thumbprint } : undefined,
      service: 'sys',
      tenantEnvId: undefined,
    });
  return { verify, reads: () => reads };
};
const personToken = async () => (await world.tokens(world.browser(), 'ada@example.org')).access_token;

describe('signatures', () => {
  test('of tokens that stay inside are as configured; applications read what they registered for; verifiers take all three', async () => {
    const inside = await personToken();
    const tokens = [inside];
    for (const alg of ['EdDSA', 'ES256'] as const) {
      const config = await application(world, { id_token_signed_response_alg: alg, first_party: true });
      const browser = world.browser();
      const { oauth, redeem } = await authorize(config, browser);
      const answer = await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: oauth() });
      const redeemed = await redeem((await browser.get(String(answer.json['next']))).location);
      expect([headerOf(redeemed.access_token).alg, headerOf(String(redeemed.id_token)).alg]).toEqual([alg, alg]);
      tokens.push(redeemed.access_token);
    }
    expect(tokens.map(token => headerOf(token).alg)).toEqual(['ML-DSA-65', 'EdDSA', 'ES256']);
    const { verify } = await service();
    for (const token of tokens) expect((await verify(token)).caller.email).toBe('ada@example.org');
    for (const token of tokens) await expect(verify(`${token.slice(0, -8)}AAAAAAAA`)).rejects.toMatchObject({ code: 'unauthenticated' });
    // The service itself reads them too: userinfo, exchange and introspection ask its own verifier.
    for (const token of tokens) expect((await world.reach('/oauth/userinfo', { token })).json['email']).toBe('ada@example.org');
    const exchanged = await world.exchange(inside, { audience: 'auth' });
    expect(exchanged.status).toBe(403);
    await world.registry.putRole({ params: { role: 'looker' }, body: { scopes: ['sys:read'] }, targetEnvId: SYSTEM.envId });
    const [ada] = await world.sql<{ user_id: string }[]>`select user_id from users where email = 'ada@example.org'`;
    await world.registry.putUserRole({ params: { user_id: ada?.user_id as string, role: 'looker' }, targetEnvId: SYSTEM.envId });
    expect(headerOf(String((await world.exchange(inside)).json['access_token'])).alg).toBe('ML-DSA-65');
  });
});

describe('rotation', () => {
  test('every process signs with the next keys at once, and no token from before or after is refused by who read the keys before', async () => {
    await using second = await world.another();
    const { verify, reads } = await service();
    const before = await personToken();
    expect((await verify(before)).principal).toBe('user');
    await settle();
    const states = async () =>
      Object.fromEntries(
        (await world.sql<{ kid: string; state: string }[]>`select kid, state from signing_keys where alg = 'ML-DSA-65'`).map(
          ({ kid, state }) => [kid, state],
        ),
      );
    const was = await states();
    const { items } = await administrator().rotateKeys();
    expect(items.filter(({ state }) => state === 'next')).toHaveLength(4);
    expect(was[headerOf(before).kid]).toBe('current');
    expect((await states())[headerOf(before).kid]).toBe('retired');
    const after = await personToken();
    expect(headerOf(after).kid).not.toBe(headerOf(before).kid);
    expect(was[headerOf(after).kid]).toBe('next');
    // The other process hears of it without being asked anything.
    const signer = async () => {
      const answer = await world.mtls('/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'bff' }, 'bff', { at: second });
      return headerOf(String(answer.json['access_token'])).kid;
    };
    while ((await signer()) !== headerOf(after).kid) await new Promise(resolve => setImmediate(resolve));
    for (const at of [world.host, second]) {
      const kids = (await published(at)).keys.map(({ kid }) => kid);
      expect(kids).toEqual(expect.arrayContaining([headerOf(before).kid, headerOf(after).kid]));
      for (const token of [before, after]) expect((await world.reach('/oauth/userinfo', { token, at })).status).toBe(200);
    }
    for (const token of [before, after]) expect((await verify(token)).principal).toBe('user');
    expect(reads()).toBe(1);
  });

  test('keys that verifiers may not have read yet do not sign', async () => {
    await settle();
    await administrator().rotateKeys();
    await expect(administrator().rotateKeys()).rejects.toMatchObject({ code: 'keys_too_fresh' });
  });

  test('two processes that rotate at once rotate once', async () => {
    await using second = await world.another();
    await settle();
    const outcomes = await Promise.allSettled(
      [world.host, second, world.host, second].map(host => host.by(as.user('auth:keys:admin')).rotateKeys()),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await world.sql`select alg from signing_keys where state <> 'retired'`).toHaveLength(8);
  });

  test('happens by itself when the keys are old enough, and what is long retired is gone', async () => {
    const { keys: old } = await published();
    await settle();
    await world.sql`update signing_keys set activated_at = activated_at - interval '31 days' where state = 'current'`;
    const [current] = await world.sql<{ kid: string }[]>`select kid from signing_keys where state = 'current' limit 1`;
    await world.host.clock.advance('61m');
    expect(await world.sql`select state from signing_keys where kid = ${current?.kid as string}`).toEqual([{ state: 'retired' }]);
    expect((await published()).keys.map(({ kid }) => kid)).toContain(current?.kid);
    await world.host.clock.advance('61m');
    const kids = (await published()).keys.map(({ kid }) => kid);
    expect(kids).not.toContain(current?.kid);
    expect(old.map(({ kid }) => kid)).toContain(current?.kid);
    expect(kids).toHaveLength(8);
  });

  test('is the platform’s: what a tenant’s role names means nothing', async () => {
    const tenant = await world.environment('auth.prod.keys.localhost');
    const owner = world.host.by(as.userIn(tenant, 'auth:keys:admin'));
    await expect(owner.rotateKeys()).rejects.toMatchObject({ code: 'platform_only' });
    await expect(owner.listKeys()).rejects.toMatchObject({ code: 'platform_only' });
    expect((await administrator().listKeys()).items.every(key => !('wrapped' in key))).toBe(true);
  });
});
