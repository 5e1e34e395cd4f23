import { checksummed } from './ethereum-address.ts';

export interface WalletMessage {
  /** Host, and port where it is not the scheme's own, of the page that asks. */
  readonly domain: string;
  readonly address: string;
  readonly statement: string;
  readonly uri: string;
  readonly chainId: number;
  readonly nonce: string;
  readonly issuedAt: string;
  readonly expirationTime?: string;
  readonly requestId?: string;
}

/** The text that a wallet shows and signs (EIP-4361, «Message Format»). */
export function messageText({
  domain,
  address,
  statement,
  uri,
  chainId,
  nonce,
  issuedAt,
  expirationTime,
  requestId,
}: WalletMessage): string {
  return [
    `${domain} wants you to sign in with your Ethereum account:`,
    checksummed(address),
    '',
    statement,
    '',
    `URI: ${uri}`,
    'Version: 1',
    `Chain ID: ${chainId}`,
    `Nonce: ${nonce}`,
    `Issued At: ${issuedAt}`,
    ...(expirationTime ? [`Expiration Time: ${expirationTime}`] : []),
    ...(requestId ? [`Request ID: ${requestId}`] : []),
  ].join('\n');
}
