import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeySeeds } from '@platform/sdk';

const signed = promisify<null, Buffer, KeyObject, Buffer>(sign);
const checked = promisify<null, Buffer, KeyObject, Buffer, boolean>(verify);
const SEED_BYTES = 32;

interface Key {
  readonly id: string;
  readonly private: KeyObject;
  readonly public: KeyObject;
}

/** ML-DSA-65 keys of the log's head (FIPS 204), one for each line of their secret: the last signs, those before only prove. */
export class LogKeys {
  readonly #keys: readonly Key[];

  private constructor(keys: readonly Key[]) {
    this.#keys = keys;
  }

  static async read(seeds: KeySeeds): Promise<LogKeys> {
    const text = await seeds.read();
    const lines = Buffer.from(text ?? [])
      .toString('utf8')
      .split('\n')
      .flatMap(line => line.trim() || []);
    text?.fill(0);
    const bytes = lines.map(line => Buffer.from(line, 'base64'));
    if (bytes.length === 0 || bytes.some(({ length }) => length !== SEED_BYTES))
      throw new Error('The key of the log of issued certificates is one line of 32 bytes in base64, or several.');
    return new LogKeys(
      bytes.map(seed => {
        const key = createPrivateKey({ key: seed, format: 'raw-seed', asymmetricKeyType: 'ml-dsa-65' } as never);
        const shown = createPublicKey(key);
        const id = createHash('sha256')
          .update(shown.export({ type: 'spki', format: 'der' }))
          .digest('hex')
          .slice(0, 32);
        return { id, private: key, public: shown };
      }),
    );
  }

  get current(): string {
    return (this.#keys.at(-1) as Key).id;
  }

  /** Beside the event loop: a signature takes as long as a request. */
  async sign(text: Buffer): Promise<{ key_id: string; signature: string }> {
    const key = this.#keys.at(-1) as Key;
    return { key_id: key.id, signature: (await signed(null, text, key.private)).toString('base64') };
  }

  async proves(text: Buffer, { key_id: id, signature }: { readonly key_id: string; readonly signature: string }): Promise<boolean> {
    const key = this.#keys.find(known => known.id === id);
    return key !== undefined && checked(null, text, key.public, Buffer.from(signature, 'base64'));
  }
}
