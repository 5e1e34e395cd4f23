import type { AnyContract, Context } from '@platform/sdk';
import { SealedBox } from './sealed-box.ts';
import { type SecretChain, withSecret } from './secret-chain.ts';

const decoded = (base64: string): Buffer => Buffer.from(base64.trim(), 'base64');

/** What a plugin may do with secrets: read one, and seal under one. */
export function secretsPort(chain: Pick<SecretChain, 'read'>, service: string): Context<AnyContract>['secrets'] {
  return {
    read: reference => chain.read(reference),
    box: async reference => {
      const secret = await chain.read(reference);
      if (!secret) throw new Error(`${service}: the reference of the key it seals with names no readable secret of 32 bytes in base64`);
      return withSecret(secret, async value => new SealedBox([decoded(Buffer.from(value).toString('utf8'))]));
    },
    boxOf: (current, previous = []) => new SealedBox([decoded(current), ...previous.map(decoded)]),
  };
}
