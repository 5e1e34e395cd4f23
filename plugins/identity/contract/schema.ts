import { Id, Type } from '@platform/sdk/contract';

export const Host = Type.String({ maxLength: 253, pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$' });
export const Name = Type.String({ pattern: '^[a-z0-9:_.-]{1,200}$' });
export const Scopes = Type.Array(Type.String({ maxLength: 200 }), { maxItems: 2_000 });
export const nullable = Type.Union([Type.String(), Type.Null()]);
/** Context that every hosted page carries to the next (G-AUTH-06). */
export const OAuthContext = Type.Object({
  client_id: Type.Optional(Type.String({ maxLength: 300 })),
  redirect_uri: Type.Optional(Type.String({ maxLength: 2_000 })),
  state: Type.Optional(Type.String({ maxLength: 1_000 })),
  code_challenge: Type.Optional(Type.String({ maxLength: 200 })),
  scope: Type.Optional(Type.String({ maxLength: 4_000 })),
  request_uri: Type.Optional(Type.String({ maxLength: 500 })),
  uid: Type.Optional(Type.String({ maxLength: 100 })),
  /** The languages the person reads, most wanted first (OpenID Connect Core 3.1.2.1). */
  ui_locales: Type.Optional(Type.String({ maxLength: 100, pattern: '^[A-Za-z0-9 -]*$' })),
  /** The invitation by which somebody came, by the SHA-256 of its token: it says who invites where to, and opens nothing. */
  invitation: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' })),
  /** The page of this origin to go on to where no application waits; /device and /ciba with their query. */
  return_to: Type.Optional(
    Type.String({ maxLength: 500, pattern: '^/(?:account(?:/mfa)?|(?:device|ciba)(?:[?][A-Za-z0-9=&%_.~-]{0,400})?)$' }),
  ),
});
export const Signed = Type.Object({
  status: Type.Union([
    Type.Literal('ok'),
    Type.Literal('mfa_required'),
    Type.Literal('password_change_required'),
    Type.Literal('verification_required'),
  ]),
  mfa: Type.Optional(
    Type.Object({ challenge_id: Type.String(), methods: Type.Array(Type.Union([Type.Literal('totp'), Type.Literal('recovery_code')])) }),
  ),
  session_token_id: Type.Optional(Type.String()),
  next: Type.String(),
});
export const User = Type.Object({
  user_id: Id,
  email: Type.String(),
  email_verified: Type.Boolean(),
  display_name: nullable,
  status: Type.Union([Type.Literal('active'), Type.Literal('locked'), Type.Literal('disabled')]),
  groups: Type.Array(Type.String()),
  mfa_enrolled: Type.Boolean(),
  created_at: Type.String(),
  last_sign_in_at: nullable,
});
export const UserRow = Type.Object({
  user_id: Id,
  email: Type.String(),
  display_name: nullable,
  status: Type.String(),
  mfa_enrolled: Type.Boolean(),
  created_at: Type.String(),
  last_sign_in_at: nullable,
});
export const SessionRow = Type.Object({
  session_id: Type.String(),
  user_id: Id,
  email: Type.String(),
  created_at: Type.String(),
  expires_at: Type.String(),
});
