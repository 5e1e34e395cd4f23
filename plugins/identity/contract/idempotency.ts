/*
 * What becomes of a POST under an Idempotency-Key (G-K-03) where the kernel does not ask who sends it.
 */

/** Tokens of mails, challenges, codes, steps of a sign-in. */
export const worksOnce = { none: 'What it takes works once: sent again it is refused, and nothing happens twice' } as const;
export const challenge = { none: 'It hands out a challenge; the next one takes its place and nothing else is made' } as const;
export const comesToTheSame = { none: 'It leads to the state that is asked for, however often it comes' } as const;
export const readAlone = { none: 'Nothing is made here: it is read alone' } as const;
export const nothingHere = { none: 'Nothing is here, for anybody' } as const;
export const ofTheProtocol = {
  none: 'The standards of the protocol have no such key: codes, proofs and pushed requests work once (RFC 6749, 9126, 9449)',
} as const;
