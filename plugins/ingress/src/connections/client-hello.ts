/** What the first flight of a TLS client says in clear. */
export interface ClientHello {
  /** The server name, lower case; `undefined` where none, or no host name, was given. */
  readonly name: string | undefined;
  /** Named groups the client can do, by number, in its order. */
  readonly groups: readonly number[];
  /** Those it sent a key share for: the server takes one of these unless it asks again. */
  readonly shares: readonly number[];
}
/** `more`: the hello is not here whole; `not tls`: what came begins no TLS 1.x connection. */
export type HelloReading = ClientHello | 'more' | 'not tls';

const [HANDSHAKE, CLIENT_HELLO] = [22, 1];
const [SERVER_NAME, GROUPS, SHARES] = [0, 10, 51];
const MAX_RECORD = 16_384;
/** A client that sends more before its first secret is none of ours. */
export const MAX_HELLO = 16_384;
/** Groups no classical client offers alone: ML-KEM, bare and with a curve (IANA, TLS Supported Groups). */
const POST_QUANTUM = new Set([0x0200, 0x0201, 0x0202, 0x11eb, 0x11ec, 0x11ed]);
const HOST = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*$/;

/** Whether only post-quantum groups are offered: a workload of the platform in its strict mode, never a browser. */
export const isStrict = ({ groups }: ClientHello): boolean => groups.length > 0 && groups.every(group => POST_QUANTUM.has(group));
/** Whether the key exchange is post-quantum: the edge prefers it wherever a share of it came. */
export const isPostQuantum = ({ shares }: ClientHello): boolean => shares.some(group => POST_QUANTUM.has(group));

/** Reads a ClientHello from the bytes of a connection so far (RFC 8446 4.1.2; over several records, 5.1). Never throws. */
export function readClientHello(bytes: Buffer): HelloReading {
  const message = handshakeOf(bytes);
  if (typeof message === 'string') return message;
  try {
    return helloOf(message);
  } catch {
    return 'not tls';
  }
}

/** The body of the first handshake message, joined from its records. */
function handshakeOf(bytes: Buffer): Buffer | 'more' | 'not tls' {
  const parts: Buffer[] = [];
  let [at, size, needed] = [0, 0, 4];
  while (size < needed) {
    if (bytes.length > at && bytes[at] !== HANDSHAKE) return 'not tls';
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return 'not tls';
    if (bytes.length < at + 5) return 'more';
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD) return 'not tls';
    const part = bytes.subarray(at + 5, at + 5 + length);
    parts.push(part);
    size += part.length;
    if (size >= 4 && needed === 4) {
      const head = parts.length === 1 ? part : Buffer.concat(parts);
      if (head[0] !== CLIENT_HELLO) return 'not tls';
      needed = 4 + head.readUIntBE(1, 3);
      if (needed > MAX_HELLO) return 'not tls';
    }
    if (part.length < length && size < needed) return 'more';
    at += 5 + length;
  }
  return Buffer.concat(parts).subarray(4, needed);
}

function helloOf(message: Buffer): ClientHello {
  let at = 34;
  at += 1 + message.readUInt8(at);
  at += 2 + message.readUInt16BE(at);
  at += 1 + message.readUInt8(at);
  const hello = { name: undefined as string | undefined, groups: [] as number[], shares: [] as number[] };
  if (at === message.length) return hello;
  const end = at + 2 + message.readUInt16BE(at);
  if (end !== message.length) throw new RangeError('the extensions do not end with the message');
  for (at += 2; at < end; ) {
    const [type, length] = [message.readUInt16BE(at), message.readUInt16BE(at + 2)];
    if (at + 4 + length > end) throw new RangeError('an extension is longer than all');
    const body = message.subarray(at + 4, at + 4 + length);
    if (type === SERVER_NAME) hello.name = nameOf(body);
    else if (type === GROUPS) for (let of = 2; of + 2 <= body.length; of += 2) hello.groups.push(body.readUInt16BE(of));
    else if (type === SHARES)
      for (let of = 2; of + 4 <= body.length; of += 4 + body.readUInt16BE(of + 2)) hello.shares.push(body.readUInt16BE(of));
    at += 4 + length;
  }
  return hello;
}

function nameOf(body: Buffer): string | undefined {
  if (body.length < 5 || body[2] !== 0) return undefined;
  const length = body.readUInt16BE(3);
  if (5 + length > body.length) throw new RangeError('a server name is longer than its list');
  const name = body
    .toString('latin1', 5, 5 + length)
    .toLowerCase()
    .replace(/\.$/, '');
  return HOST.test(name) ? name : undefined;
}
