import { get, post, Type } from '@platform/sdk/contract';
import { ShownAgain } from '../schema/account.ts';
import { LinkedWallet, WalletAddress, WalletChallenge, WalletSignature } from '../schema/wallet.ts';
import { OAuthContext, Signed } from '../schema.ts';
import { challenge, comesToTheSame, worksOnce } from '../idempotency.ts';

const hosted = { public: 'A person signs in here; there is no credential yet' } as const;
const own = { public: 'The sign-in session of the browser is the credential; the handler asks for it' } as const;
const page = ['csrf_mismatch', 'bad_origin', 'realm_not_found'] as const;
const braked = ['rate_limited', 'store_away'] as const;
const limit = 16_384;
const ChallengeId = Type.String({ maxLength: 100 });

/** Signing in with an Ethereum wallet (EIP-4361), and the wallets of the own account (G-AUTH-06). */
export const walletRoutes = {
  walletChallenge: post('/v1/wallet/challenge', {
    summary: 'Ask for a message that a wallet signs to sign in',
    idempotency: challenge,
    gate: hosted,
    limit,
    body: Type.Object({ address: WalletAddress, oauth: Type.Optional(OAuthContext) }),
    returns: WalletChallenge,
    problems: [...page, ...braked, 'wallet_disabled', 'wallet_address_invalid'],
  }),
  walletVerify: post('/v1/wallet/verify', {
    summary: 'Sign in with the signature of a wallet',
    idempotency: worksOnce,
    gate: hosted,
    limit,
    body: Type.Object({ challenge_id: ChallengeId, signature: WalletSignature }),
    returns: Signed,
    problems: [...page, ...braked, 'wallet_disabled', 'wallet_refused', 'wallet_unknown', 'invalid_credentials', 'token_expired'],
    emits: ['platform:auth:user:created'],
  }),
  ownWallets: get('/v1/account/wallets', {
    summary: 'Wallets of the own account',
    gate: own,
    returns: Type.Object({ enabled: Type.Boolean(), items: Type.Array(LinkedWallet) }),
    problems: ['realm_not_found', 'session_required'],
  }),
  beginWalletLink: post('/v1/account/wallets/challenge', {
    summary: 'Ask for a message that a wallet signs to be linked; the password is shown once more',
    idempotency: challenge,
    gate: own,
    limit,
    body: Type.Object({ address: WalletAddress, password: ShownAgain }),
    returns: WalletChallenge,
    problems: [
      ...page,
      ...braked,
      'session_required',
      'wrong_password',
      'sign_in_again',
      'account_locked',
      'busy',
      'wallet_disabled',
      'wallet_address_invalid',
      'wallet_limit',
    ],
  }),
  linkWallet: post('/v1/account/wallets', {
    summary: 'Link a wallet to the own account',
    idempotency: worksOnce,
    gate: own,
    limit,
    body: Type.Object({ challenge_id: ChallengeId, signature: WalletSignature }),
    returns: LinkedWallet,
    problems: [
      ...page,
      ...braked,
      'session_required',
      'wallet_disabled',
      'wallet_refused',
      'wallet_taken',
      'wallet_limit',
      'token_expired',
    ],
    emits: ['platform:auth:user:updated'],
  }),
  unlinkWallet: post('/v1/account/wallets/{address}/remove', {
    params: { address: Type.String({ maxLength: 100 }) },
    summary: 'Take a wallet from the own account; the password is shown once more',
    idempotency: comesToTheSame,
    gate: own,
    limit,
    body: Type.Object({ password: ShownAgain }),
    problems: [
      ...page,
      ...braked,
      'session_required',
      'wrong_password',
      'sign_in_again',
      'last_means',
      'account_locked',
      'busy',
      'wallet_not_found',
    ],
    emits: ['platform:auth:user:updated'],
  }),
};
