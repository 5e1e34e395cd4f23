import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { Fqdn } from './field.ts';

/** G-APP-05. */
export const DomainBinding = Type.Object({
  binding_id: Id,
  instance_id: Id,
  fqdn: Type.String(),
  method: nullable(Type.Union([Type.Literal('txt'), Type.Literal('cname')])),
  txt_name: Type.String(),
  txt_record: Type.String(),
  cname_token: Type.String(),
  cname_target: Type.String(),
  status: Type.Union([
    Type.Literal('pending'),
    Type.Literal('verified'),
    Type.Literal('active'),
    Type.Literal('failed'),
    Type.Literal('removed'),
  ]),
  attempts: Type.Integer(),
  verified_at: nullable(Type.String()),
  last_error: nullable(Type.String()),
});
export type DomainBinding = Static<typeof DomainBinding>;

/** Without a challenge it asks for a domain; with one it has DNS looked at. Where both are given the alias decides (APP-054). */
export const DomainBind = Type.Object({
  fqdn: Fqdn,
  txt_record: Type.Optional(Type.String({ maxLength: 255 })),
  cname_token: Type.Optional(Type.String({ maxLength: 63 })),
  cname_target: Type.Optional(Type.String({ maxLength: 253 })),
});
export type DomainBind = Static<typeof DomainBind>;
