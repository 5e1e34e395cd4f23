import type { Format, Tone } from '../../api/page-def.ts';
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
  if (format === 'html') return <ForeignDocument text={String(value)} />;
  if (format === 'datetime' || format === 'ago')
    return (
      <time dateTime={String(value)} title={format === 'ago' ? formatted(value, 'datetime') : String(value)}>
        {text}
      </time>
    );
  return <>{text}</>;
}

/** Somebody else's document, such as a mail: a frame of its own origin in which nothing runs; a link opens elsewhere. */
function ForeignDocument({ text }: { text: string }) {
  return (
    <iframe
      className="foreign"
      title="Document"
      sandbox="allow-popups allow-popups-to-escape-sandbox"
      referrerPolicy="no-referrer"
      srcDoc={`<base target="_blank">${text}`}
    />
  );
}

export const isNumeric = (format: Format | undefined): boolean =>
  format === 'number' || format === 'bytes' || format === 'percent' || format === 'duration_s';
