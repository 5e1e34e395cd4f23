import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { createSecureContext, type SecureContext } from 'node:tls';
import * as x509 from '@peculiar/x509';
import type { Ctx } from './context.ts';

interface Held {
  readonly context: SecureContext;
  readonly renewAt: number;
}

const NEGATIVE_MS = 30_000;
const LIMIT = 1_000;
const makeKeys = promisify(generateKeyPair);

/** Browser-facing leafs, P-256 by name (house 24, TLS): one fetch per name at a time, refreshed at two thirds of life, refusals remembered 30 s (G-K-23, H-04). */
export class EdgeCertificates {
  readonly #ctx: Ctx;
  readonly #held = new Map<string, Held>();
  readonly #fetching = new Map<string, Promise<SecureContext | undefined>>();
  readonly #refused = new Map<string, number>();

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async contextFor(name: string): Promise<SecureContext | undefined> {
    const now = this.#ctx.clock.now().getTime();
    const held = this.#held.get(name);
    if (held && held.renewAt > now) return held.context;
    if ((this.#refused.get(name) ?? 0) > now) return held?.context;
    let fetching = this.#fetching.get(name);
    if (!fetching) {
      fetching = this.#fetch(name).finally(() => this.#fetching.delete(name));
      this.#fetching.set(name, fetching);
    }
    // An old certificate serves while its successor is on the way.
    return held ? held.context : fetching;
  }

  async #fetch(name: string): Promise<SecureContext | undefined> {
    try {
      const keys = await makeKeys('ec', { namedCurve: 'P-256' });
      const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
      const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
      const pair = {
        privateKey: keys.privateKey.toCryptoKey(algorithm, true, ['sign']),
        publicKey: keys.publicKey.toCryptoKey(algorithm, true, ['verify']),
      } as CryptoKeyPair;
      const csr = await x509.Pkcs10CertificateRequestGenerator.create({ name: `CN=${name.slice(0, 64)}`, keys: pair, signingAlgorithm: algorithm });
      const answer = await this.#ctx.services.authority.fetchCertificate({ body: { domain: name, csr: csr.toString('pem') } });
      const now = this.#ctx.clock.now().getTime();
      const context = createSecureContext({ key, cert: answer.chain_pem, minVersion: 'TLSv1.2', ecdhCurve: 'X25519MLKEM768:X25519:P-256' });
      this.#held.set(name, { context, renewAt: now + ((Date.parse(answer.not_after) - now) * 2) / 3 });
      if (this.#held.size > LIMIT) this.#held.delete(this.#held.keys().next().value as string);
      this.#refused.delete(name);
      return context;
    } catch (error) {
      this.#ctx.log.warn({ host: name, err: error }, 'no certificate for a host');
      this.#refused.set(name, this.#ctx.clock.now().getTime() + NEGATIVE_MS);
      if (this.#refused.size > LIMIT) this.#refused.delete(this.#refused.keys().next().value as string);
      return this.#held.get(name)?.context;
    }
  }
}
