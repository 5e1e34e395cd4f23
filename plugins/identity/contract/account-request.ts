import { Id, Type } from '@platform/sdk/contract';

/** What somebody asked for who is not signed in. What was asked is sealed with the id as its purpose. */
export const AskedAtThePages = Type.Object({
  request_id: Id,
  env_id: Id,
  kind: Type.Union([
    Type.Literal('sign_up'),
    Type.Literal('password_reset'),
    Type.Literal('email_verification'),
    Type.Literal('account_recovery'),
  ]),
  sealed: Type.Object({ v: Type.Literal(1), kid: Type.String(), iv: Type.String(), ct: Type.String(), tag: Type.String() }),
});
