import type { PasskeyChallenge, PasskeyCreation } from '../identity-api.ts';

const text = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/[+/=]/g, char => ({ '+': '-', '/': '_' })[char] ?? '');
const bytes = (base64url: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64url.replace(/[-_]/g, char => (char === '-' ? '+' : '/'))), char => char.charCodeAt(0));

/** Has an authenticator make a passkey it can find again by itself, and recognise its owner by (WebAuthn 5.4). */
export async function createPasskey({
  challenge,
  rp_id: id,
  rp_name,
  timeout_ms: timeout,
  user,
  algorithms,
  exclude,
}: PasskeyCreation): Promise<object> {
  const made = (await navigator.credentials.create({
    publicKey: {
      challenge: bytes(challenge),
      rp: { id, name: rp_name },
      user: { id: bytes(user.id), name: user.name, displayName: user.display_name },
      pubKeyCredParams: algorithms.map(alg => ({ type: 'public-key', alg })),
      excludeCredentials: exclude.map(known => ({ type: 'public-key', id: bytes(known) })),
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      timeout,
    },
  })) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  return {
    id: made.id,
    client_data: text(response.clientDataJSON),
    attestation_object: text(response.attestationObject),
    transports: response.getTransports(),
  };
}

/** Asks for a passkey of this page: in a window of the browser, or, with `conditional`, among what it offers to fill in. */
export async function askPasskey(
  { challenge, rp_id: rpId, timeout_ms: timeout }: PasskeyChallenge,
  signal: AbortSignal,
  conditional = false,
): Promise<object> {
  const used = (await navigator.credentials.get({
    publicKey: { challenge: bytes(challenge), rpId, userVerification: 'required', timeout },
    signal,
    ...(conditional ? { mediation: 'conditional' as const } : {}),
  })) as PublicKeyCredential;
  const response = used.response as AuthenticatorAssertionResponse;
  return {
    id: used.id,
    client_data: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData),
    signature: text(response.signature),
    user_handle: text(response.userHandle ?? new ArrayBuffer(0)),
  };
}
