import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { as, boot, type BootedHost, TokenMint } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probePlugin } from '../../test/probe.ts';
import type { probe } from '../../test/probe-contract.ts';
import { thumbprintOf } from '../certificates/authority.ts';
import { openAuthority } from '../certificates/trust-anchors.ts';

const plugin = probePlugin();
let host: BootedHost<typeof probe>;
let sender: { cert: string; key: string };
let other: { cert: string; key: string };
let ingress: { cert: string; key: string };
const ada = as.user('probe:things:read');
const worker = as.machine('worker', 'probe:work:run', 'probe:things:read');
const now = () => Math.floor(host.clock.now().getTime() / 1_000);

beforeAll(async () => {
  host = await boot<typeof probe, (typeof plugin)['uses']>(plugin);
  [sender, other, ingress] = await Promise.all([host.workload('worker'), host.workload('other'), host.workload('proxy')]);
});
afterAll(async () => host?.[Symbol.asyncDispose]());

const whoami = (init: Parameters<typeof host.fetch>[1]) => host.fetch('/v1/whoami', init);
const refused = async (init: Parameters<typeof host.fetch>[1]) => {
  const { status, json, headers } = await whoami(init);
  return { status, code: json['code'], detail: json['detail'], challenge: headers['www-authenticate'] };
};
const known = async () => {
  // The kit answers live scopes of whoever has called before.
  await whoami({ persona: ada });
  await whoami({ persona: worker, as: sender });
};

describe('a token is taken only when everything about it holds (G-K-06)', () => {
  beforeAll(known);

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
    const answer = await refused({ token: host.mint.token(ada, 'probe', claims, header) });
    expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', challenge: expect.stringContaining('error="invalid_token"') });
    expect(answer.detail).toContain(detail);
  });

  test('time counts on both sides, with thirty seconds of leeway', async () => {
    const at = async (changes: object) => (await refused({ token: host.mint.token(ada, 'probe', changes as never) })).detail;
    expect(await at({ exp: now() - 40 })).toContain('has expired');
    expect(await at({ nbf: now() + 60 })).toContain('not valid yet');
    expect(await at({ exp: now() - 10 })).toBeUndefined();
    expect(await at({ nbf: now() + 10 })).toBeUndefined();
  });

  test('a signature of somebody else, and claims changed after signing, are false', async () => {
    const stranger = new TokenMint();
    expect((await refused({ token: stranger.token(ada, 'probe') })).detail).toContain('signature');
    const [head, body, signature] = host.mint.token(as.user(), 'probe').split('.') as [string, string, string];
    const changed = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: ada.id })).toString(
      'base64url',
    );
    expect((await refused({ token: `${head}.${changed}.${signature}` })).detail).toContain('signature');
    expect((await refused({ token: `${head}.${body}.` })).status).toBe(401);
    expect((await refused({ token: `${head}.${body}.${signature}.${signature}` })).status).toBe(401);
  });

  test('F-32 nothing may follow the signature, and nothing of a part may be left over', async () => {
    const token = host.mint.token(ada, 'probe');
    for (const junk of ['=', '==', '+', '/', '~', 'A', '.x'])
      expect([junk, (await refused({ token: `${token}${junk}` })).status]).toEqual([junk, 401]);
    expect((await whoami({ token })).status).toBe(200);
  });

  test('F-32 the scheme is read without regard to case', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer '])
      expect((await whoami({ headers: { authorization: `${scheme} ${host.mint.token(ada, 'probe')}` } })).status).toBe(200);
  });

  test('a token bound to one certificate is good with that one only', async () => {
    const token = host.mint.token(ada, 'probe', { cnf: { 'x5t#S256': thumbprintOf(sender.cert) } });
    expect((await whoami({ token, as: sender })).json['caller']).toMatchObject({ userId: ada.id, bound: true });
    expect((await refused({ token, as: other })).detail).toContain('bound to another client certificate');
    expect((await refused({ token })).detail).toContain('bound to another client certificate');
  });

  test('a user token without an environment is nobody’s tenant', async () => {
    expect(await refused({ token: host.mint.token(ada, 'probe', { env_id: undefined }) })).toMatchObject({
      status: 403,
      code: 'tenant_unresolved',
    });
  });

  test('a route that wants a bound identity, a workload or a person says which', async () => {
    const bound = as.user('probe:bound:read');
    expect((await host.fetch('/v1/bound', { persona: bound })).json['code']).toBe('certificate_binding_required');
    expect(
      (
        await host.fetch('/v1/bound', {
          token: host.mint.token(bound, 'probe', { cnf: { 'x5t#S256': thumbprintOf(sender.cert) } }),
          as: sender,
        })
      ).status,
    ).toBe(200);
    expect((await host.fetch('/v1/run', { method: 'POST', persona: as.user('probe:work:run') })).json['code']).toBe('m2m_required');
    expect((await host.fetch('/v1/person', { as: sender })).json['code']).toBe('user_required');
    expect((await host.fetch('/v1/run', { method: 'POST', as: sender })).json).toEqual({
      subject: 'worker',
      service: 'worker',
      bound: true,
    });
    expect((await host.fetch('/v1/run', { method: 'POST', token: host.mint.token(worker, 'probe') })).json['code']).toBe(
      'certificate_binding_required',
    );
  });

  test('where any signed-in person will do, a person without a single scope passes; a workload, a delegated token and nobody do not', async () => {
    const [nobody, acting] = [as.user(), as.delegated(ada.envId, 'probe:things:read')];
    expect(await host.fetch('/v1/signed-in', { persona: nobody })).toMatchObject({ status: 200, json: { user: nobody.id } });
    expect((await host.fetch('/v1/signed-in', { as: sender })).json['code']).toBe('user_required');
    expect((await host.fetch('/v1/signed-in', { persona: acting })).json['code']).toBe('user_required');
    expect((await host.fetch('/v1/signed-in')).json['code']).toBe('unauthenticated');
  });

  test('a workload’s token gives what it names of what the workload holds, and no more', async () => {
    const token = (scope: string) => host.mint.token(worker, 'probe', { scope, cnf: { 'x5t#S256': thumbprintOf(sender.cert) } });
    expect((await host.fetch('/v1/run', { method: 'POST', token: token('platform:probe:work:run'), as: sender })).status).toBe(200);
    expect((await host.fetch('/v1/run', { method: 'POST', token: token('probe:things:read'), as: sender })).json['code']).toBe(
      'policy_denied',
    );
    expect((await host.fetch('/v1/whoami', { token: token('probe:things:write probe:things:read'), as: sender })).status).toBe(200);
  });
});

describe('a token that is bound to a key (RFC 9449)', () => {
  beforeAll(known);
  const address = 'https://probe.ops.sys.localhost:8443/v1/whoami';
  const holder = async (alg = 'ES256') => {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    const jwk = await exportJWK(publicKey);
    const token = host.mint.token(ada, 'probe', { cnf: { jkt: await calculateJwkThumbprint(jwk) } });
    const ath = createHash('sha256').update(token).digest('base64url');
    const prove = (claims: object = {}, header: object = {}) =>
      new SignJWT({ htm: 'GET', htu: address, iat: now(), jti: crypto.randomUUID(), ath, ...claims })
        .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk, ...header })
        .sign(privateKey);
    const show = (proof: string | undefined, scheme = 'DPoP', path = '/v1/whoami') =>
      host.fetch(path, { headers: { authorization: `${scheme} ${token}`, ...(proof === undefined ? {} : { dpop: proof }) } });
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
    expect((await whoami({ headers: { authorization: `DPoP ${host.mint.token(ada, 'probe')}` } })).status).toBe(401);
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
          as: ingress,
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

describe('who calls', () => {
  test('KRN-002 the bearer token counts first, the certificate only where no Authorization header is', async () => {
    await known();
    expect((await whoami({ persona: ada, as: sender })).json['caller']).toMatchObject({ kind: 'user', userId: ada.id });
    expect((await whoami({ as: sender })).json['caller']).toMatchObject({
      kind: 'machine',
      subject: 'worker',
      bound: true,
      thumbprint: thumbprintOf(sender.cert),
    });
    for (const authorization of [
      'Basic d29ya2VyOng=',
      'Bearer',
      'Bearer a b',
      'Bearer not-a-token',
      `Bearer ${host.mint.token(ada, 'other')}`,
      '',
    ]) {
      expect([authorization.slice(0, 12), (await whoami({ as: sender, headers: { authorization } })).status]).toEqual([
        authorization.slice(0, 12),
        401,
      ]);
    }
    expect((await whoami({})).status).toBe(401);
  });

  test('KRN-003 a delegated token’s acting user is its act.sub, a client certificate beside it or not', async () => {
    const acting = as.delegated(ada.envId, 'probe:things:read');
    for (const credential of [undefined, sender]) {
      const { json } = await whoami({ persona: acting, ...(credential ? { as: credential } : {}) });
      expect(json['caller']).toMatchObject({ kind: 'delegated', userId: acting.id, subject: 'bff-delegator', service: 'bff' });
    }
    const narrowed = await refused({ token: host.mint.token(acting, 'probe', { scope: 'probe:things:write' }) });
    expect(narrowed.code).toBe('policy_denied');
  });

  test('a customer’s token in the hands of the staff has the customer’s rights as far as it names them, and says who acts (G-K-07)', async () => {
    const [customer, staff] = [as.user('probe:things:read'), as.user()];
    for (const persona of [customer, staff]) await whoami({ persona });
    const token = (scope: string, act = staff.id) =>
      host.mint.token(customer, 'probe', { token_type: 'delegated', client_id: 'bff-delegator', scope, act: { sub: act } });
    expect((await whoami({ token: token('probe:things:read') })).json['caller']).toMatchObject({
      kind: 'delegated',
      userId: staff.id,
      subject: customer.id,
      service: 'bff',
    });
    expect((await refused({ token: token('openid') })).code).toBe('policy_denied');
    // Either of the two can be shut out.
    for (const id of [customer.id, staff.id]) {
      await host.process.kv.call('SET', `revoked:sub:${id}`, '1');
      expect((await refused({ token: token('probe:things:read') })).code).toBe('actor_revoked');
      await host.process.kv.call('DEL', `revoked:sub:${id}`);
    }
  });

  test('a token of somebody else’s application is good for its scope, whatever the person may do', async () => {
    await known();
    const token = (scope: string) => host.mint.token(ada, 'probe', { scope, limited: true });
    expect((await whoami({ token: token('openid probe:things:read') })).status).toBe(200);
    expect((await refused({ token: token('openid') })).code).toBe('policy_denied');
    expect((await whoami({ token: host.mint.token(ada, 'probe', { scope: 'openid' }) })).status).toBe(200);
  });

  test('KRN-020 access and delegated tokens are good as often as they are shown, until they expire', async () => {
    for (const persona of [ada, as.delegated(ada.envId, 'probe:things:read')]) {
      await whoami({ persona });
      const token = host.mint.token(persona, 'probe', { jti: 'the-same' });
      const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await whoami({ token })).status));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
  });

  test('KRN-021 a mark on the session, the grant, the person or the certificate refuses the next request; without one only time does', async () => {
    await known();
    const token = host.mint.token(ada, 'probe', { jti: 'this-one', gid: 'a-grant', cnf: { 'x5t#S256': thumbprintOf(sender.cert) } });
    for (const mark of [
      `revoked:sid:s-${ada.id}`,
      `revoked:sub:${ada.id}`,
      'revoked:jti:this-one',
      'revoked:gid:a-grant',
      `revoked:cert:${thumbprintOf(sender.cert)}`,
    ]) {
      expect((await whoami({ token, as: sender })).status).toBe(200);
      await host.process.kv.call('SET', mark, '1');
      expect([mark, await refused({ token, as: sender })]).toMatchObject([mark, { status: 401, code: 'actor_revoked' }]);
      await host.process.kv.call('DEL', mark);
    }
    await host.process.kv.call('SET', `revoked:cert:${thumbprintOf(sender.cert)}`, '1');
    expect((await refused({ as: sender })).code).toBe('actor_revoked');
    await host.process.kv.call('DEL', `revoked:cert:${thumbprintOf(sender.cert)}`);
    await host.process.kv.call('SET', 'revoked:sub:worker', '1');
    expect((await refused({ as: sender })).code).toBe('actor_revoked');
    await host.process.kv.call('DEL', 'revoked:sub:worker');
    // The signature was checked and remembered; the time is looked at again every time.
    const short = host.mint.token(ada, 'probe', { exp: now() + 5 });
    expect((await whoami({ token: short })).status).toBe(200);
    expect((await refused({ token: host.mint.token(ada, 'probe', { exp: now() - 31 }) })).detail).toContain('expired');
  });

  test('a certificate of another authority is refused at the connection, and one whose names disagree is none', async () => {
    const foreign = await openAuthority(`${host.stores.dataDir}/foreign`);
    const leaf = await foreign.pq.issue({
      commonName: 'm2m-worker',
      names: ['uri:urn:platform:workload:worker'],
      usages: ['client'],
      days: 1,
    });
    await expect(whoami({ as: { cert: leaf.chain, key: leaf.key as string } })).rejects.toThrow();
    const mixed = await host.stores.authority.pq.issue({
      commonName: 'm2m-worker',
      names: ['uri:urn:platform:workload:other'],
      usages: ['client'],
      days: 1,
    });
    expect((await refused({ as: { cert: mixed.chain, key: mixed.key as string } })).status).toBe(401);
  });

  test('a certificate of another service gives that service’s rights, not those of the one it speaks to', async () => {
    await whoami({ persona: as.machine('other'), as: other });
    expect((await refused({ as: other })).code).toBe('policy_denied');
    expect((await host.fetch('/v1/run', { method: 'POST', as: other })).json['code']).toBe('policy_denied');
  });
});

describe('what the ingress injects', () => {
  const injected = {
    'x-platform-caller-service': 'proxy',
    'x-platform-env-id': ada.envId,
    'x-platform-app-id': 'app-1',
    'x-platform-hostname': 'shop.example.org',
    'x-forwarded-for': '203.0.113.7',
  };

  test('KRN-027 tenant headers count only from the ingress’s certificate, and the backend checks the token against them', async () => {
    const told = await host.fetch('/v1/anyone', { as: ingress, headers: injected });
    expect(told.json).toMatchObject({
      tenant: { envId: ada.envId, appInstanceId: 'app-1' },
      hostname: 'shop.example.org',
      ip: '203.0.113.7',
    });
    for (const [name, credential, headers] of [
      ['nobody', undefined, injected],
      ['another workload', other, injected],
      ['the ingress on its own behalf', ingress, { ...injected, 'x-platform-caller-service': 'bff' }],
    ] as const) {
      const { json } = await host.fetch('/v1/anyone', { ...(credential ? { as: credential } : {}), headers });
      expect([name, json['tenant'], json['ip']]).toEqual([name, {}, '127.0.0.1']);
    }
    expect((await whoami({ persona: ada, as: ingress, headers: injected })).status).toBe(200);
    expect(await refused({ persona: ada, as: ingress, headers: { ...injected, 'x-platform-env-id': 'another-env' } })).toMatchObject({
      status: 403,
      code: 'tenant_mismatch',
    });
    const acting = as.delegated(ada.envId, 'probe:things:read');
    expect((await whoami({ persona: acting, as: ingress, headers: { ...injected, 'x-platform-env-id': 'another-env' } })).status).toBe(200);
  });

  test('the ingress is never the caller of what it forwards', async () => {
    await whoami({ persona: as.machine('proxy', 'probe:things:read'), as: ingress });
    expect((await whoami({ as: ingress })).json['caller']).toMatchObject({ subject: 'proxy' });
    expect(await refused({ as: ingress, headers: injected })).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect((await host.fetch('/v1/anyone', { as: ingress, headers: injected })).json['peer']).toBeUndefined();
    expect(
      await refused({
        token: host.mint.token(ada, 'probe', { cnf: { 'x5t#S256': thumbprintOf(ingress.cert) } }),
        as: ingress,
        headers: injected,
      }),
    ).toMatchObject({ status: 401 });
  });
});

test('scopes are live: a change of the access model counts at the next request', async () => {
  const eve = as.user('probe:things:read');
  expect((await whoami({ persona: eve })).status).toBe(200);
  const token = host.mint.token(eve, 'probe');
  await whoami({ persona: { ...eve, scopes: [] } });
  expect((await whoami({ token })).status).toBe(200);
  await host.process.kv.call('INCR', `authz:{${eve.envId}}`);
  expect((await whoami({ token })).status).toBe(403);
});
