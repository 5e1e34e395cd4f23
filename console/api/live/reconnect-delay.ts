/** Upper bound in ms before reconnect attempt `attempt` (0 is the first): 1, 2, 4, 8, 16, then 30 s. */
export function reconnectBound(attempt: number): number {
  return attempt < 5 ? 1000 * 2 ** attempt : 30_000;
}

/** Full jitter below the bound, so that consoles do not come back together. */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  return Math.round(random() * reconnectBound(attempt));
}
