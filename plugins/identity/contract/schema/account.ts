import { Type } from '@platform/sdk/contract';
import { nullable } from '../schema.ts';
import { RecoveryOutlook } from './recovery.ts';

export const Email = Type.String({ maxLength: 320, pattern: '^\\s*[^@\\s]+@[^@\\s]+\\s*$' });
/** Long enough for what is refused as too long to be told so by name (G-AUTH-08). */
export const Password = Type.String({ minLength: 1, maxLength: 1_024 });
/** Once more, where the account has one. One that signs in by other means has done so a moment ago (`sign_in_again`). */
export const ShownAgain = Type.Optional(Password);
/** What a link of a mail carries. */
export const LinkToken = Type.String({ minLength: 1, maxLength: 200 });
/** The same whether the address belongs to an account or not (IDN-007). */
export const Taken = Type.Object({ status: Type.Literal('ok') });
/** What a signed-in person sees of the own account. */
export const Account = Type.Object({
  email: Type.String(),
  email_verified: Type.Boolean(),
  display_name: nullable,
  has_password: Type.Boolean(),
  mfa_enrolled: Type.Boolean(),
  recovery_codes_left: Type.Integer(),
  /** A recovery of the account that somebody confirmed; nothing where none is under way. */
  recovery: Type.Union([RecoveryOutlook, Type.Null()]),
});
export const OwnSession = Type.Object({
  session_id: Type.String(),
  /** Browser and system, in a few words. */
  device: nullable,
  current: Type.Boolean(),
  created_at: Type.String(),
  last_seen_at: Type.String(),
});
/** An authenticator to set up: the secret as text, as a link, and as the dark modules of a QR code (an SVG path in units of one module). */
export const Authenticator = Type.Object({
  secret: Type.String(),
  otpauth_uri: Type.String(),
  qr: Type.Object({ size: Type.Integer(), path: Type.String() }),
});
export const RecoveryCodes = Type.Object({ recovery_codes: Type.Array(Type.String()) });
