import type { AnyContract, PlatformContext } from '@platform/sdk';
import type { SecretChain } from './secret-chain.ts';

/** What a plugin may do with secrets that are not its keys: read one. */
export const secretsPort = (chain: Pick<SecretChain, 'read'>): PlatformContext<AnyContract>['secrets'] => ({
  read: reference => chain.read(reference),
});
