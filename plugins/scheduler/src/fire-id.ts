import { createHash } from 'node:crypto';

/** The same for the same schedule and the same time, whichever process fires and however often (a UUID of version 8, RFC 9562). */
export function fireId({ service, name }: { service: string; name: string }, at: Date, kind: 'due' | 'manual'): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([service, name, kind, at.toISOString()]))
    .digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
