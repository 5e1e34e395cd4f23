import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';

const SIGNATURE = /^0x[0-9a-fA-F]{130}$/;
/** Wallets write the recovery bit as it is, or with 27 added to it. */
const RECOVERY: Readonly<Record<number, number>> = { 0: 0, 1: 1, 27: 0, 28: 1 };

/**
 * Who signed a text with `personal_sign` (EIP-191, version 0x45): an address in lower case, or nobody. Of the two forms of a signature the
 * one with the low s counts (EIP-2).
 */
export function signerOf(text: string, signature: string): string | undefined {
  if (!SIGNATURE.test(signature)) return undefined;
  const bytes = Buffer.from(signature.slice(2), 'hex');
  const recovery = RECOVERY[bytes[64] as number];
  if (recovery === undefined) return undefined;
  const message = Buffer.from(text, 'utf8');
  const hash = keccak_256(Buffer.concat([Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`, 'latin1'), message]));
  try {
    const proof = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), 'compact').addRecoveryBit(recovery);
    if (proof.hasHighS()) return undefined;
    const key = proof.recoverPublicKey(hash).toBytes(false);
    return `0x${Buffer.from(keccak_256(key.subarray(1)).subarray(12)).toString('hex')}`;
  } catch {
    // No point of the curve answers to it.
    return undefined;
  }
}
