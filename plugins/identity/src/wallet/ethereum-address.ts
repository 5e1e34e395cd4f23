import { keccak_256 } from '@noble/hashes/sha3.js';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** An address with the checksum in the case of its letters (EIP-55). */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = Buffer.from(keccak_256(Buffer.from(digits, 'ascii'))).toString('hex');
  return `0x${[...digits].map((digit, index) => (Number.parseInt(hash[index] as string, 16) >= 8 ? digit.toUpperCase() : digit)).join('')}`;
}

/** The address in lower case; `undefined` where it is none, or its checksum is wrong. What is written in one case has no checksum. */
export function readAddress(text: string): string | undefined {
  if (!ADDRESS.test(text)) return undefined;
  const digits = text.slice(2);
  const plain = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return plain || checksummed(text) === text ? text.toLowerCase() : undefined;
}
