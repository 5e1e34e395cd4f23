export type Headers = Readonly<Record<string, string | undefined>>;

export const cookieOf = (headers: Headers, name: string): string | undefined => cookieIn(headers['cookie'], name);

/** A cookie of a request's own header. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || undefined;
  }
  return undefined;
}
