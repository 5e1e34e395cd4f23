/** Bytes of a context, a result and an answer to a call (G-FUNC-06). */
export const MAX_BYTES = 262_144;
export const MAX_CALLS = 32;
