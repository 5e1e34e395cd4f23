import { type Static, Type } from '@platform/sdk/contract';
import { AccountRecovery, RecoveryWaitHours } from './recovery.ts';
import { WalletSignIn } from './wallet.ts';

/** How the people of an environment sign in. Titles and descriptions are what an administrator reads beside the choice. */
export const SignInSettings = Type.Object({
  verify_email: Type.Boolean({
    title: 'E-mail addresses are confirmed first',
    description: 'Nobody signs in before the address of the account is confirmed by a mail.',
  }),
  passkeys: Type.Boolean({ title: 'Passkeys', description: 'People may add passkeys to their account and sign in with them.' }),
  wallet_sign_in: {
    ...WalletSignIn,
    title: 'Wallets',
    description: 'Sign-in with Ethereum wallets: those that people linked to their account, or any, where a new one opens an account.',
  },
  account_recovery: {
    ...AccountRecovery,
    title: 'Account recovery',
    description:
      'For people who lost their second factor: after a wait, with the approval of an administrator, or both. A recovery that is under way is judged by what is chosen here at each of its steps.',
  },
  recovery_wait_hours: {
    ...RecoveryWaitHours,
    title: 'Hours a recovery waits',
    description: 'From 24 to 720, where it waits. In this time the owner of the account can end it by any of its mails.',
  },
});
export type SignInSettings = Static<typeof SignInSettings>;
