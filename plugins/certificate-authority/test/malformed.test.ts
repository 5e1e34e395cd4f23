import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCsr, BadCsr } from '@platform/testing';
import { BadJws, readBytes, readJws, readKey, verifyJws } from '../src/acme/signed-request.ts';
import { thumbprintOfChain } from '../src/record/log-verification.ts';
import { AcmeAgent, csrFor, jwkOf, keyPair, signedBody } from './fixtures/acme-agent.ts';
import { World } from './fixtures/world.ts';

let world: World;
let agent: AcmeAgent;
beforeAll(async () => {
  world = await World.start();
  agent = await AcmeAgent.of(world);
});
afterAll(() => world[Symbol.asyncDispose]());

/** One byte changed, cut off, doubled or put in, at places that are the same every time. */
function* damaged(whole: Buffer, count: number): Generator<Buffer> {
  let state = 7;
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % below;
  };
  for (let index = 0; index < count; index += 1) {
    const at = next(whole.length);
    const copy = Buffer.from(whole);
    switch (index % 5) {
      case 0:
        // Never the byte that was there: an undamaged certificate is revoked, and rightly.
        copy[at] = ((copy[at] as number) + 1 + next(255)) % 256;
        yield copy;
        break;
      case 1:
        yield copy.subarray(0, at);
        break;
      case 2:
        yield Buffer.concat([copy.subarray(0, at), copy.subarray(Math.max(0, at - 8))]);
        break;
      case 3:
        // A length that promises more than there is.
        copy[Math.min(at, 12)] = 0x84;
        yield copy;
        break;
      default:
        yield Buffer.concat([copy.subarray(0, at), Buffer.from([0x30, 0x80, 0x00, 0xff]), copy.subarray(at)]);
    }
  }
}

describe('malformed input', () => {
  test.each(['classical', 'pq', 'rsa'] as const)(
    'G-ACME-03 1,000 damaged %s requests in DER and in PEM are each refused in words, or still whole',
    async kind => {
      const whole = Buffer.from((await csrFor(['a.localhost', '10.0.0.1'], kind)).der, 'base64url');
      for (const bytes of damaged(whole, 1_000)) {
        const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
        for (const csr of [bytes, pem]) {
          const read = await readCsr(csr).catch((error: unknown) => error);
          if (read instanceof Error && !(read instanceof BadCsr))
            throw new Error(`${read.name}: ${read.message} for ${bytes.toString('hex')}`, { cause: read });
        }
      }
    },
  );

  test('G-ACME-03 2,000 damaged and thirty wrong JWS are each a BadJws, or still whole', async () => {
    const key = keyPair('ES256');
    const good = await signedBody({ csr: 'AAAA' }, { alg: 'ES256', nonce: 'n', url: 'https://x/', jwk: jwkOf(key) }, key.privateKey);
    const judge = async (value: unknown) => {
      try {
        const jws = readJws(value);
        await verifyJws(jws, (await readKey(jws.header.jwk)).key);
        return 'whole';
      } catch (error) {
        if (!(error instanceof BadJws)) throw error;
        return 'refused';
      }
    };
    expect(await judge(good)).toBe('whole');
    const found = { whole: 0, refused: 0 };
    for (const bytes of damaged(Buffer.from(JSON.stringify(good)), 2_000)) {
      let value: unknown = bytes.toString('latin1');
      try {
        value = JSON.parse(bytes.toString('utf8'));
      } catch {
        // The text itself then.
      }
      found[await judge(value)] += 1;
    }
    const header = (of: unknown) => ({
      ...good,
      protected: Buffer.from(typeof of === 'string' ? of : JSON.stringify(of)).toString('base64url'),
    });
    const jwk = jwkOf(key);
    const wrong: unknown[] = [
      null,
      1,
      'x',
      [],
      [good],
      {},
      { ...good, payload: 1 },
      { ...good, signatures: [] },
      header('null'),
      header('[]'),
      header('{'),
      header({}),
      header({ alg: 'ES256' }),
      header({ alg: 'ES256', jwk: null }),
    ];
    for (const each of [
      { ...jwk, x: '' },
      { ...jwk, x: 'AA' },
      { ...jwk, crv: 'P-1' },
      { ...jwk, kty: 'oct' },
      { kty: '__proto__' },
      { kty: 'AKP', alg: 'ML-DSA-65', pub: 'AA' },
      { kty: 'AKP', alg: 'x', pub: 'AA' },
      { kty: 'RSA', n: 'AQAB', e: 'AQAB' },
      { kty: 'OKP', crv: 'Ed25519', x: 'AA' },
      { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) },
      'x',
      7,
    ])
      wrong.push(header({ alg: 'ES256', jwk: each }));
    for (const value of wrong) expect(await judge(value)).toBe('refused');
    expect(found.refused).toBeGreaterThan(1_500);
    for (const text of ['', ' ', 'A', 'AA==', 'AAA\n', '****', 7, null, 'A'.repeat(200_000)])
      expect(() => readBytes(text, 'csr')).toThrow(BadJws);
  });

  test('CA-058 300 damaged certificates handed in to be revoked are each an answer of 4xx, and the service goes on', {
    timeout: 60_000,
  }, async () => {
    const { chain } = await agent.obtain(['corpus.localhost']);
    const whole = new X509Certificate(chain).raw;
    let nonce = await agent.nonce();
    for (const bytes of damaged(whole, 300)) {
      if (bytes.length === 0) continue;
      const answer = await agent.post('/acme/revoke-cert', { certificate: bytes.toString('base64url') }, { nonce });
      nonce = answer.headers['replay-nonce'] as string;
      if (answer.status < 400 || answer.status >= 500) throw new Error(`${answer.status} ${answer.text} for ${bytes.toString('hex')}`);
    }
    for (const text of ['', 'x', '-----BEGIN CERTIFICATE-----', '-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----'])
      expect(thumbprintOfChain(text)).toBeUndefined();
    expect((await agent.post('/acme/revoke-cert', { certificate: whole.toString('base64url') })).status).toBe(200);
  });
});
