/** 1, 2, 4 seconds and so on, up to the cap (SUP-025). */
export const backoff = (tries: number, { baseMs, capMs }: { readonly baseMs: number; readonly capMs: number }): number =>
  Math.min(capMs, baseMs * 2 ** Math.min(tries, 30));
