import { Type } from '@platform/sdk/contract';

const Issuer = Type.String({
  maxLength: 300,
  pattern: '^https?://[A-Za-z0-9.:\\[\\]-]+(/[A-Za-z0-9._~/-]*)?$',
  description: 'As its discovery document says it',
});
const Label = Type.String({ minLength: 1, maxLength: 60, pattern: '\\S', description: 'What the button calls it' });
/** What an administrator says; the secret is never told again. */
export const NewUpstream = Type.Object({
  issuer: Issuer,
  client_id: Type.String({ minLength: 1, maxLength: 300 }),
  client_secret: Type.String({ minLength: 1, maxLength: 1_000 }),
  label: Label,
  allow_sign_up: Type.Optional(Type.Boolean({ description: 'Whether somebody without an account gets one; no unless said otherwise' })),
});
export const Upstream = Type.Object({
  issuer: Issuer,
  client_id: Type.String(),
  label: Label,
  allow_sign_up: Type.Boolean(),
  redirect_uri: Type.String({ description: 'To register there' }),
  updated_at: Type.String(),
});
/** What the provider sent the browser back with (RFC 6749 4.1.2, RFC 9207). */
export const Returned = Type.Object({
  state: Type.String({ minLength: 1, maxLength: 200 }),
  code: Type.Optional(Type.String({ minLength: 1, maxLength: 4_000 })),
  error: Type.Optional(Type.String({ maxLength: 200 })),
  iss: Type.Optional(Type.String({ maxLength: 300 })),
});
