import 'reflect-metadata';
import { createPrivateKey, KeyObject, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AcmeAgent, csrFor, jwkOf, ORIGIN } from './fixtures/acme-agent.ts';
import { World } from './fixtures/world.ts';

let world: World;
let agent: AcmeAgent;
beforeAll(async () => {
  world = await World.start({ PLATFORM_ACME_LOCAL_DOMAINS: 'lan' });
  agent = await AcmeAgent.of(world);
});
afterAll(() => world[Symbol.asyncDispose]());

const acme = (name: string) => `urn:ietf:params:acme:error:${name}`;
const der = (chain: string) => new X509Certificate(chain).raw.toString('base64url');

describe('a local order', () => {
  test('CA-064 CA-066 CA-016 CA-017 CA-055 CA-067 CA-048 CA-003 from the order to the certificate, each step with its states and events', async () => {
    const order = await agent.order('Web.LOCALHOST', '*.nas.lan');
    expect(order).toMatchObject({
      status: 201,
      json: {
        status: 'pending',
        classification: 'local',
        identifier: { type: 'dns', value: 'web.localhost' },
        identifiers: [{ value: 'web.localhost' }, { value: '*.nas.lan' }],
      },
    });
    const [place, id] = [order.headers['location'] as string, (order.headers['location'] as string).split('/').at(-1) as string];
    const csr = await csrFor(['web.localhost', '*.nas.lan']);
    // Not before every authorization is valid.
    expect(await agent.post(order.json.finalize, { csr: csr.der })).toMatchObject({ status: 403, json: { type: acme('orderNotReady') } });
    const [first, second] = order.json.authorizations as [string, string];
    const authz = (await agent.post(first)).json;
    expect(authz).toMatchObject({
      status: 'pending',
      identifier: { value: 'web.localhost' },
      challenges: [{ type: 'http-01', status: 'pending' }],
    });
    expect((await agent.post(second)).json).toMatchObject({ wildcard: true, identifier: { value: 'nas.lan' } });
    const challenge = await agent.post(authz.challenges[0].url, {});
    expect(challenge).toMatchObject({ status: 200, json: { status: 'valid', token: authz.challenges[0].token } });
    expect(challenge.headers['link']).toContain(`<${first}>;rel="up"`);
    expect((await agent.post(first)).json.status).toBe('valid');
    expect((await agent.post(order.json.finalize, { csr: csr.der })).json.type).toBe(acme('orderNotReady'));
    await agent.prove(order);
    expect((await agent.post(place)).json.status).toBe('ready');
    const ended = await agent.post(order.json.finalize, { csr: csr.der });
    expect(ended).toMatchObject({
      status: 200,
      headers: { location: place },
      json: { status: 'valid', certificate: expect.stringContaining('/acme/cert/') },
    });
    expect((await agent.post(order.json.finalize, { csr: csr.der })).json.type).toBe(acme('orderNotReady'));
    expect(world.file(`orders/${id}.json`)).toMatchObject({
      classification: 'local',
      status: 'valid',
      identifier: { value: 'web.localhost' },
      certificate_id: expect.any(String),
    });
    const events = () => world.host.bus.filter(({ payload }) => payload['order_id'] === id).map(({ event_type }) => event_type);
    await expect.poll(events).toEqual(['platform:acme:order:created', 'platform:acme:order:finalized']);
  });

  test('CA-065 CA-097 order, authorization and certificate can be looked at plainly; the certificate is leaf and intermediate', async () => {
    const { order, chain } = await agent.obtain(['plain.localhost']);
    for (const url of [order.headers['location'], ...order.json.authorizations] as string[])
      expect((await world.host.fetch(url.replace(ORIGIN, ''))).json['status']).toBe('valid');
    const { text, headers } = await world.host.fetch((order.json.certificate as string).replace(ORIGIN, ''));
    expect([text, headers['content-type'], text.match(/BEGIN CERTIFICATE/g)?.length, text.includes('PRIVATE')]).toEqual([
      chain,
      'application/pem-certificate-chain',
      2,
      false,
    ]);
    expect(await world.host.fetch('/acme/cert/018f0000-0000-7000-8000-00000000dead')).toMatchObject({
      status: 404,
      json: { type: acme('malformed') },
    });
  });

  test.each([['classical'], ['p384'], ['rsa'], ['ed25519'], ['pq'], ['pq44'], ['pq87']] as const)(
    'CA-001 G-ACME-01 a %s key is signed by its hierarchy, with key identifiers, critical constraints and usages',
    async kind => {
      const { chain } = await agent.obtain(['strict.localhost', '10.1.2.3', '::1'], kind);
      const leaf = new x509.X509Certificate(chain);
      const { pq, classical } = world.stores.authority;
      const hierarchy = kind.startsWith('pq') ? pq : classical;
      const [certificate, issuer, root] = [
        new X509Certificate(chain),
        new X509Certificate(hierarchy.files.intermediateCertificate),
        new X509Certificate(hierarchy.files.rootCertificate),
      ];
      expect([certificate.checkIssued(issuer), certificate.verify(issuer.publicKey), issuer.verify(root.publicKey)]).toEqual([
        true,
        true,
        true,
      ]);
      const of = <T extends x509.Extension>(type: new (raw: ArrayBuffer) => T) =>
        leaf.extensions.find(extension => extension instanceof type) as T;
      expect([
        of(x509.BasicConstraintsExtension).critical,
        of(x509.BasicConstraintsExtension).ca,
        of(x509.KeyUsagesExtension).critical,
      ]).toEqual([true, false, true]);
      const issuerKey = new x509.X509Certificate(hierarchy.files.intermediateCertificate).extensions.find(
        extension => extension instanceof x509.SubjectKeyIdentifierExtension,
      )?.keyId;
      expect([of(x509.SubjectKeyIdentifierExtension).keyId.length, of(x509.AuthorityKeyIdentifierExtension).keyId]).toEqual([
        40,
        issuerKey,
      ]);
      expect(certificate.subjectAltName).toBe('DNS:strict.localhost, IP Address:10.1.2.3, IP Address:0:0:0:0:0:0:0:1');
    },
  );

  test('G-ACME-03 a request must name exactly what was ordered, by a key of its own, and prove it', async () => {
    const made = await agent.order('a.localhost', 'b.localhost');
    await agent.prove(made);
    const finalize = async (csr: string) => (await agent.post(made.json.finalize, { csr })).json.type;
    for (const names of [['a.localhost'], ['a.localhost', 'c.localhost'], ['a.localhost', 'b.localhost', 'example.org']])
      expect(await finalize((await csrFor(names)).der)).toBe(acme('badCSR'));
    expect(await finalize((await csrFor(['a.localhost', 'b.localhost'], 'classical', { cn: 'example.org' })).der)).toBe(acme('badCSR'));
    expect(await finalize(Buffer.from('not a request').toString('base64url'))).toBe(acme('badCSR'));
    expect(await finalize('***')).toBe(acme('malformed'));
    const subtle = { name: 'ECDSA', namedCurve: 'P-256' };
    const own = {
      privateKey: agent.keys.privateKey.toCryptoKey(subtle, true, ['sign']),
      publicKey: agent.keys.publicKey.toCryptoKey(subtle, true, ['verify']),
    } as CryptoKeyPair;
    expect(await finalize((await csrFor(['a.localhost', 'b.localhost'], 'classical', { keys: own })).der)).toBe(acme('badCSR'));
    expect(
      (
        await agent.post(made.json.finalize, {
          csr: (await csrFor(['b.localhost', 'a.localhost'], 'classical', { cn: 'A.localhost' })).der,
        })
      ).json.status,
    ).toBe('valid');
  });

  test('CA-015 CA-019 CA-030 mixed, external and impossible orders are refused at once', async () => {
    expect(await agent.order('a.localhost', 'example.org')).toMatchObject({ status: 400, json: { type: acme('malformed') } });
    expect(await agent.order('example.org')).toMatchObject({ status: 400, json: { type: acme('rejectedIdentifier') } });
    expect(await agent.order('*.example.org')).toMatchObject({ status: 400, json: { type: acme('rejectedIdentifier') } });
    expect(await agent.order()).toMatchObject({ status: 400, json: { type: acme('malformed') } });
    expect(await agent.order(...Array.from({ length: 101 }, (_, index) => `h${index}.localhost`))).toMatchObject({
      status: 400,
      json: { type: acme('malformed') },
    });
    expect((await agent.order(...Array.from({ length: 100 }, (_, index) => `h${index}.localhost`))).status).toBe(201);
    expect((await agent.post('/acme/new-order', { identifiers: [{ type: 'email', value: 'a@localhost' }] })).json.type).toBe(
      acme('unsupportedIdentifier'),
    );
    const { json } = await agent.order('only.localhost');
    expect((await agent.post(json.authorizations[0])).json.challenges.map(({ type }: { type: string }) => type)).toEqual(['http-01']);
  });

  test('CA-016 C19 H-01 local names are for private sources and workloads, platform names for the workload that owns the label', async () => {
    const identifiers = (value: string) => ({ identifiers: [{ type: 'dns', value }] });
    const outside = {
      workload: 'proxy',
      headers: {
        'x-platform-caller-service': 'proxy',
        'x-platform-hostname': 'acme.ops.sys.localhost',
        'x-platform-service': 'acme',
        'x-forwarded-for': '203.0.113.9',
      },
    };
    expect(await agent.post('/acme/new-order', identifiers('app.localhost'), outside)).toMatchObject({
      status: 403,
      json: { type: acme('unauthorized') },
    });
    const inside = { ...outside, headers: { ...outside.headers, 'x-forwarded-for': '192.168.7.7' } };
    expect((await agent.post('/acme/new-order', identifiers('app.localhost'), inside)).status).toBe(201);
    for (const name of [
      'auth.ops.sys.localhost',
      '*.ops.sys.localhost',
      'sys.localhost',
      'shop.main.acme.localhost',
      '*.main.acme.localhost',
    ])
      expect(await agent.post('/acme/new-order', identifiers(name))).toMatchObject({ status: 403, json: { type: acme('unauthorized') } });
    expect((await agent.post('/acme/new-order', identifiers('web.ops.sys.localhost'), { workload: 'func' })).status).toBe(403);
    expect((await agent.post('/acme/new-order', identifiers('func.ops.sys.localhost'), { workload: 'func' })).status).toBe(201);
    await world.kv.call('SET', `revoked:cert:${world.thumbprint((await world.certificateOf('stat')).cert)}`, '1');
    expect((await agent.post('/acme/new-order', identifiers('stat.ops.sys.localhost'), { workload: 'stat' })).status).toBe(401);
  });

  test('CA-020 CA-008 an order whose names are of another class by finalize gets no certificate, and ends; leaves last the days that the settings say', async () => {
    const made = await agent.order('moved.lan');
    await agent.prove(made);
    const id = (made.headers['location'] as string).split('/').at(-1) as string;
    await using later = await world.again({ PLATFORM_ACME_LOCAL_DOMAINS: '', PLATFORM_ACME_LEAF_DAYS: '7' });
    const mine = new AcmeAgent(later);
    [mine.keys, mine.kid] = [agent.keys, agent.kid];
    const answer = await mine.post(made.json.finalize, { csr: (await csrFor(['moved.lan'])).der });
    expect(answer).toMatchObject({ status: 400, json: { type: acme('rejectedIdentifier') } });
    expect(world.file(`orders/${id}.json`)).toMatchObject({ classification: 'local', status: 'invalid', certificate_id: null });
    const lasts = async (who: AcmeAgent) => {
      const { validTo } = new X509Certificate((await who.obtain(['lasts.localhost'])).chain);
      return Math.round((Date.parse(validTo) - Date.now()) / 86_400_000);
    };
    expect([await lasts(agent), await lasts(mine)]).toEqual([90, 7]);
  });

  test('G-ACME-04 validity is asked for within bounds, and an authorization can be given up', async () => {
    const at = (days: number) => new Date(world.host.clock.now().getTime() + days * 86_400_000).toISOString();
    const asked = await agent.post('/acme/new-order', { identifiers: [{ type: 'dns', value: 'short.localhost' }], notAfter: at(3) });
    await agent.prove(asked);
    const ended = await agent.post(asked.json.finalize, { csr: (await csrFor(['short.localhost'])).der });
    const leaf = new X509Certificate((await agent.post(ended.json.certificate)).text);
    expect(Math.abs(Date.parse(leaf.validTo) - Date.parse(at(3)))).toBeLessThan(60_000);
    for (const wrong of [{ notAfter: at(-1) }, { notBefore: at(-3) }, { notBefore: 'soon' }, { notAfter: 7 }])
      expect((await agent.post('/acme/new-order', { identifiers: [{ type: 'dns', value: 'x.localhost' }], ...wrong })).json.type).toBe(
        acme('malformed'),
      );
    const given = await agent.order('given.localhost');
    expect((await agent.post(given.json.authorizations[0], { status: 'deactivated' })).json.status).toBe('deactivated');
    expect((await agent.post(given.headers['location'] as string)).json.status).toBe('invalid');
  });
});

describe('after it was issued', () => {
  test('CA-058 CA-068 H-01 it is revoked by its account or its own key, by nobody else, and once', async () => {
    const [{ chain }, second] = [await agent.obtain(['rev.localhost']), await agent.obtain(['rev2.localhost'])];
    const stranger = await AcmeAgent.of(world);
    const body = { certificate: der(chain), reason: 1 };
    expect(await stranger.post('/acme/revoke-cert', body)).toMatchObject({ status: 403, json: { type: acme('unauthorized') } });
    expect(await agent.post('/acme/revoke-cert', { ...body, reason: 7 })).toMatchObject({
      status: 400,
      json: { type: acme('badRevocationReason') },
    });
    expect(await agent.post('/acme/revoke-cert', { certificate: 'AAAA' })).toMatchObject({
      status: 400,
      json: { type: acme('malformed') },
    });
    expect((await agent.post('/acme/revoke-cert', body)).status).toBe(200);
    expect(await agent.post('/acme/revoke-cert', body)).toMatchObject({ status: 400, json: { type: acme('alreadyRevoked') } });
    const own = new AcmeAgent(world);
    own.keys = { privateKey: KeyObject.from(second.csr.keys.privateKey), publicKey: KeyObject.from(second.csr.keys.publicKey) };
    expect((await own.post('/acme/revoke-cert', { certificate: der(second.chain) }, { header: { jwk: jwkOf(own.keys) } })).status).toBe(
      200,
    );
    for (const revoked of [chain, second.chain]) expect(await world.kv.call('EXISTS', `revoked:cert:${world.thumbprint(revoked)}`)).toBe(1);
    const told = () =>
      world.host.bus
        .filter(({ event_type }) => event_type === 'platform:acme:certificate:revoked')
        .map(({ payload }) => payload['domain'])
        .filter(domain => domain === 'rev.localhost' || domain === 'rev2.localhost');
    await expect.poll(told).toEqual(['rev.localhost', 'rev2.localhost']);
    const root = world.stores.authority.classical.files.rootCertificate;
    const wrong = new AcmeAgent(world);
    wrong.keys = {
      privateKey: createPrivateKey(world.stores.authority.classical.files.rootKey),
      publicKey: new X509Certificate(root).publicKey,
    };
    expect((await wrong.post('/acme/revoke-cert', { certificate: der(root) }, { header: { jwk: jwkOf(wrong.keys) } })).status).toBe(404);
  });

  test('G-ACME-03 renewal information says two thirds of its life, and at once when it was revoked; an order can say what it replaces', async () => {
    const { chain } = await agent.obtain(['renew.localhost']);
    const leaf = new x509.X509Certificate(chain);
    const issuer = leaf.extensions.find(extension => extension instanceof x509.AuthorityKeyIdentifierExtension)?.keyId as string;
    const certid = `${Buffer.from(issuer, 'hex').toString('base64url')}.${Buffer.from(leaf.serialNumber, 'hex').toString('base64url')}`;
    const info = async () =>
      (await world.host.fetch(`/acme/renewal-info/${certid}`)).json as { suggestedWindow: { start: string; end: string } };
    const { start, end } = (await info()).suggestedWindow;
    const life = leaf.notAfter.getTime() - leaf.notBefore.getTime();
    expect([Date.parse(start), Date.parse(end) > Date.parse(start)]).toEqual([Math.round(leaf.notBefore.getTime() + (life * 2) / 3), true]);
    const identifiers = [{ type: 'dns', value: 'renew.localhost' }];
    expect((await agent.post('/acme/new-order', { identifiers, replaces: certid })).json.replaces).toBe(certid);
    expect(await agent.post('/acme/new-order', { identifiers, replaces: certid })).toMatchObject({
      status: 409,
      json: { type: acme('alreadyReplaced') },
    });
    await agent.post('/acme/revoke-cert', { certificate: der(chain) });
    expect(Date.parse((await info()).suggestedWindow.end)).toBeLessThan(world.host.clock.now().getTime());
    expect((await world.host.fetch('/acme/renewal-info/AAAA.AAAA')).status).toBe(404);
  });
});
