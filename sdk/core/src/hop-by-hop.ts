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

/** Whether a header belongs to its connection alone. `connection`: the value of that header, which may name further ones. Names in lower case. */
export function isHopByHop(name: string, connection = ''): boolean {
  if (HOP_BY_HOP.has(name)) return true;
  return connection !== '' && connection.split(',').some(named => named.trim().toLowerCase() === name);
}
