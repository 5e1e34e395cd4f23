const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a duration such as `10s` or `5m`. Throws on anything else. */
export function milliseconds(duration: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? [];
  const factor = UNITS[unit ?? ''];
  if (amount === undefined || factor === undefined) throw new Error(`not a duration: ${duration}`);
  return Number(amount) * factor;
}
