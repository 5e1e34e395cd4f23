import { Type } from '@platform/sdk/contract';

/** An Ethereum address, as wallets write it: in one case, or with the checksum of EIP-55. */
export const WalletAddress = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' });
/** 65 bytes in hexadecimal: r, s and the recovery byte, as `personal_sign` answers (EIP-191). */
export const WalletSignature = Type.String({ pattern: '^0x[0-9a-fA-F]{130}$' });
/** `linked`: who has linked a wallet signs in with it. `sign_up`: a wallet nobody has linked opens an account. */
export const WalletSignIn = Type.Union([
  Type.Literal('off', { title: 'Off' }),
  Type.Literal('linked', { title: 'Linked wallets' }),
  Type.Literal('sign_up', { title: 'Any wallet, opening accounts' }),
]);
export const WalletChallenge = Type.Object({ challenge_id: Type.String(), message: Type.String(), expires_at: Type.String() });
export const LinkedWallet = Type.Object({ address: Type.String(), linked_at: Type.String() });
