import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';

const signed = promisify<null, Buffer, KeyObject, Buffer>(sign);
const SEED_BYTES = 32;

/**
 * One ML-DSA-65 key of the trail (FIPS 204). Its seed comes from the secrets chain and is never in the database: whoever holds every row
 * can forge none.
 */
export class AuditKey {
  readonly id: string;
  readonly publicKey: string;
  readonly #private: KeyObject;

  constructor(seed: Uint8Array) {
    this.#private = createPrivateKey({ key: Buffer.from(seed), format: 'raw-seed', asymmetricKeyType: 'ml-dsa-65' } as never);
    this.publicKey = createPublicKey(this.#private).export({ type: 'spki', format: 'pem' }) as string;
    this.id = keyIdOf(this.publicKey);
  }

  /** One key for every line of the secret, or none where a line is no seed. */
  static read(secret: Uint8Array): AuditKey[] {
    const lines = Buffer.from(secret)
      .toString('utf8')
      .split('\n')
      .flatMap(line => line.trim() || []);
    const seeds = lines.map(line => Buffer.from(line, 'base64'));
    try {
      return seeds.every(({ length }) => length === SEED_BYTES) ? seeds.map(seed => new AuditKey(seed)) : [];
    } finally {
      for (const seed of seeds) seed.fill(0);
    }
  }

  /** Beside the event loop: a signature takes as long as a request. */
  async sign(text: Buffer): Promise<string> {
    return (await signed(null, text, this.#private)).toString('hex');
  }
}

/** Name of a public key, from what it is. */
export const keyIdOf = (pem: string): string => fingerprintOf(createPublicKey(pem)).slice(0, 32);
export const fingerprintOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');
