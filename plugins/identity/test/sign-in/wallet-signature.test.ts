import { describe, expect, test } from 'vitest';
import { checksummed, readAddress } from '../../src/wallet/ethereum-address.ts';
import { messageText, type WalletMessage } from '../../src/wallet/wallet-message.ts';
import { signerOf } from '../../src/wallet/wallet-signature.ts';

/** Signatures that others published for messages of EIP-4361 (spruceid/siwe, test/verification_positive.json). */
const PUBLISHED: readonly (readonly [string, WalletMessage, string])[] = [
  [
    'recovery byte 27',
    {
      domain: 'login.xyz',
      address: '0x9D85ca56217D2bb651b00f15e694EB7E713637D4',
      statement: 'Sign-In With Ethereum Example Statement',
      uri: 'https://login.xyz',
      chainId: 1,
      nonce: 'bTyXgcQxn2htgkjJn',
      issuedAt: '2022-01-27T17:09:38.578Z',
      expirationTime: '2100-01-07T14:31:43.952Z',
    },
    '0xdc35c7f8ba2720df052e0092556456127f00f7707eaa8e3bbff7e56774e7f2e05a093cfc9e02964c33d86e8e066e221b7d153d27e5a2e97ccd5ca7d3f2ce06cb1b',
  ],
  [
    'recovery byte 28',
    {
      domain: 'login.xyz',
      address: '0x2ecA0068307e706741445764A3D6A4402aC2A5a9',
      statement: 'Sign-In With Ethereum Example Statement',
      uri: 'https://login.xyz',
      chainId: 1,
      nonce: 'lx2nx4so',
      issuedAt: '2022-01-05T14:27:30.883Z',
      expirationTime: '2021-01-05T00:00:00Z',
    },
    '0x7337bc2826c7678cd6bc84f5b3b236efc969b0451f9feca2328b1d3401b030c113f19bdba359ba3f52762c66e9147311fa95fe598a1a4ec9bb383a7b4e3874241b',
  ],
  [
    'recovery byte from 0',
    {
      domain: 'www.tally.xyz',
      address: '0xc95EB884FE852e241D409234bfC7045CB9E31BD7',
      statement: 'Sign in with Ethereum to Tally',
      uri: 'https://tally.xyz',
      chainId: 1,
      nonce: '15050747',
      issuedAt: '2022-06-30T14:08:51.382Z',
    },
    '0x8c46b6eb8505939892d8e9b075f89f8277321b17b993151f37810cdda38cce6f4a85909d2b53e6a14629c74c0ac38bf4becde78ee5b2529812bf6cceaf7b2a2501',
  ],
];
/** The order of secp256k1 (SEC 2, 2.4.1). */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

describe('a published signature', () => {
  test.each(PUBLISHED)('%s names its wallet', (_, message, signature) => {
    expect(signerOf(messageText(message), signature)).toBe(message.address.toLowerCase());
  });

  test.each(PUBLISHED)('%s names somebody else once a word is changed', (_, message, signature) => {
    for (const changes of [
      { domain: 'evil.example' },
      { nonce: 'another0' },
      { chainId: 10 },
      { statement: 'Give me everything.' },
      { uri: 'https://evil.example' },
    ])
      expect(signerOf(messageText({ ...message, ...changes }), signature)).not.toBe(message.address.toLowerCase());
  });

  test('is refused in its other form, out of its range, and with a byte that says nothing', () => {
    const [, message, signature] = PUBLISHED[0] as (typeof PUBLISHED)[number];
    const text = messageText(message);
    const [r, s] = [signature.slice(2, 66), BigInt(`0x${signature.slice(66, 130)}`)];
    const written = (left: string, right: bigint, v: string) => `0x${left}${right.toString(16).padStart(64, '0')}${v}`;
    expect(signerOf(text, written(r, s, '1b'))).toBe(message.address.toLowerCase());
    for (const bad of [
      written(r, ORDER - s, '1c'),
      written(r, 0n, '1b'),
      written('0'.repeat(64), s, '1b'),
      written('f'.repeat(64), s, '1b'),
      written(r, s, '1d'),
      written(r, s, '02'),
      '0x',
      'x',
      signature.slice(0, -2),
    ])
      expect([bad, signerOf(text, bad)]).toEqual([bad, undefined]);
  });
});

describe('an address', () => {
  // EIP-55, «Test Cases».
  test.each([
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x27b1fdb04752bbc536007a920d24acb045561c26',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ])('%s has its checksum', address => {
    expect(checksummed(address.toLowerCase())).toBe(address);
    expect(readAddress(address)).toBe(address.toLowerCase());
  });

  test('with a wrong checksum, or of another length, is none', () => {
    for (const address of [
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed',
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe',
      '5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
      '',
    ])
      expect(readAddress(address)).toBe(undefined);
    expect(readAddress('0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED')).toBe('0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed');
  });
});
