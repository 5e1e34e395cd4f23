import 'reflect-metadata';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AcmeAgent, type Alg, jwkOf, keyPair, ORIGIN, signedBody } from './fixtures/acme-agent.ts';
import { World } from './fixtures/world.ts';

let world: World;
let agent: AcmeAgent;
beforeAll(async () => {
  world = await World.start({ PLATFORM_ACME_LOCAL_DOMAINS: 'lan' });
  agent = await AcmeAgent.of(world);
});
afterAll(() => world[Symbol.asyncDispose]());

const acme = (name: string) => `urn:ietf:params:acme:error:${name}`;

describe('the resources', () => {
  test('CA-060 CA-099 the directory is public, and names every place under /acme', async () => {
    const { status, json, headers } = await world.host.fetch('/acme/directory');
    expect([status, json, headers['link']]).toEqual([
      200,
      {
        newNonce: `${ORIGIN}/acme/new-nonce`,
        newAccount: `${ORIGIN}/acme/new-account`,
        newOrder: `${ORIGIN}/acme/new-order`,
        revokeCert: `${ORIGIN}/acme/revoke-cert`,
        keyChange: `${ORIGIN}/acme/key-change`,
        renewalInfo: `${ORIGIN}/acme/renewal-info`,
        meta: { website: ORIGIN, externalAccountRequired: false },
      },
      `<${ORIGIN}/acme/directory>;rel="index"`,
    ]);
    expect(await world.host.fetch('/acme/directory', { method: 'DELETE' })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
      json: { type: acme('malformed') },
    });
    const paths = Object.keys((await world.host.fetch('/openapi.json')).json['paths'] as object);
    expect(paths.filter(path => !/^\/(v1|acme|\.well-known)\//.test(path))).toEqual(['/openapi.json'].filter(path => paths.includes(path)));
  });

  test('CA-061 CA-062 CA-080 nonces are given to anybody, and each is good for one request', async () => {
    const [head, got] = [await world.host.fetch('/acme/new-nonce', { method: 'HEAD' }), await world.host.fetch('/acme/new-nonce')];
    expect([head.status, got.status, head.headers['cache-control']]).toEqual([200, 204, 'no-store']);
    const nonce = got.headers['replay-nonce'] as string;
    expect(nonce).not.toBe(head.headers['replay-nonce']);
    expect((await agent.post(agent.kid, undefined, { nonce })).status).toBe(200);
    const again = await agent.post(agent.kid, undefined, { nonce });
    expect(again).toMatchObject({ status: 400, json: { type: acme('badNonce') } });
    // The refusal brings the next one.
    expect((await agent.post(agent.kid, undefined, { nonce: again.headers['replay-nonce'] as string })).status).toBe(200);
    expect((await agent.post(agent.kid, undefined, { nonce: 'AAAAAAAAAAAAAAAAAAAAAAAA' })).status).toBe(400);
  });

  test.each<Alg>(['ES256', 'ES384', 'RS256', 'EdDSA', 'ML-DSA-65'])('CA-080 CA-063 G-ACME-03 an account may sign with %s', async alg => {
    const mine = new AcmeAgent(world, alg);
    expect(await mine.register()).toMatchObject({ status: 201, json: { status: 'valid', orders: `${mine.kid}/orders` } });
    expect((await mine.order('app.localhost')).status).toBe(201);
  });

  test('G-ACME-03 what is not a JWS of ours is refused by its name, always with the next nonce', async () => {
    const header = async (more: object = {}) => ({ alg: 'ES256', nonce: await agent.nonce(), url: agent.kid, kid: agent.kid, ...more });
    const key = agent.keys.privateKey;
    const path = agent.kid.replace(ORIGIN, '');
    const good = await signedBody(undefined, await header(), key);
    const other = keyPair('ES256');
    const cases: [unknown, number, string, string?][] = [
      [good, 415, 'malformed', 'application/json'],
      ['{', 400, 'malformed'],
      [{ ...good, header: { x: 1 } }, 400, 'malformed'],
      [{ protected: good.protected, payload: good.payload }, 400, 'malformed'],
      [{ ...good, signature: `${good.signature}=` }, 400, 'malformed'],
      [await signedBody(undefined, await header({ alg: 'ES384' }), keyPair('ES384').privateKey), 400, 'malformed'],
      [await signedBody(undefined, await header(), other.privateKey), 400, 'malformed'],
      [
        { ...good, protected: Buffer.from(JSON.stringify(await header({ alg: 'none' }))).toString('base64url') },
        400,
        'badSignatureAlgorithm',
      ],
      [
        { ...good, protected: Buffer.from(JSON.stringify(await header({ alg: 'HS256' }))).toString('base64url') },
        400,
        'badSignatureAlgorithm',
      ],
      [{ ...good, protected: Buffer.from(JSON.stringify(await header({ crit: ['x'], x: 1 }))).toString('base64url') }, 400, 'malformed'],
      [await signedBody(undefined, await header({ jwk: jwkOf(agent.keys) }), key), 400, 'malformed'],
      [await signedBody(undefined, await header({ url: `${ORIGIN}/acme/new-order` }), key), 401, 'unauthorized'],
      [
        await signedBody(undefined, await header({ kid: `${ORIGIN}/acme/account/018f0000-0000-7000-8000-00000000dead` }), key),
        400,
        'accountDoesNotExist',
      ],
      [
        await signedBody(undefined, { ...(await header()), kid: undefined, jwk: { ...jwkOf(other), d: 'AA' } }, other.privateKey),
        400,
        'badPublicKey',
      ],
      ['x'.repeat(140_000), 413, 'malformed'],
    ];
    for (const [body, status, type, contentType] of cases) {
      const answer = await agent.raw(path, body, contentType ? { contentType } : {});
      expect([answer.status, answer.json.type, typeof answer.headers['replay-nonce'], answer.headers['content-type']]).toEqual([
        status,
        acme(type),
        'string',
        'application/problem+json',
      ]);
    }
    expect((await agent.raw(path, good)).status).toBe(200);
    const small = keyPair('RS256');
    const weak = { ...jwkOf(small), n: 'zzzz' };
    expect(
      await agent.raw(
        '/acme/new-account',
        await signedBody({}, { alg: 'RS256', nonce: await agent.nonce(), url: `${ORIGIN}/acme/new-account`, jwk: weak }, small.privateKey),
      ),
    ).toMatchObject({
      status: 400,
      json: { type: acme('badPublicKey') },
    });
  });
});

describe('accounts', () => {
  test('CA-063 CA-049 CA-052 an account is made once for a key, found again, and kept as a file', async () => {
    const mine = new AcmeAgent(world);
    expect(await mine.register({ onlyReturnExisting: true })).toMatchObject({ status: 400, json: { type: acme('accountDoesNotExist') } });
    const made = await mine.register({ contact: ['mailto:ops@example.org'], termsOfServiceAgreed: true });
    expect(made).toMatchObject({ status: 201, json: { status: 'valid', contact: ['mailto:ops@example.org'] } });
    const found = await mine.register({ onlyReturnExisting: true });
    expect([found.status, found.headers['location']]).toEqual([200, made.headers['location']]);
    const id = mine.kid.split('/').at(-1) as string;
    expect(world.file(`accounts/${id}.json`)).toMatchObject({ account_id: id, status: 'valid', jwk: { kty: 'EC' } });
    await expect
      .poll(() =>
        world.host.bus.some(({ event_type, payload }) => event_type === 'platform:acme:account:created' && payload['account_id'] === id),
      )
      .toBe(true);
  });

  test('G-ACME-03 contacts change, orders are listed, nobody touches another one’s account, and an ended account signs nothing', async () => {
    const mine = await AcmeAgent.of(world);
    expect((await mine.post(mine.kid, { contact: ['mailto:a@example.org'] })).json.contact).toEqual(['mailto:a@example.org']);
    expect((await mine.post(mine.kid, { contact: ['tel:+1'] })).json.type).toBe(acme('unsupportedContact'));
    expect((await mine.post(mine.kid, { contact: ['mailto:a@example.org?cc=x'] })).json.type).toBe(acme('invalidContact'));
    const { headers } = await mine.order('listed.localhost');
    expect((await mine.post(`${mine.kid}/orders`)).json).toEqual({ orders: [headers['location']] });
    expect(await agent.post(mine.kid)).toMatchObject({ status: 403, json: { type: acme('unauthorized') } });
    expect(await agent.post(headers['location'] as string)).toMatchObject({ status: 403, json: { type: acme('unauthorized') } });
    const nowhere = (headers['location'] as string).replace(/[^/]+$/, '01900000-0000-7000-8000-0000000000aa');
    expect(await mine.post(nowhere)).toMatchObject({ status: 404, json: { type: acme('malformed'), code: 'order_not_found' } });
    expect((await mine.post(mine.kid, { status: 'deactivated' })).json.status).toBe('deactivated');
    expect(await mine.order('late.localhost')).toMatchObject({ status: 401, json: { type: acme('unauthorized') } });
    expect(await mine.register()).toMatchObject({ status: 401, json: { type: acme('unauthorized') } });
  });

  test('what fails inside is serverInternal, with the next nonce and no word of the cause', async () => {
    const accounts = join(world.host.stores.dataDir, 'accounts');
    renameSync(accounts, `${accounts}.away`);
    writeFileSync(accounts, 'no folder');
    try {
      const answer = await new AcmeAgent(world).register();
      expect(answer).toMatchObject({ status: 500, json: { type: acme('serverInternal'), code: 'server_internal' } });
      expect(answer.headers['replay-nonce']).toEqual(expect.any(String));
      expect(JSON.stringify(answer.json)).not.toMatch(/ENOTDIR|accounts/);
    } finally {
      rmSync(accounts);
      renameSync(`${accounts}.away`, accounts);
    }
    expect((await new AcmeAgent(world).register()).status).toBe(201);
  });

  test('G-ACME-03 a key is changed by a request that both keys signed; a key that is taken is 409', async () => {
    const mine = await AcmeAgent.of(world);
    const next = keyPair('EdDSA');
    const url = `${ORIGIN}/acme/key-change`;
    const inner = (said: object, header: object = {}, key = next.privateKey) =>
      signedBody(said, { alg: 'EdDSA', url, jwk: jwkOf(next), ...header }, key);
    const said = { account: mine.kid, oldKey: jwkOf(mine.keys) };
    for (const wrong of [
      await inner({ ...said, account: agent.kid }),
      await inner({ ...said, oldKey: jwkOf(next) }),
      await inner(said, {}, keyPair('EdDSA').privateKey),
      await inner(said, { nonce: 'x' }),
    ])
      expect((await mine.post('/acme/key-change', wrong)).json.type).toBe(acme('malformed'));
    const taken = await signedBody(said, { alg: 'ES256', url, jwk: jwkOf(agent.keys) }, agent.keys.privateKey);
    expect(await mine.post('/acme/key-change', taken)).toMatchObject({ status: 409, headers: { location: agent.kid } });
    expect((await mine.post('/acme/key-change', await inner(said))).status).toBe(200);
    expect((await mine.post(mine.kid)).json.type).toBe(acme('malformed'));
    [mine.alg, mine.keys] = ['EdDSA', next];
    expect((await mine.post(mine.kid)).status).toBe(200);
  });
});
