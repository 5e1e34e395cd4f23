/** The smallest UUIDv7 (RFC 9562) of a moment; everything made before it sorts below. */
export function lowestId(at: Date): string {
  const ms = at.getTime().toString(16).padStart(12, '0');
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7000-8000-000000000000`;
}
