import type { Span } from '../blobs/blobs.ts';

/**
 * The one range of a `Range` header (RFC 9110, 14.1.2). `whole` for none, for several, and for what is no range of bytes: all of these are
 * answered with everything; `unsatisfiable` where the object is shorter.
 */
export function rangeOf(header: string | null, size: number): Span | 'whole' | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.replaceAll(' ', '') ?? '');
  if (!match) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return 'whole';
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
