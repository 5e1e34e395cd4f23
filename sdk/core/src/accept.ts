/** Whether an `Accept` header admits a media type (RFC 9110 12.5.1): the most specific range decides, and a weight of 0 refuses. */
export function admits(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.trim() === '') return true;
  const [wanted = '', major = ''] = [mediaType(type), type.split('/')[0]?.toLowerCase()];
  const weights = new Map<number, boolean>();
  for (const range of accept.split(',')) {
    const name = mediaType(range);
    const rank = name === wanted ? 3 : name === `${major}/*` ? 2 : name === '*/*' ? 1 : 0;
    if (rank > 0) weights.set(rank, (weights.get(rank) ?? false) || !REFUSED.test(range));
  }
  return weights.get(3) ?? weights.get(2) ?? weights.get(1) ?? false;
}

/** Whether an `Accept-Encoding` header names a content coding (RFC 9110 12.5.3); a weight of 0 refuses it. */
export const admitsCoding = (accepted: string | undefined, coding: string): boolean =>
  (accepted ?? '').split(',').some(range => mediaType(range) === coding && !REFUSED.test(range));

const REFUSED = /;\s*q=0(\.0{0,3})?\s*(;|$)/i;
const mediaType = (text: string): string => (text.split(';', 1)[0] as string).trim().toLowerCase();
