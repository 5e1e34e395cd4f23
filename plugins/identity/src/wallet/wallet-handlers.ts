import type { walletRoutes } from '../../contract/routes/wallet-routes.ts';
import type { Handlers } from '../context.ts';
import type { OwnWallets } from './own-wallets.ts';
import type { WalletSignIn } from './wallet-sign-in.ts';

/** Routes of wallets to who answers them. */
export const walletHandlers = ({ own, signIn }: { own: OwnWallets; signIn: WalletSignIn }): Handlers<keyof typeof walletRoutes> => ({
  walletChallenge: request => signIn.challenge(request),
  walletVerify: request => signIn.verify(request),
  ownWallets: request => own.list(request),
  beginWalletLink: request => own.begin(request),
  linkWallet: request => own.link(request),
  unlinkWallet: request => own.unlink(request),
});
