/**
 * Delay in milliseconds before try number `attempt` (0 is the first retry): doubling from `baseMs`, never above `capMs`.
 * With `jitter` the delay is spread over the whole interval, so that clients do not come back together (hardening H-23).
 */
export function backoff(attempt: number, { baseMs, capMs, jitter = false }: { baseMs: number; capMs: number; jitter?: boolean }): number {
  const delay = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));
  return jitter ? Math.round(Math.random() * delay) : delay;
}
