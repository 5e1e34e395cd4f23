import type { Format, Tone } from '../api/page-def.ts';
import { formatted } from './format.ts';

/** One value in the way its column asks for. */
export function Value({ value, format, tones }: { value: unknown; format?: Format | undefined; tones?: Record<string, Tone> | undefined }) {
  const text = formatted(value, format ?? (tones && 'badge'));
  if (value === undefined || value === null || value === '') return <span className="faint">{text}</span>;
  if (format === 'badge' || tones)
    return (
      <span className="badge" data-tone={tones?.[String(value)] ?? 'muted'}>
        {text}
      </span>
    );
  if (format === 'code') return <code>{text}</code>;
  if (format === 'json')
    return (
      <pre className="json" tabIndex={0}>
        {text}
      </pre>
    );
  if (format === 'datetime')
    return (
      <time dateTime={String(value)} title={String(value)}>
        {text}
      </time>
    );
  return <>{text}</>;
}

export const isNumeric = (format: Format | undefined): boolean => format === 'number' || format === 'bytes' || format === 'percent' || format === 'duration_s';
