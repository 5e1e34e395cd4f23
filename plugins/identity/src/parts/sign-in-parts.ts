import { PasswordRenewal } from '../account/password/password-renewal.ts';
import { OwnPasskeys } from '../passkeys/own-passkeys.ts';
import { PasskeyChallenges } from '../passkeys/passkey-challenges.ts';
import { PasskeySignIn } from '../passkeys/passkey-sign-in.ts';
import { SignIn } from '../sign-in/sign-in.ts';
import { SsoSignIn } from '../sso/sso-sign-in.ts';
import { OwnWallets } from '../wallet/own-wallets.ts';
import { WalletChallenges } from '../wallet/wallet-challenges.ts';
import { WalletSignIn } from '../wallet/wallet-sign-in.ts';
import type { Ctx } from '../context.ts';
import type { Made } from './page-parts.ts';

/** The ways to sign in: by password, passkey, wallet, or somebody else's sign-in. */
export function signInParts(ctx: Ctx, made: Made) {
  const {
    arrival,
    authorizations,
    box,
    browser,
    change,
    mailbox,
    means,
    passwords,
    providers,
    realms,
    sessions,
    shared,
    upstream,
    visits,
  } = made;
  const { attempts } = shared;
  const renewal = ctx.own(new PasswordRenewal(ctx, passwords));
  const passkeys = new PasskeyChallenges(ctx);
  const wallets = new WalletChallenges(ctx, { realms });
  return {
    passkeys: {
      own: new OwnPasskeys(ctx, { challenges: passkeys, mailbox, means, realms, visits }),
      signIn: new PasskeySignIn(ctx, { ...shared, arrival, challenges: passkeys }),
    },
    signIn: new SignIn(ctx, { ...shared, arrival, authorizations, browser, change, renewal, sessions }),
    sso: { providers, signIn: new SsoSignIn(ctx, { ...shared, arrival, box, protocol: upstream, providers }) },
    wallets: {
      own: new OwnWallets(ctx, { attempts, challenges: wallets, mailbox, means, visits }),
      signIn: new WalletSignIn(ctx, { ...shared, arrival, challenges: wallets }),
    },
  };
}
