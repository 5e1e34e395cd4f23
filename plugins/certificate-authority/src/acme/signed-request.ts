import { createPublicKey, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, errors, flattenedVerify, type FlattenedJWSInput, type JWK, type JWSHeaderParameters } from 'jose';

/** What accounts sign with (G-ACME-03). */
export const ALGORITHMS: readonly string[] = ['ES256', 'ES384', 'RS256', 'EdDSA', 'ML-DSA-65'];
const MEMBERS = ['protected', 'payload', 'signature'];
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
/** The members that make a key of each kind. */
const KINDS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['EC', ['crv', 'x', 'y']],
  ['RSA', ['n', 'e']],
  ['OKP', ['crv', 'x']],
  ['AKP', ['alg', 'pub']],
]);
const LONGEST = 131_072;
const RSA_BITS = { least: 2_048, most: 8_192 };

export type Fault = 'malformed_request' | 'bad_signature_algorithm' | 'bad_public_key' | 'not_authorized';

/** A JWS that is refused: the ACME problem and why. */
export class BadJws extends Error {
  readonly fault: Fault;

  constructor(fault: Fault, detail: string) {
    super(detail);
    this.fault = fault;
  }
}

/** The header of a request that was read and not verified yet. */
export interface ReadJws {
  readonly input: FlattenedJWSInput;
  readonly header: JWSHeaderParameters & { readonly url?: unknown; readonly nonce?: unknown; readonly jwk?: JWK; readonly kid?: unknown };
}

/** Reads a flattened JWS (RFC 7515 7.2.2, RFC 8555 6.2) without trusting any of it. Throws {@link BadJws}. */
export function readJws(value: unknown): ReadJws {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadJws('malformed_request', 'The body is a flattened JWS.');
  const members = value as Record<string, unknown>;
  if (Object.keys(members).length !== MEMBERS.length || !MEMBERS.every(name => typeof members[name] === 'string'))
    throw new BadJws('malformed_request', 'A flattened JWS has the members protected, payload and signature, and no others.');
  const input = members as unknown as { protected: string; payload: string; signature: string };
  if (!MEMBERS.every(name => isBase64url(members[name] as string)))
    throw new BadJws('malformed_request', 'The members of the JWS are base64url without padding.');
  const header = readObject(input.protected, 'The protected header');
  if ('crit' in header || 'b64' in header)
    throw new BadJws('malformed_request', 'The protected header asks for what is not understood here.');
  if (typeof header['alg'] !== 'string' || !ALGORITHMS.includes(header['alg']))
    throw new BadJws('bad_signature_algorithm', `Sign with one of ${ALGORITHMS.join(', ')}.`);
  if ('jwk' in header === 'kid' in header) throw new BadJws('malformed_request', 'The protected header has jwk or kid, and not both.');
  return { input, header: header as ReadJws['header'] };
}

/** The payload, when the signature is that of `key`. Throws {@link BadJws}. */
export async function verifyJws({ input }: ReadJws, key: KeyObject): Promise<Uint8Array> {
  try {
    return (await flattenedVerify(input, key, { algorithms: [...ALGORITHMS] })).payload;
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) throw new BadJws('malformed_request', 'The signature of the JWS is false.');
    // A key of another kind than the algorithm's is a TypeError there.
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException)
      throw new BadJws('malformed_request', 'The JWS cannot be verified with its key.');
    throw error;
  }
}

/** A payload that must be a JSON object. */
export const readPayload = (payload: Uint8Array): Record<string, unknown> =>
  readObject(Buffer.from(payload).toString('base64url'), 'The payload');

/** A public key as a client sent it: only the members that make it, its thumbprint (RFC 7638), and itself. Throws {@link BadJws}. */
export async function readKey(given: unknown): Promise<{ jwk: JWK; thumbprint: string; key: KeyObject }> {
  if (typeof given !== 'object' || given === null) throw new BadJws('bad_public_key', 'jwk is a JSON Web Key.');
  const sent = given as Record<string, unknown>;
  if (PRIVATE.some(member => member in sent))
    throw new BadJws('bad_public_key', 'jwk is a public key. Yours had private members: take another one.');
  const wanted = KINDS.get(sent['kty']);
  if (!wanted || !wanted.every(member => typeof sent[member] === 'string' && (sent[member] as string).length <= LONGEST))
    throw new BadJws('bad_public_key', 'jwk is no key of a known kind.');
  const jwk = Object.fromEntries(['kty', ...wanted].map(member => [member, sent[member]])) as JWK;
  try {
    const key = createPublicKey({ key: jwk as never, format: 'jwk' });
    const bits = key.asymmetricKeyDetails?.modulusLength;
    if (bits !== undefined && (bits < RSA_BITS.least || bits > RSA_BITS.most))
      throw new BadJws('bad_public_key', `RSA keys have ${RSA_BITS.least} to ${RSA_BITS.most} bits.`);
    return { jwk, thumbprint: await calculateJwkThumbprint(jwk), key };
  } catch (error) {
    if (error instanceof BadJws) throw error;
    throw new BadJws('bad_public_key', 'jwk is no key of a known kind.');
  }
}

/** Bytes that a client sent as base64url. Throws {@link BadJws}. */
export function readBytes(given: unknown, name: string): Buffer {
  if (typeof given !== 'string' || given === '' || given.length > LONGEST || !isBase64url(given))
    throw new BadJws('malformed_request', `${name} is base64url without padding.`);
  return Buffer.from(given, 'base64url');
}

function readObject(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64url')));
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadJws('malformed_request', `${what} is a JSON object in base64url.`);
  return value as Record<string, unknown>;
}

/** As RFC 7515 has it: no padding, no line breaks, no bits left over. */
const isBase64url = (text: string): boolean => Buffer.from(text, 'base64url').toString('base64url') === text;
