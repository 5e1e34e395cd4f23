import type { Format } from '../../api/page-def.ts';

interface FormatOptions {
  locale?: string;
  timeZone?: string;
}

const BYTES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** A value as a person reads it; a dash for nothing. */
export function formatted(value: unknown, format: Format = 'text', { locale, timeZone }: FormatOptions = {}): string {
  if (value === undefined || value === null || value === '') return '–';
  switch (format) {
    case 'number':
      return numeric(value, n => new Intl.NumberFormat(locale, { maximumFractionDigits: 2 }).format(n));
    case 'percent':
      return numeric(value, n => `${new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }).format(n)} %`);
    case 'bytes':
      return numeric(value, n => bytes(n, locale));
    case 'duration_s':
      return numeric(value, duration);
    case 'datetime': {
      const date = new Date(typeof value === 'number' ? value : String(value));
      if (Number.isNaN(date.getTime())) return String(value);
      return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium', ...(timeZone ? { timeZone } : {}) }).format(date);
    }
    case 'ago':
      return ago(value, locale);
    case 'bool':
      return value === true || value === 'true' ? 'Yes' : 'No';
    case 'json':
      // A text is shown as it is, line by line.
      return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    case 'badge':
      return typeof value === 'string' ? readable(value) : formatted(value);
    default:
      return typeof value === 'object' ? JSON.stringify(value) : typeof value === 'boolean' ? (value ? 'Yes' : 'No') : String(value);
  }
}

const SPANS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** How long it is since, or until, in the largest unit that fits. */
function ago(value: unknown, locale?: string): string {
  const at = new Date(typeof value === 'number' ? value : String(value)).getTime();
  if (Number.isNaN(at)) return String(value);
  const seconds = (at - Date.now()) / 1_000;
  const [unit, span] = SPANS.find(([, each]) => Math.abs(seconds) >= each) ?? (['second', 1] as const);
  return new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(Math.round(seconds / span), unit);
}

/** A state as it is spelt on the wire, in words; what is spelt otherwise is somebody's own and stays. */
function readable(state: string): string {
  if (!/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(state)) return state;
  const words = state.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function numeric(value: unknown, write: (n: number) => string): string {
  const number = Number(value);
  return Number.isFinite(number) ? write(number) : String(value);
}

function bytes(count: number, locale?: string): string {
  const step = count === 0 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.abs(count)) / 3));
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }).format(count / 1000 ** Math.max(0, step))} ${
    BYTES[Math.max(0, step)]
  }`;
}

function duration(seconds: number): string {
  if (Math.abs(seconds) < 1 && seconds !== 0) return `${Math.round(seconds * 1000)} ms`;
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [Math.floor(seconds) % 60, 's'],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).slice(0, 2);
  return shown.length ? shown.map(([count, unit]) => `${count} ${unit}`).join(' ') : '0 s';
}
