/** The tags of X.690 that certificates and requests are made of. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  time: 0x18,
} as const;
/** A context-specific tag: of a value as it is, or of one that is made of others. */
export const context = (number: number, constructed: boolean): number => (constructed ? 0xa0 : 0x80) | number;

export interface Element {
  readonly tag: number;
  /** What is inside. */
  readonly value: Buffer;
  /** With tag and length, as it stood. */
  readonly raw: Buffer;
}

/** Bytes that are not DER as we read it. */
export class BadDer extends Error {}

const DEEPEST = 4;

export function encode(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const size = length < 0x80 ? [length] : bigEndian(length);
  return Buffer.concat([Buffer.from(length < 0x80 ? [tag, ...size] : [tag, 0x80 | size.length, ...size]), ...parts]);
}

function bigEndian(number: number): number[] {
  const bytes: number[] = [];
  for (let rest = number; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return bytes;
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => encode(TAG.sequence, ...parts);
export const octets = (...parts: readonly Uint8Array[]): Buffer => encode(TAG.octets, ...parts);
/** A bit string of whole bytes. */
export const bits = (bytes: Uint8Array): Buffer => encode(TAG.bits, Buffer.of(0), bytes);

/** A positive integer of these bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex(byte => byte !== 0);
  const short = first === -1 ? Uint8Array.of(0) : bytes.subarray(first);
  return encode(TAG.integer, ...((short[0] as number) & 0x80 ? [Buffer.of(0)] : []), short);
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap(arc => {
    const groups = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) groups.unshift((left % 128) | 0x80);
    return groups;
  });
  return encode(TAG.oid, Buffer.from(bytes));
}

/** As RFC 5280 4.1.2.5 has it: two digits of the year until 2049. */
export function time(at: Date): Buffer {
  const digits = `${at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  return at.getUTCFullYear() < 2050 ? encode(TAG.utcTime, Buffer.from(digits.slice(2))) : encode(TAG.time, Buffer.from(digits));
}

/** The one element that these bytes are, with nothing behind it. Throws {@link BadDer}. */
export function readOne(bytes: Buffer, tag?: number): Element {
  const element = readAt(bytes, 0);
  if (element.raw.length !== bytes.length) throw new BadDer('there is something behind the end');
  if (tag !== undefined && element.tag !== tag) throw new BadDer('there is another element than there should be');
  return element;
}

/** Everything inside an element. Throws {@link BadDer}. */
export function inside({ value }: Pick<Element, 'value'>): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < value.length; ) {
    const element = readAt(value, at);
    found.push(element);
    at += element.raw.length;
  }
  return found;
}

/** The same bytes as another type: what stands under an implicit tag. */
export function expect(element: Element | undefined, tag: number): Element {
  if (element?.tag !== tag) throw new BadDer('there is another element than there should be');
  return element;
}

export function readOid(element: Element | undefined): string {
  const { value } = expect(element, TAG.oid);
  if (value.length === 0 || value.length > 64 || (value.at(-1) as number) & 0x80) throw new BadDer('an object identifier does not end');
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of value) {
    arc = arc * 128 + (byte & 0x7f);
    if (byte & 0x80) continue;
    arcs.push(arc);
    arc = 0;
  }
  const [first = 0, ...rest] = arcs;
  const top = Math.min(Math.floor(first / 40), 2);
  return [top, first - top * 40, ...rest].join('.');
}

/** The bytes of a bit string of whole bytes. */
export function readBits(element: Element | undefined): Buffer {
  const { value } = expect(element, TAG.bits);
  if (value[0] !== 0) throw new BadDer('a bit string is not of whole bytes');
  return value.subarray(1);
}

function readAt(bytes: Buffer, at: number): Element {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f)
    throw new BadDer('an element is cut off, or of a tag that is not used here');
  let [length, head] = [first, 2];
  if (first >= 0x80) {
    const size = first & 0x7f;
    if (size === 0 || size > DEEPEST || at + 2 + size > bytes.length) throw new BadDer('a length is not definite, or cut off');
    length = bytes.readUIntBE(at + 2, size);
    head = 2 + size;
    if (length < 0x80 || (size > 1 && length < 256 ** (size - 1))) throw new BadDer('a length is longer than it has to be');
  }
  const end = at + head + length;
  if (end > bytes.length) throw new BadDer('an element is cut off');
  return { tag, value: bytes.subarray(at + head, end), raw: bytes.subarray(at, end) };
}
