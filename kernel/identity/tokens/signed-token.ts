import type { TokenChecks, TokenClaims } from '@platform/sdk';
import { compactVerify, errors, type CompactJWSHeaderParameters } from 'jose';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { kernelProblem } from '../../base/kernel-problem.ts';

const MAX_LENGTH = 12_288;
/** What signs tokens that services read (G-K-06 step 3). */
const ALGORITHMS = ['EdDSA', 'ES256', 'ML-DSA-65'];
const TYPES = new Set(['at+jwt', 'application/at+jwt']);
const Text = Type.String({ minLength: 1, maxLength: 2_000 });
const Maybe = Type.Optional(Type.String());

/** Unknown claims pass; known ones are of their type, or the token says something nobody here understands. */
const CLAIMS = Compile(
  Type.Object({
    iss: Text,
    sub: Text,
    aud: Type.Union([Text, Type.Array(Text, { minItems: 1 })]),
    exp: Type.Number(),
    iat: Type.Number(),
    nbf: Type.Optional(Type.Number()),
    jti: Text,
    client_id: Text,
    token_type: Text,
    scope: Maybe,
    env_id: Maybe,
    auth_env: Maybe,
    app_instance_id: Maybe,
    sid: Maybe,
    email: Maybe,
    vertical: Maybe,
    gid: Maybe,
    email_verified: Type.Optional(Type.Boolean()),
    limited: Type.Optional(Type.Boolean()),
    act: Type.Optional(Type.Object({ sub: Text, client_id: Maybe })),
    // A binding that is not understood binds all the same (RFC 7800 3.1).
    cnf: Type.Optional(Type.Object({ 'x5t#S256': Maybe, jkt: Maybe }, { additionalProperties: false, minProperties: 1 })),
  }),
);

const invalid = (detail: string, cause?: unknown) =>
  kernelProblem('unauthenticated', { detail, ...(cause === undefined ? {} : { cause }) });

/**
 * Claims of a signed access token: the one check of a JWS in the platform (RFC 7515 5.2, RFC 9068 4). The algorithm is the key's, never the
 * token's word for it; header members that must be understood and are not are refused. Time, issuer, binding and revocation come after it.
 */
export const readSignedToken: TokenChecks['claims'] = async (token, find) => {
  if (token.length > MAX_LENGTH || !isCompact(token)) throw invalid('The token is not a signed JWT.');
  const published = async ({ typ, alg, kid }: CompactJWSHeaderParameters) => {
    if (!TYPES.has(String(typ).toLowerCase()) || !ALGORITHMS.includes(alg) || typeof kid !== 'string')
      throw invalid('The token is not an access token of this platform.');
    const found = await find(kid);
    if (found?.alg !== alg) throw invalid('The token is signed by a key this platform does not publish.');
    return found.key;
  };
  let payload: Uint8Array;
  try {
    ({ payload } = await compactVerify(token, published));
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) throw invalid('The signature of the token is false.');
    if (error instanceof errors.JOSENotSupported) throw invalid('The header of the token asks for what is not understood here.');
    if (error instanceof errors.JOSEError || error instanceof TypeError) throw invalid('The token is not a signed JWT.');
    throw error;
  }
  return claimsOf(payload);
};

function claimsOf(payload: Uint8Array): TokenClaims {
  let claims: unknown;
  try {
    claims = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch {
    throw invalid('The token is not a signed JWT.');
  }
  if (CLAIMS.Check(claims)) return claims as unknown as TokenClaims;
  const places = [...new Set(CLAIMS.Errors(claims).map(({ instancePath }) => instancePath || 'a required claim'))];
  throw invalid(`The token lacks a claim, or has one of the wrong type: ${places.slice(0, 5).join(', ')}.`);
}

/** Three parts of base64url as RFC 7515 has it: no padding, no line breaks, no bits left over, nothing behind it. */
function isCompact(token: string): boolean {
  const parts = token.split('.');
  return parts.length === 3 && parts.every(part => part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part);
}
