/*
 * What becomes of a POST under an Idempotency-Key (G-K-03). What is passed on takes the key along: the service that is called keeps it.
 */
export const readAlone = { none: 'Nothing is made here: it is read, or ended' } as const;
export const comesToTheSame = { none: 'It leads to the state that is asked for, however often it comes' } as const;
export const logged = { none: 'A line of the log is no record; one more does no harm' } as const;
