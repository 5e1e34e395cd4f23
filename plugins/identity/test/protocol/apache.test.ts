import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Apache, Edge, freePort, missing, Visitor } from '../fixtures/apache.ts';
import { appStore, register } from '../fixtures/applications.ts';
import { CHOSEN, World } from '../fixtures/world.ts';

const reason = missing ? ` (skipped: ${missing} is not installed; apt-get install apache2 libapache2-mod-auth-openidc)` : '';

describe.skipIf(missing !== undefined)(`Debian's mod_auth_openidc${reason}`, () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start({ contracts: [appStore] });
    await world.person('ada@example.org');
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test('completes a code flow with PKCE, checks the signature, and knows who it is', async () => {
    const leaf = await world.host.stores.authority.classical.issue({
      commonName: world.authHost,
      names: [`dns:${world.authHost}`],
      usages: ['server'],
      days: 1,
    });
    await using edge = await Edge.open(world, { cert: leaf.chain, key: leaf.key as string });
    const port = await freePort();
    const redirect = `http://127.0.0.1:${port}/protected/redirect_uri`;
    const client = await register(world, {
      client_name: 'Apache',
      redirect_uris: [redirect],
      scope: 'openid email',
      id_token_signed_response_alg: 'ES256',
      first_party: true,
    });
    expect(client.status).toBe(201);
    const at = (path: string) => `https://${world.authHost}:${edge.port}${path}`;
    await using _apache = await Apache.start(
      port,
      {
        OIDCProviderIssuer: world.issuer,
        OIDCProviderAuthorizationEndpoint: `${world.issuer}/oauth/authorize`,
        OIDCProviderTokenEndpoint: at('/oauth/token'),
        OIDCProviderTokenEndpointAuth: 'client_secret_basic',
        OIDCProviderJwksUri: at('/.well-known/jwks.json'),
        OIDCProviderUserInfoEndpoint: at('/oauth/userinfo'),
        OIDCClientID: String(client.json['client_id']),
        OIDCClientSecret: String(client.json['client_secret']),
        OIDCRedirectURI: redirect,
        OIDCScope: 'openid email',
        OIDCPKCEMethod: 'S256',
        OIDCResponseMode: 'query',
        OIDCCryptoPassphrase: 'of this test alone',
        OIDCPassClaimsAs: 'environment',
      },
      world.host.stores.authority.classical.files.rootCertificate,
    );
    const visitor = new Visitor();
    // 1. The door sends the browser to sign in.
    const door = await visitor.visit(`http://127.0.0.1:${port}/protected/`);
    expect(door.status).toBe(302);
    const asked = new URL(door.location);
    expect(asked.searchParams.get('code_challenge_method')).toBe('S256');
    // 2. The person signs in on the platform's pages.
    const browser = world.browser();
    const page = await browser.get(asked.href);
    const oauth = Object.fromEntries(new URL(page.location, world.issuer).searchParams);
    const { client_id, redirect_uri, state, code_challenge, scope, uid } = oauth as Record<string, string>;
    const signedIn = await browser.post('/v1/sign-in', {
      email: 'ada@example.org',
      password: CHOSEN,
      oauth: { client_id, redirect_uri, state, code_challenge, scope, uid },
    });
    const back = await browser.get(String(signedIn.json['next']));
    expect(back.location).toContain(redirect);
    // 3. Apache redeems the code, checks the token against the key set, and lets her in.
    const landed = await visitor.visit(back.location);
    expect([landed.status, landed.location]).toEqual([302, `http://127.0.0.1:${port}/protected/`]);
    const inside = await visitor.visit(`http://127.0.0.1:${port}/protected/`);
    const [ada] = await world.sql<{ user_id: string }[]>`select user_id from users where email = 'ada@example.org'`;
    expect([inside.status, inside.text, inside.headers['x-user'], inside.headers['x-email']]).toEqual([
      200,
      'behind the door',
      ada?.user_id,
      'ada@example.org',
    ]);
    expect(edge.asked).toEqual(expect.arrayContaining(['POST /oauth/token', 'GET /.well-known/jwks.json', 'GET /oauth/userinfo']));
  });
});
