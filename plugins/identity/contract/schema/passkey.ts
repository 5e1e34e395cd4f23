import { Id, Type } from '@platform/sdk/contract';
import { nullable } from '../schema.ts';

/** Bytes as the browser hands them over, base64url. */
const bytes = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[A-Za-z0-9_-]+$' });
export const PasskeyName = Type.String({ minLength: 1, maxLength: 60, pattern: '\\S' });
export const Passkey = Type.Object({
  passkey_id: Id,
  name: Type.String(),
  /** Its keeper copies it between the person's devices. */
  synced: Type.Boolean(),
  /** Not accepted any more: its counter went back, so a copy of it is about. */
  suspended: Type.Boolean(),
  created_at: Type.String(),
  last_used_at: nullable,
});
/** What an authenticator is asked for. User verification is always required: a passkey is both factors. */
export const PasskeyChallenge = Type.Object({ challenge: Type.String(), rp_id: Type.String(), timeout_ms: Type.Integer() });
export const PasskeyCreation = Type.Object({
  ...PasskeyChallenge.properties,
  rp_name: Type.String(),
  user: Type.Object({ id: Type.String(), name: Type.String(), display_name: Type.String() }),
  algorithms: Type.Array(Type.Integer()),
  exclude: Type.Array(Type.String()),
});
/** AuthenticatorAttestationResponse of WebAuthn. */
export const Attestation = Type.Object({
  id: bytes(1_400),
  client_data: bytes(8_000),
  attestation_object: bytes(16_000),
  transports: Type.Array(Type.String({ maxLength: 30, pattern: '^[a-z-]+$' }), { maxItems: 10 }),
});
/** AuthenticatorAssertionResponse of WebAuthn. */
export const Assertion = Type.Object({
  id: bytes(1_400),
  client_data: bytes(8_000),
  authenticator_data: bytes(4_000),
  signature: bytes(8_000),
  user_handle: bytes(100),
});
