/** Headers of one connection, which nobody forwards (RFC 9110 7.6.1), with what older clients send in their place. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'http2-settings',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Whether a header belongs to its connection alone. `connection`: the value of that header, which may name further ones. Names in lower
 * case.
 */
export function isHopByHop(name: string, connection = ''): boolean {
  if (HOP_BY_HOP.has(name)) return true;
  return connection !== '' && connection.split(',').some(named => named.trim().toLowerCase() === name);
}

/** Frames, routes, authenticates, describes or steers the message: nothing that comes behind the body may say it (RFC 9110 6.5.1). */
const NEVER_BEHIND: ReadonlySet<string> = new Set(
  [
    'host content-length content-encoding content-type content-range content-location authorization cookie set-cookie www-authenticate',
    'proxy-authenticate cache-control expect max-forwards pragma range age date expires location retry-after vary warning forwarded',
    'strict-transport-security content-security-policy x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip idempotency-key dpop origin referer',
  ].flatMap(line => line.split(' ')),
);

/** Whether a field may stand behind a body, as a trailer that somebody else sent. Names in lower case. */
export function mayTrail(name: string): boolean {
  return !isHopByHop(name) && !NEVER_BEHIND.has(name) && !/^(?::|if-|access-control-|sec-|x-platform-)|_/.test(name);
}

/** Of the names in a `Trailer` header those that may trail; `undefined` where none does. */
export function announced(trailer: string | readonly string[] | undefined): string | undefined {
  const names = [trailer ?? []]
    .flat()
    .flatMap(line => line.split(','))
    .map(name => name.trim().toLowerCase());
  return names.filter(name => name !== '' && mayTrail(name)).join(', ') || undefined;
}
