import type postgres from 'postgres';

const asIs = (text: string): string => text;

/** `2026-01-31 10:20:30.123456+00` (the session is in UTC) as `2026-01-31T10:20:30.123Z`; infinity and far years stay as they are. */
export function isoTimestamp(text: string): string {
  if (!/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$/.test(text)) return text;
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(19, -3).slice(1, 4).padEnd(3, '0')}Z`;
}

/** A bigint as a number while that is exact, else as its digits. */
export function safeInteger(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

const fromDate = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value));

/** How columns come out: JSON-ready, so a row can be an answer. */
export const TYPES = {
  timestamptz: { to: 1184, from: [1184], serialize: fromDate, parse: isoTimestamp },
  timestamp: { to: 1114, from: [1114], serialize: fromDate, parse: asIs },
  date: { to: 1082, from: [1082], serialize: fromDate, parse: asIs },
  bigint: { to: 20, from: [20], serialize: String, parse: safeInteger },
} satisfies Record<string, postgres.PostgresType>;
