import { Type } from '@platform/sdk/contract';
import { nullable } from '../schema.ts';

export const Decision = Type.Object({ decision: Type.Union([Type.Literal('approve'), Type.Literal('deny')]) });
/** Letters of RFC 8628 user codes, with or without the hyphen and in either case: people type them. */
export const UserCode = Type.String({ minLength: 8, maxLength: 12, pattern: '^[A-Za-z -]+$' });
/** Who asks, and for what, in words for the person who decides. */
export const Asking = Type.Object({
  client: Type.Object({ name: Type.String(), logo_url: nullable }),
  scopes: Type.Array(Type.Object({ scope: Type.String(), title: Type.String() })),
});
export const Account = Type.Object({
  id: Type.String(),
  name: Type.String(),
  mask: Type.String(),
  type: Type.String(),
  selected: Type.Literal(true),
});
export const SigningKey = Type.Object({
  kid: Type.String(),
  alg: Type.String(),
  state: Type.Union([Type.Literal('next'), Type.Literal('current'), Type.Literal('retired')]),
  created_at: Type.String(),
  activated_at: nullable,
  retired_at: nullable,
});
/** Metadata of RFC 7591 is open: what a server does not know it ignores. */
export const ClientMetadata = Type.Object({}, { additionalProperties: true });
