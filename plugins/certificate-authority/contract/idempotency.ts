/** ACME has a means of its own (RFC 8555, 6.5): nothing is done twice for one signature. */
export const replayNonce = { none: 'A signed request has a nonce that works once, and an account is known by its key (RFC 8555)' } as const;
export const readAlone = { none: 'Nothing is made here: it is read alone' } as const;
