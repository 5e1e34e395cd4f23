import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { BadDer, context, type Element, expect, inside, readBits, readOid, readOne, TAG } from './der.ts';

/** A PKCS#10 request as it was read: nothing of it is believed but that its signer holds the key. */
export interface CertificateRequest {
  readonly commonName: string | undefined;
  /** `dns:…`, `ip:…`, `uri:…`, and `other:…` for what nobody here asks for. */
  readonly names: readonly string[];
  readonly publicKey: KeyObject;
  /** SubjectPublicKeyInfo, as it stood. */
  readonly spki: Buffer;
}

/** A request that cannot be read, in words for its sender. */
export class BadRequest extends Error {}

const COMMON_NAME = '2.5.4.3';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const ALTERNATIVE_NAMES = '2.5.29.17';
const LONGEST = 131_072;
/** What a request may be signed with, and the digest of it. */
const SIGNATURES: ReadonlyMap<string, string | null> = new Map([
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
  ['1.2.840.113549.1.1.11', 'sha256'],
  ['1.2.840.113549.1.1.12', 'sha384'],
  ['1.2.840.113549.1.1.13', 'sha512'],
  ['1.3.101.112', null],
  ['2.16.840.1.101.3.4.3.17', null],
  ['2.16.840.1.101.3.4.3.18', null],
  ['2.16.840.1.101.3.4.3.19', null],
]);

/** Reads a request in PEM or DER (RFC 2986) and has its signature checked beside the event loop. Throws {@link BadRequest}. */
export async function readCertificateRequest(csr: string | Uint8Array): Promise<CertificateRequest & { readonly proven: boolean }> {
  try {
    const [info, algorithm, signature] = inside(readOne(derOf(csr), TAG.sequence));
    const [version, subject, spki, attributes] = inside(expect(info, TAG.sequence));
    expect(version, TAG.integer);
    const raw = expect(spki, TAG.sequence).raw;
    const publicKey = createPublicKey({ key: raw, format: 'der', type: 'spki' });
    const [name] = inside(expect(algorithm, TAG.sequence));
    const digest = SIGNATURES.get(readOid(name));
    if (digest === undefined) throw new BadRequest('the CSR is signed with an algorithm that is not taken');
    const read = { commonName: commonNameOf(expect(subject, TAG.sequence)), names: namesOf(attributes), publicKey, spki: raw };
    return { ...read, proven: await isSigned(digest, (info as Element).raw, publicKey, readBits(signature)) };
  } catch (error) {
    if (error instanceof BadRequest) throw error;
    throw new BadRequest('the CSR is not a PKCS#10 request', { cause: error });
  }
}

function derOf(csr: string | Uint8Array): Buffer {
  if (csr.length > LONGEST) throw new BadDer('the CSR is too long');
  if (typeof csr !== 'string') return Buffer.from(csr);
  const body =
    /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END (?:NEW )?CERTIFICATE REQUEST-----/.exec(csr)?.[1] ?? csr;
  return Buffer.from(body, 'base64');
}

/** A key that does not fit its algorithm is an error of the library, and proves nothing. */
const isSigned = (digest: string | null, text: Buffer, key: KeyObject, signature: Buffer): Promise<boolean> =>
  new Promise(resolve => verify(digest, text, key, signature, (error, proven) => resolve(!error && proven)));

function commonNameOf(subject: Element): string | undefined {
  for (const relative of inside(subject)) {
    for (const pair of inside(expect(relative, TAG.set))) {
      const [type, value] = inside(expect(pair, TAG.sequence));
      if (value && readOid(type) === COMMON_NAME) return textOf(value);
    }
  }
  return undefined;
}

/** UTF8String, and the older kinds that clients still write. */
function textOf({ tag, value }: Element): string {
  if (tag === 0x1e)
    return Buffer.from(value.subarray(0, value.length & ~1))
      .swap16()
      .toString('utf16le');
  return value.toString(tag === TAG.utf8 ? 'utf8' : 'latin1');
}

function namesOf(attributes: Element | undefined): string[] {
  if (attributes === undefined) return [];
  const extensions = inside(expect(attributes, context(0, true))).flatMap(attribute => {
    const [type, values] = inside(expect(attribute, TAG.sequence));
    return readOid(type) === EXTENSION_REQUEST ? inside(expect(values, TAG.set)).flatMap(list => inside(expect(list, TAG.sequence))) : [];
  });
  const lists = extensions.flatMap(extension => {
    const parts = inside(expect(extension, TAG.sequence));
    return readOid(parts[0]) === ALTERNATIVE_NAMES ? [readOne(expect(parts.at(-1), TAG.octets).value, TAG.sequence)] : [];
  });
  if (lists.length > 1) throw new BadRequest('the CSR names its alternative names twice');
  return lists.flatMap(list => inside(list).map(nameOf));
}

function nameOf({ tag, value }: Element): string {
  switch (tag) {
    case context(2, false):
      return `dns:${value.toString('latin1')}`;
    case context(6, false):
      return `uri:${value.toString('latin1')}`;
    case context(7, false):
      return `ip:${addressOf(value)}`;
    default:
      return `other:${value.toString('hex')}`;
  }
}

function addressOf(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) throw new BadRequest('the CSR names an address of no known length');
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}
