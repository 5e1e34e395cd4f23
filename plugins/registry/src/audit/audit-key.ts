import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { Ctx } from '../context.ts';

/** What is signed about a chain: that it stood so, or that it begins behind here. */
export interface Statement {
  readonly kind: 'anchor' | 'cut';
  readonly env_id: string;
  readonly position: number;
  /** Position of the anchor before it: none can be taken out from between. */
  readonly previous: number;
  readonly audit_id: string;
  readonly hash: string;
  /** Milliseconds. */
  readonly at: number;
}

const signed = promisify<null, Buffer, KeyObject, Buffer>(sign);
const encode = ({ kind, env_id, position, previous, audit_id, hash, at }: Statement) => Buffer.from(['platform audit', kind, env_id, position, previous, audit_id, hash, at].join('\n'));

/** The registry's ML-DSA-65 key for the trail (FIPS 204). It comes from the secrets chain and is never in the database: whoever holds every row can forge none. */
export class AuditKey {
  readonly id: string;
  readonly publicKey: string;
  readonly #private: KeyObject;
  readonly #public: KeyObject;

  constructor(seed: Uint8Array) {
    this.#private = createPrivateKey({ key: Buffer.from(seed), format: 'raw-seed', asymmetricKeyType: 'ml-dsa-65' } as never);
    this.#public = createPublicKey(this.#private);
    const der = this.#public.export({ type: 'spki', format: 'der' });
    this.publicKey = this.#public.export({ type: 'spki', format: 'pem' }) as string;
    this.id = createHash('sha256').update(der).digest('hex').slice(0, 32);
  }

  /** From the configured secret. Without it nothing starts: a trail that nobody signs would look like one that is. */
  static async open(ctx: Ctx): Promise<AuditKey> {
    const secret = await ctx.secrets.read(ctx.config.auditKeyRef);
    const seed = secret && Buffer.from(Buffer.from(secret).toString('utf8').trim(), 'base64');
    secret?.fill(0);
    if (seed?.length !== 32) throw new Error('PLATFORM_SYS_AUDIT_KEY_REF names no readable secret of 32 bytes in base64');
    try {
      return new AuditKey(seed);
    } finally {
      seed.fill(0);
    }
  }

  /** Beside the event loop: a signature takes as long as a request. */
  async sign(statement: Statement): Promise<string> {
    return (await signed(null, encode(statement), this.#private)).toString('hex');
  }

  verify(statement: Statement, signature: string): boolean {
    return verify(null, encode(statement), this.#public, Buffer.from(signature, 'hex'));
  }
}
