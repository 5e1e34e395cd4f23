import type { SealedPlace } from '@platform/sdk';
import { purposeOf as authenticator } from '../mfa/second-factor.ts';
import { purposeOf as recovery } from '../recovery/recovery-record.ts';
import { purposeOf as provider } from '../sso/upstream-providers.ts';
import { SIGNING_KEY } from './signing-keys.ts';

/** What lies sealed for long, and is sealed anew when the key changes. What lives for days at most is left to its end. */
export const sealedForLong: readonly SealedPlace[] = [
  { table: 'signing_keys', id: 'kid', type: 'text', column: 'wrapped', purpose: () => SIGNING_KEY },
  { table: 'authenticators', id: 'user_id', column: 'sealed', purpose: authenticator },
  { table: 'upstream_providers', id: 'env_id', column: 'client_secret', purpose: provider },
  { table: 'account_recoveries', id: 'recovery_id', column: 'cancel_sealed', purpose: recovery },
];
