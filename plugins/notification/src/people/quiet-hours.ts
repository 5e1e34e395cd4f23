import type { QuietHours } from '../../contract/schema/preference.ts';

/** Whether a zone is one that this runtime knows by an IANA name. */
export function isZone(zone: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(zone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

const clocks = new Map<string, Intl.DateTimeFormat>();
function hourIn(zone: string, at: Date): number {
  if (zone === 'UTC') return at.getUTCHours();
  let clock = clocks.get(zone);
  if (!clock) clocks.set(zone, (clock = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', hourCycle: 'h23' })));
  return Number(clock.format(at));
}

/**
 * Whether it is quiet: from the start hour on, up to the end hour, past midnight where it is smaller; the whole day where they are one
 * (G-POST-07, H-28).
 */
export function isQuiet(windows: readonly QuietHours[], at: Date, zone?: string | null): boolean {
  if (windows.length === 0) return false;
  const hour = hourIn(zone ?? 'UTC', at);
  return windows.some(
    ({ start_hour: start, end_hour: end }) => start === end || (start < end ? hour >= start && hour < end : hour >= start || hour < end),
  );
}
