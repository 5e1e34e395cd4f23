import type { AnyContract, Context } from '@platform/sdk';
import { SealedBox } from './sealed-box.ts';
import { type SecretChain, withSecret } from './secret-chain.ts';

const decoded = (base64: string): Buffer => Buffer.from(base64.trim(), 'base64');

/** What a plugin may do with secrets: read one, and seal under one. */
export function secretsPort(chain: Pick<SecretChain, 'read'>, service: string): Context<AnyContract>['secrets'] {
  return {
    read: reference => chain.read(reference),
    box: async (reference, previous = []) => {
      const key = async (each: string) => {
        const secret = await chain.read(each);
        if (!secret) throw new Error(`${service}: the reference of a key it seals with names no readable secret of 32 bytes in base64`);
        return withSecret(secret, async value => decoded(Buffer.from(value).toString('utf8')));
      };
      return new SealedBox([await key(reference), ...(await Promise.all(previous.map(key)))]);
    },
    boxOf: (current, previous = []) => new SealedBox([decoded(current), ...previous.map(decoded)]),
  };
}
