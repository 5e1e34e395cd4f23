import type { AnyContract, Context } from '@platform/sdk';
import type { SecretChain } from './secret-chain.ts';

/** What a plugin may do with secrets that are not its keys: read one. */
export const secretsPort = (chain: Pick<SecretChain, 'read'>): Context<AnyContract>['secrets'] => ({
  read: reference => chain.read(reference),
});
