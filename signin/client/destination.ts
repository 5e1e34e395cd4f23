/** A path of this origin, or nothing: an answer can not send the visitor to another host. */
export function ownPath(next: string | undefined, origin: string): string | undefined {
  if (!next?.startsWith('/')) return undefined;
  const url = new URL(next, origin);
  return url.origin === origin ? url.pathname + url.search + url.hash : undefined;
}

/** Where an authorization ends: this origin, a web address, or the application's own scheme. */
export function clientAddress(redirectTo: string, origin: string, redirectUri: string | undefined): string | undefined {
  if (!URL.canParse(redirectTo, origin)) return undefined;
  const url = new URL(redirectTo, origin);
  if (url.protocol === 'https:' || url.protocol === 'http:') return url.href;
  const own = redirectUri && URL.canParse(redirectUri) ? new URL(redirectUri).protocol : undefined;
  return own === url.protocol && !['javascript:', 'data:', 'blob:', 'file:'].includes(own) ? url.href : undefined;
}
