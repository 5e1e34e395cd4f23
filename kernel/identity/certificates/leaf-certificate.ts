import { hash, type KeyObject, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { promisify } from 'node:util';
import { bits, context, encode, expect, inside, integer, octets, oid, readBits, readOid, readOne, sequence, TAG, time } from './der.ts';

/** What a leaf takes from its issuer: made once. */
export interface Issuer {
  /** The issuer's name, in DER. */
  readonly name: Buffer;
  readonly keyId: Buffer;
  readonly key: KeyObject;
  readonly algorithm: 'ML-DSA-65' | 'ECDSA';
}
export interface Leaf {
  readonly serial: Buffer;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly commonName: string;
  readonly names: readonly string[];
  readonly usages: readonly ('server' | 'client')[];
  readonly spki: Buffer;
}

const signed = promisify<string | null, Buffer, KeyObject, Buffer>(sign);
const SIGNATURES = {
  'ML-DSA-65': { digest: null, algorithm: sequence(oid('2.16.840.1.101.3.4.3.18')) },
  ECDSA: { digest: 'sha256', algorithm: sequence(oid('1.2.840.10045.4.3.2')) },
} as const;
const [COMMON_NAME, SERVER_AUTH, CLIENT_AUTH] = [oid('2.5.4.3'), oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2')];
const KEY_ID = '2.5.29.14';
const TRUE = encode(TAG.boolean, Buffer.of(0xff));
const VERSION_3 = encode(context(0, true), integer(Buffer.of(2)));

const extension = (id: string, value: Buffer, critical = false) => sequence(oid(id), ...(critical ? [TRUE] : []), octets(value));
/** No authority, and a key that signs (RFC 5280 4.2.1.9, 4.2.1.3): both critical, as strict verifiers want. */
const CONSTRAINTS = extension('2.5.29.19', sequence(), true);
const USAGE = extension('2.5.29.15', encode(TAG.bits, Buffer.of(7, 0x80)), true);

/** Name and key identifier of an issuer, from its certificate in DER. */
export function readIssuer(certificate: Buffer): Pick<Issuer, 'name' | 'keyId'> {
  const [body] = inside(readOne(certificate, TAG.sequence));
  const parts = inside(expect(body, TAG.sequence));
  const extensions = parts.find(({ tag }) => tag === context(3, true));
  const list = extensions ? inside(readOne(extensions.value, TAG.sequence)) : [];
  const held = list.map(each => inside(expect(each, TAG.sequence))).find(([type]) => readOid(type) === KEY_ID);
  const name = expect(parts[5], TAG.sequence).raw;
  const keyId = held ? readOne(expect(held.at(-1), TAG.octets).value, TAG.octets).value : keyIdOf(expect(parts[6], TAG.sequence).raw);
  return { name, keyId };
}

/** Writes a leaf (RFC 5280, RFC 9881) and has it signed beside the event loop. @returns DER */
export async function signLeaf(leaf: Leaf, issuer: Issuer): Promise<Buffer> {
  const { digest, algorithm } = SIGNATURES[issuer.algorithm];
  const subject = sequence(encode(TAG.set, sequence(COMMON_NAME, encode(TAG.utf8, Buffer.from(leaf.commonName)))));
  const extensions = [
    CONSTRAINTS,
    USAGE,
    extension('2.5.29.37', sequence(...leaf.usages.map(usage => (usage === 'server' ? SERVER_AUTH : CLIENT_AUTH)))),
    extension('2.5.29.17', sequence(...leaf.names.map(generalName))),
    extension(KEY_ID, octets(keyIdOf(leaf.spki))),
    extension('2.5.29.35', sequence(encode(context(0, false), issuer.keyId))),
  ];
  const body = sequence(
    VERSION_3,
    integer(leaf.serial),
    algorithm,
    issuer.name,
    sequence(time(leaf.notBefore), time(leaf.notAfter)),
    subject,
    leaf.spki,
    encode(context(3, true), sequence(...extensions)),
  );
  return sequence(body, algorithm, bits(await signed(digest, body, issuer.key)));
}

/** RFC 5280 4.2.1.2, the first way: SHA-1 of the key's own bits. It names the key, and proves nothing. */
function keyIdOf(spki: Buffer): Buffer {
  const [, key] = inside(readOne(spki, TAG.sequence));
  return hash('sha1', readBits(key), 'buffer');
}

function generalName(name: string): Buffer {
  const [kind = '', ...rest] = name.split(':');
  const value = rest.join(':');
  if (kind === 'ip') return encode(context(7, false), addressBytes(value));
  if (kind === 'dns') return encode(context(2, false), Buffer.from(value, 'latin1'));
  return encode(context(6, false), Buffer.from(value, 'latin1'));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap(group => [group >> 8, group & 0xff]));
}
