import { hash } from 'node:crypto';
import type { Possession } from '@platform/sdk';
import { calculateJwkThumbprint, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from 'jose';
import { kernelProblem } from '../../base/kernel-problem.ts';

/** Keys that clients may hold; the authorization server takes the same (RFC 9449 5.1, RFC 9864). */
export const PROOF_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'ML-DSA-65'];
/** How old a proof may be, and how far ahead of us its maker's clock (RFC 9449 11.1). */
const WINDOW_S = 60;
const MAX_LENGTH = 8_192;

export interface ProofOptions {
  /** Takes a name once for so many seconds; false where somebody has it. Shared by every process. */
  readonly claim: (key: string, seconds: number) => Promise<boolean>;
  readonly now: () => number;
}

/** The challenge for a caller that shows a bound token without its proof, or with one that does not hold (RFC 9449 7.1). */
export function proofRequired(detail: string, error: 'invalid_token' | 'invalid_dpop_proof' = 'invalid_token') {
  return kernelProblem('unauthenticated', {
    detail,
    headers: { 'www-authenticate': `DPoP realm="platform", error="${error}", algs="${PROOF_ALGORITHMS.join(' ')}"` },
  });
}

/** Checks that the caller that shows a token holds the key it is bound to, for this request and once (RFC 9449 4.3). */
export class DpopProofs {
  readonly #options: ProofOptions;

  constructor(options: ProofOptions) {
    this.#options = options;
  }

  readonly check = async ({ proof, method, urls, token, jkt }: Possession): Promise<void> => {
    const refused = (detail: string) => proofRequired(detail, 'invalid_dpop_proof');
    if (proof === undefined || proof === '') throw refused('Send the proof of possession of the token in the header DPoP.');
    const now = this.#options.now();
    const { claims, thumbprint } = await read(proof, now);
    if (thumbprint !== jkt) throw refused('The token is bound to another key than the proof.');
    if (claims['htm'] !== method) throw refused('htm of the proof is not the method of this request.');
    const htu = addressOf(claims['htu']);
    if (htu === undefined || !urls.some(url => addressOf(url) === htu))
      throw refused('htu of the proof is not the address of this request.');
    if (claims['ath'] !== hash('sha256', token, 'base64url')) throw refused('ath of the proof is not the hash of the token.');
    if (typeof claims.iat !== 'number' || Math.abs(now / 1_000 - claims.iat) > WINDOW_S)
      throw refused(`iat of the proof is more than ${WINDOW_S} seconds away.`);
    if (typeof claims.jti !== 'string' || claims.jti === '' || claims.jti.length > 256) throw refused('jti of the proof is missing.');
    // Last: a proof that is refused for another reason is not used up.
    if (!(await this.#options.claim(`dpop:${jkt}:${hash('sha256', claims.jti, 'base64url')}`, 2 * WINDOW_S + 10)))
      throw refused('The proof was used before; make one for each request.');
  };
}

async function read(proof: string, now: number): Promise<{ claims: JWTPayload; thumbprint: string }> {
  if (proof.length > MAX_LENGTH) throw proofRequired('The proof is too long.', 'invalid_dpop_proof');
  try {
    const options = { typ: 'dpop+jwt', algorithms: PROOF_ALGORITHMS, currentDate: new Date(now), clockTolerance: WINDOW_S };
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, options);
    return { claims: payload, thumbprint: await calculateJwkThumbprint(protectedHeader.jwk as object) };
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException)
      throw proofRequired('The proof is not a signed dpop+jwt with its public key.', 'invalid_dpop_proof');
    throw error;
  }
}

/** An address without query and fragment, as RFC 3986 6.2.2 and 6.2.3 compare them. */
function addressOf(url: unknown): string | undefined {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  return parsed?.protocol === 'https:' ? `${parsed.origin}${parsed.pathname}` : undefined;
}
