import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { as, TokenMint } from '@platform/testing';
import { describe, expect, test } from 'vitest';
import { thumbprintOf } from '../certificates/authority.ts';
import { AskedProbe } from '../fixtures/asked-probe.ts';

const asked = AskedProbe.use();
const { ada, worker, whoami, refused } = asked;

describe('a token is taken only when everything about it holds (G-K-06)', () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, string]>([
    ['another type of token', {}, { typ: 'JWT' }, 'not an access token'],
    ['no type', {}, { typ: undefined }, 'not an access token'],
    ['no signature algorithm', {}, { alg: 'none' }, 'not an access token'],
    ['an algorithm nobody allowed', {}, { alg: 'RS256' }, 'not an access token'],
    ['an algorithm of another key', {}, { alg: 'ES256' }, 'does not publish'],
    ['a key nobody published', {}, { kid: 'nobody' }, 'does not publish'],
    ['no key id', {}, { kid: undefined }, 'not an access token'],
    ['an issuer that is no platform', { iss: 'http://auth.example.org/x' }, {}, 'issued elsewhere'],
    ['F-32 an issuer that only looks like one', { iss: 'https://auth.example.org' }, {}, 'issued elsewhere'],
    [
      'F-32 the issuer of another environment',
      { iss: 'https://auth.018f0000-0000-7000-8000-00000000e001.test.localhost:8443' },
      {},
      'issued elsewhere',
    ],
    ['F-32 a header member that must be understood and is not', {}, { crit: ['exp2'], exp2: 1 }, 'what is not understood'],
    ['F-32 nbf as text', { nbf: 'soon' }, {}, '/nbf'],
    ['F-32 exp as text', { exp: '9999999999' }, {}, '/exp'],
    ['F-32 iat as text', { iat: 'now' }, {}, '/iat'],
    ['F-32 act that names nobody', { act: 'x' }, {}, '/act'],
    ['F-32 a binding nobody here understands', { cnf: { kid: 'x' } }, {}, '/cnf'],
    ['another service', { aud: ['auth'] }, {}, 'not meant for probe'],
    ['no service', { aud: undefined }, {}, 'lacks'],
    ['a kind no service accepts', { token_type: 'id' }, {}, 'of a kind'],
  ])('%s', async (_, claims, header, detail) => {
    const answer = await refused({ token: asked.host.mint.token(ada, 'probe', claims, header) });
    expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', challenge: expect.stringContaining('error="invalid_token"') });
    expect(answer.detail).toContain(detail);
  });

  test('time counts on both sides, with thirty seconds of leeway', async () => {
    const at = async (changes: object) => (await refused({ token: asked.host.mint.token(ada, 'probe', changes as never) })).detail;
    expect(await at({ exp: asked.now() - 40 })).toContain('has expired');
    expect(await at({ nbf: asked.now() + 60 })).toContain('not valid yet');
    expect(await at({ exp: asked.now() - 10 })).toBeUndefined();
    expect(await at({ nbf: asked.now() + 10 })).toBeUndefined();
  });

  test('a signature of somebody else, and claims changed after signing, are false', async () => {
    const stranger = new TokenMint();
    expect((await refused({ token: stranger.token(ada, 'probe') })).detail).toContain('signature');
    const [head, body, signature] = asked.host.mint.token(as.user(), 'probe').split('.') as [string, string, string];
    const changed = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: ada.id })).toString(
      'base64url',
    );
    expect((await refused({ token: `${head}.${changed}.${signature}` })).detail).toContain('signature');
    expect((await refused({ token: `${head}.${body}.` })).status).toBe(401);
    expect((await refused({ token: `${head}.${body}.${signature}.${signature}` })).status).toBe(401);
  });

  test('F-32 nothing may follow the signature, and nothing of a part may be left over', async () => {
    const token = asked.host.mint.token(ada, 'probe');
    for (const junk of ['=', '==', '+', '/', '~', 'A', '.x'])
      expect([junk, (await refused({ token: `${token}${junk}` })).status]).toEqual([junk, 401]);
    expect((await whoami({ token })).status).toBe(200);
  });

  test('F-32 the scheme is read without regard to case', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer '])
      expect((await whoami({ headers: { authorization: `${scheme} ${asked.host.mint.token(ada, 'probe')}` } })).status).toBe(200);
  });

  test('a token bound to one certificate is good with that one only', async () => {
    const token = asked.host.mint.token(ada, 'probe', { cnf: { 'x5t#S256': thumbprintOf(asked.sender.cert) } });
    expect((await whoami({ token, as: asked.sender })).json['caller']).toMatchObject({ userId: ada.id, bound: true });
    expect((await refused({ token, as: asked.other })).detail).toContain('bound to another client certificate');
    expect((await refused({ token })).detail).toContain('bound to another client certificate');
  });

  test('a user token without an environment is nobody’s tenant', async () => {
    expect(await refused({ token: asked.host.mint.token(ada, 'probe', { env_id: undefined }) })).toMatchObject({
      status: 403,
      code: 'tenant_unresolved',
    });
  });

  test('a route that wants a bound identity, a workload or a person says which', async () => {
    const bound = as.user('probe:bound:read');
    expect((await asked.host.fetch('/v1/bound', { persona: bound })).json['code']).toBe('certificate_binding_required');
    expect(
      (
        await asked.host.fetch('/v1/bound', {
          token: asked.host.mint.token(bound, 'probe', { cnf: { 'x5t#S256': thumbprintOf(asked.sender.cert) } }),
          as: asked.sender,
        })
      ).status,
    ).toBe(200);
    expect((await asked.host.fetch('/v1/run', { method: 'POST', persona: as.user('probe:work:run') })).json['code']).toBe('m2m_required');
    expect((await asked.host.fetch('/v1/person', { as: asked.sender })).json['code']).toBe('user_required');
    expect((await asked.host.fetch('/v1/run', { method: 'POST', as: asked.sender })).json).toEqual({
      subject: 'worker',
      service: 'worker',
      bound: true,
    });
    expect((await asked.host.fetch('/v1/run', { method: 'POST', token: asked.host.mint.token(worker, 'probe') })).json['code']).toBe(
      'certificate_binding_required',
    );
  });

  test('where any signed-in person will do, a person without a single scope passes; a workload, a delegated token and nobody do not', async () => {
    const [nobody, acting] = [as.user(), as.delegated(ada.envId, 'probe:things:read')];
    expect(await asked.host.fetch('/v1/signed-in', { persona: nobody })).toMatchObject({ status: 200, json: { user: nobody.id } });
    expect((await asked.host.fetch('/v1/signed-in', { as: asked.sender })).json['code']).toBe('user_required');
    expect((await asked.host.fetch('/v1/signed-in', { persona: acting })).json['code']).toBe('user_required');
    expect((await asked.host.fetch('/v1/signed-in')).json['code']).toBe('unauthenticated');
  });

  test('a workload’s token gives what it names of what the workload holds, and no more', async () => {
    const token = (scope: string) =>
      asked.host.mint.token(worker, 'probe', { scope, cnf: { 'x5t#S256': thumbprintOf(asked.sender.cert) } });
    expect((await asked.host.fetch('/v1/run', { method: 'POST', token: token('platform:probe:work:run'), as: asked.sender })).status).toBe(
      200,
    );
    expect((await asked.host.fetch('/v1/run', { method: 'POST', token: token('probe:things:read'), as: asked.sender })).json['code']).toBe(
      'policy_denied',
    );
    expect((await asked.host.fetch('/v1/whoami', { token: token('probe:things:write probe:things:read'), as: asked.sender })).status).toBe(
      200,
    );
  });
});

describe('a token that is bound to a key (RFC 9449)', () => {
  const address = 'https://probe.ops.sys.localhost:8443/v1/whoami';
  const holder = async (alg = 'ES256') => {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    const jwk = await exportJWK(publicKey);
    const token = asked.host.mint.token(ada, 'probe', { cnf: { jkt: await calculateJwkThumbprint(jwk) } });
    const ath = createHash('sha256').update(token).digest('base64url');
    const prove = (claims: object = {}, header: object = {}) =>
      new SignJWT({ htm: 'GET', htu: address, iat: asked.now(), jti: crypto.randomUUID(), ath, ...claims })
        .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk, ...header })
        .sign(privateKey);
    const show = (proof: string | undefined, scheme = 'DPoP', path = '/v1/whoami') =>
      asked.host.fetch(path, { headers: { authorization: `${scheme} ${token}`, ...(proof === undefined ? {} : { dpop: proof }) } });
    return { token, prove, show };
  };

  test.each(['ES256', 'EdDSA', 'Ed25519'])('F-18 is taken with the scheme DPoP and a proof by %s of its own, once', async alg => {
    const { prove, show } = await holder(alg);
    const proof = await prove();
    expect((await show(proof)).json['caller']).toMatchObject({ kind: 'user', userId: ada.id });
    expect((await show(proof)).status).toBe(401);
    expect((await show(await prove({ htu: `${address}?x=1#y` }), 'dpop', '/v1/whoami?target_org_id=2')).status).toBe(200);
  });

  test('F-18 of twelve requests that show one proof at once, one is served', async () => {
    const { prove, show } = await holder();
    const proof = await prove();
    const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await show(proof)).status));
    expect(statuses.sort()).toEqual([200, ...Array.from({ length: 11 }, () => 401)]);
  });

  test('F-18 is no bearer token, with or without a proof beside it', async () => {
    const { token, prove, show } = await holder();
    for (const answer of [await whoami({ token }), await show(await prove(), 'Bearer'), await show(undefined)]) {
      expect([answer.status, answer.json['code'], answer.headers['www-authenticate']]).toEqual([
        401,
        'unauthenticated',
        expect.stringMatching(/^DPoP .*error="invalid_\w+".*algs="[^"]*ES256/),
      ]);
    }
    expect((await whoami({ headers: { authorization: `DPoP ${asked.host.mint.token(ada, 'probe')}` } })).status).toBe(401);
  });

  test.each<[string, object, object]>([
    ['another method', { htm: 'POST' }, {}],
    ['another path', { htu: 'https://probe.ops.sys.localhost:8443/v1/things' }, {}],
    ['another host', { htu: 'https://sys.ops.sys.localhost:8443/v1/whoami' }, {}],
    ['no address', { htu: undefined }, {}],
    ['another token', { ath: 'x'.repeat(43) }, {}],
    ['no token', { ath: undefined }, {}],
    ['a time long ago', { iat: 1_000 }, {}],
    ['a time to come', { iat: 99_999_999_999 }, {}],
    ['no time', { iat: undefined }, {}],
    ['no name', { jti: undefined }, {}],
    ['a name without end', { jti: 'x'.repeat(257) }, {}],
    ['everything, and far more beside it', { more: 'x'.repeat(8_192) }, {}],
    ['another type', {}, { typ: 'JWT' }],
    ['no key', {}, { jwk: undefined }],
  ])('F-18 a proof for %s is refused', async (_, claims, header) => {
    const { prove, show } = await holder();
    const answer = await show(await prove(claims, header));
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, expect.stringContaining('error="invalid_dpop_proof"')]);
  });

  test('F-18 a proof by another key is refused', async () => {
    const [{ show }, other] = [await holder(), await holder()];
    expect((await show(await other.prove())).status).toBe(401);
  });

  test('F-18 behind the ingress the address is the one the client saw', async () => {
    const { prove, token } = await holder();
    const through = async (htu: string) =>
      (
        await whoami({
          as: asked.ingress,
          headers: {
            'x-platform-caller-service': 'proxy',
            'x-platform-hostname': 'shop.example.org',
            authorization: `DPoP ${token}`,
            dpop: await prove({ htu }),
          },
        })
      ).status;
    expect(await through('https://shop.example.org:8443/v1/whoami')).toBe(200);
    expect(await through(address)).toBe(401);
  });
});
