import 'reflect-metadata';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flattenedVerify } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openAuthority } from '@platform/testing';
import { AcmeAgent, type Answered, csrFor } from './fixtures/acme-agent.ts';
import { pebble, Upstream } from './fixtures/upstream.ts';
import { World } from './fixtures/world.ts';

const binaries = pebble();
const outside = mkdtempSync(join(tmpdir(), 'platform-outside-'));
let upstream: Upstream;
let world: World;
let agent: AcmeAgent;
const environment = () => ({
  PLATFORM_ACME_UPSTREAM_DIRECTORY_URL: upstream.directoryUrl,
  PLATFORM_ACME_UPSTREAM_CONTACT: 'ops@example.org',
  PLATFORM_ACME_UPSTREAM_CA_PEM: join(outside, 'root.pem'),
});

beforeAll(async () => {
  if (!binaries) return;
  const { classical } = await openAuthority(outside);
  const leaf = await classical.issue({ commonName: 'localhost', names: ['dns:localhost'], usages: ['server'], days: 1 });
  const root = classical.files.rootCertificate;
  writeFileSync(join(outside, 'root.pem'), root);
  upstream = await Upstream.start(binaries, { chain: leaf.chain, key: leaf.key as string, root });
  world = await World.start(environment());
  upstream.authority = world;
  agent = await AcmeAgent.of(world);
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  rmSync(outside, { recursive: true, force: true });
});
afterEach(() => {
  if (upstream) upstream.door = () => undefined;
});

/** Half of all nonces are refused, two in a row every fourth time: that is a 502, and whoever asks again goes on. */
async function insisting(
  ask: () => Promise<Answered>,
  until: (answer: Answered) => boolean = ({ status }) => status !== 502,
): Promise<Answered> {
  for (const deadline = performance.now() + 40_000; performance.now() < deadline; ) {
    const answer = await ask();
    if (until(answer)) return answer;
  }
  throw new Error('the upstream never took it');
}

async function ready(...names: string[]): Promise<Answered> {
  const order = await insisting(() => agent.order(...names));
  for (const url of order.json.authorizations) {
    const { json } = await agent.post(url);
    await insisting(() => agent.post(json.challenges[0].url, {}));
  }
  await insisting(
    () => agent.post(order.headers['location'] as string),
    ({ json }) => json.status !== 'pending',
  );
  return order;
}

const idOf = (order: Answered) => (order.headers['location'] as string).split('/').at(-1) as string;

describe.skipIf(binaries === undefined)('external orders at a real authority that refuses half of all nonces', () => {
  test('CA-018 CA-066 CA-022 CA-023 CA-026 CA-027 CA-031 CA-056 CA-045 an order goes upstream by a request of our own, is proven over port 80, and its certificate is kept', {
    timeout: 60_000,
  }, async () => {
    const order = await ready('www.example.test', 'shop.example.test');
    expect(order.json).toMatchObject({ classification: 'external' });
    expect((await agent.post(order.headers['location'] as string)).json.status).toBe('ready');
    expect(upstream.challenges).toBeGreaterThanOrEqual(2);
    const mine = await csrFor(['www.example.test', 'shop.example.test']);
    const ended = await insisting(
      () => agent.post(order.json.finalize, { csr: mine.der }),
      ({ json }) => json.status === 'valid',
    );
    const chain = (await agent.post(ended.json.certificate)).text;
    const leaf = new X509Certificate(chain);
    expect([leaf.checkHost('www.example.test'), leaf.checkHost('shop.example.test'), chain.includes('PRIVATE')]).toEqual([
      'www.example.test',
      'shop.example.test',
      false,
    ]);
    const id = ended.json.certificate.split('/').at(-1);
    expect(world.file(`certificates/${id}/meta.json`)).toMatchObject({
      source: 'upstream',
      kind: 'leaf',
      domain: 'www.example.test',
      revoked: false,
    });
    // The key is the service's own, not the caller's, and only its owner reads it.
    const path = join(world.stores.dataDir, 'certificates', id, 'key.pem');
    expect([leaf.publicKey.equals(createPublicKey(world.text(`certificates/${id}/key.pem`))), statSync(path).mode & 0o777]).toEqual([
      true,
      0o600,
    ]);
    const callers = Buffer.from(await crypto.subtle.exportKey('spki', mine.keys.publicKey));
    expect(leaf.publicKey.export({ type: 'spki', format: 'der' }).equals(callers)).toBe(false);
    expect(upstream.seen.some(({ body }) => body.includes(mine.der.slice(0, 60)))).toBe(false);
    expect(await world.host.fetch('/.well-known/acme-challenge/AAAAAAAAAAAAAAAAAAAAAAAA')).toMatchObject({ status: 404 });
  });

  test('CA-024 CA-025 every request upstream is a JWS of the one ES256 account, for its own url and with a nonce of its own; the account names the contact', async () => {
    const posts = upstream.seen.filter(({ body }) => body !== '');
    const account = world.file('upstream-account.json') as { jwk: { kty: string; crv: string }; kid: string };
    const key = createPublicKey({ key: account.jwk as never, format: 'jwk' });
    const nonces = new Set<unknown>();
    for (const { path, contentType, body } of posts) {
      const { protectedHeader, payload } = await flattenedVerify(JSON.parse(body), key);
      expect([contentType, protectedHeader?.alg, protectedHeader?.['url'], 'jwk' in (protectedHeader ?? {})]).toEqual([
        'application/jose+json',
        'ES256',
        upstream.directoryUrl.replace('/dir', path),
        path === '/sign-me-up',
      ]);
      if (path === '/sign-me-up')
        expect(JSON.parse(Buffer.from(payload).toString('utf8'))).toEqual({
          termsOfServiceAgreed: true,
          contact: ['mailto:ops@example.org'],
        });
      nonces.add(protectedHeader?.['nonce']);
    }
    expect([posts.length > 5, nonces.size, account.kid.startsWith(upstream.directoryUrl.replace('/dir', '/my-account/'))]).toEqual([
      true,
      posts.length,
      true,
    ]);
  });

  test('CA-023 CA-057 CA-096 a failure on the way is 502 and keeps what was reached; after a restart the next finalize completes, by the same account', {
    timeout: 60_000,
  }, async () => {
    const order = await ready('late.example.test');
    const csr = await csrFor(['late.example.test']);
    const finalize = (who = agent) => who.post(order.json.finalize, { csr: csr.der });
    upstream.door = path => (path.includes('/finalize') ? 'cut' : undefined);
    expect(await finalize()).toMatchObject({ status: 502, json: { type: 'urn:ietf:params:acme:error:serverInternal' } });
    upstream.door = path => (path.startsWith('/certZ') ? 503 : undefined);
    await insisting(
      finalize,
      () =>
        world.file(`orders/${idOf(order)}.json`)['upstream'] !== undefined &&
        (world.file(`orders/${idOf(order)}.json`)['upstream'] as { certificate?: string }).certificate !== undefined,
    );
    expect(await finalize()).toMatchObject({ status: 502 });
    expect(await agent.post(order.json.finalize, { csr: (await csrFor(['late.example.test'])).der })).toMatchObject({ status: 403 });
    const before = world.file('upstream-account.json');
    upstream.door = () => undefined;
    await using later = await world.again(environment());
    const again = new AcmeAgent(later);
    [again.keys, again.kid] = [agent.keys, agent.kid];
    const ended = await insisting(() => finalize(again));
    expect([ended.json.status, world.file('upstream-account.json')]).toEqual(['valid', before]);
    expect(upstream.seen.filter(({ path }) => path.includes('/finalize')).length).toBeGreaterThan(1);
  });

  test('CA-094 what the upstream refuses is 400 with its own words, and is not tried again', async () => {
    const answer = await insisting(() => agent.order('blocked-domain.example'));
    expect(answer).toMatchObject({
      status: 400,
      json: { type: 'urn:ietf:params:acme:error:rejectedIdentifier', upstream: { type: 'urn:ietf:params:acme:error:rejectedIdentifier' } },
    });
  });

  test('CA-056 a name that cannot be proven ends the order, with the upstream’s reason', { timeout: 60_000 }, async () => {
    upstream.authority = undefined;
    const order = await insisting(() => agent.order('unproven.example.test'));
    const { json } = await agent.post(order.json.authorizations[0]);
    upstream.authority = { host: { fetch: async () => ({ status: 404, text: 'no', headers: {} }) } } as never;
    await insisting(() => agent.post(json.challenges[0].url, {}));
    const ended = await insisting(
      () => agent.post(order.headers['location'] as string),
      answer => answer.json.status !== 'pending',
    );
    upstream.authority = world;
    expect([ended.json.status, ended.json.error.type]).toEqual(['invalid', 'urn:ietf:params:acme:error:unauthorized']);
  });

  test('G-ACME-08 C22 the ingress gets an upstream certificate with its key for an external name; nobody else does', {
    timeout: 60_000,
  }, async () => {
    const body = { domain: 'edge.example.test' };
    const first = await world.listener(body, { workload: 'proxy' });
    expect([first.status, first.headers['retry-after']]).toEqual([202, '1']);
    const found = await insisting(
      async () => (await world.listener(body, { workload: 'proxy' })) as Answered,
      ({ status }) => status === 200,
    );
    expect([found.json.source, new X509Certificate(found.json.chain_pem).publicKey.equals(createPublicKey(found.json.key_pem))]).toEqual([
      'upstream',
      true,
    ]);
    expect((await world.listener(body, { workload: 'func' })).status).toBe(403);
  });
});
