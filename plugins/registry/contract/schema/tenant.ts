import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { Status, Stamp, Name, Domain } from './field.ts';

/** What the state of an environment and its organization allow together. */
export const EnvironmentState = Type.Union([
  Type.Literal('active'),
  Type.Literal('suspended'),
  Type.Literal('archived'),
  Type.Literal('absent'),
]);
export type EnvironmentState = Static<typeof EnvironmentState>;
/** G-SYS-01. */
export const Org = Type.Object({
  org_id: Id,
  slug: Type.String(),
  display_name: Type.String(),
  org_domain: Type.String(),
  status: Status,
  created_at: Stamp,
  updated_at: Stamp,
  version: Type.Integer(),
});
export type Org = Static<typeof Org>;
/** A domain of an organization outside the platform's own, and the DNS record that proves it. */
export const OrgDomain = Type.Object({
  domain: Type.String(),
  status: Type.Union([Type.Literal('pending'), Type.Literal('verified')]),
  txt_name: Type.String(),
  txt_value: Type.String(),
  verified_at: nullable(Stamp),
  last_error: nullable(Type.String()),
});
export type OrgDomain = Static<typeof OrgDomain>;
export const NewOrg = Type.Object({ slug: Type.String({ maxLength: 64 }), display_name: Name, org_domain: Type.Optional(Domain) });
export const OrgChange = Type.Object({
  slug: Type.Optional(Type.String()),
  display_name: Type.Optional(Name),
  org_domain: Type.Optional(Domain),
  status: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('suspended')])),
});
export const Env = Type.Object({
  env_id: Id,
  org_id: Id,
  slug: Type.String(),
  display_name: Type.String(),
  auth_domain: nullable(Type.String()),
  status: Status,
  created_at: Stamp,
  updated_at: Stamp,
  version: Type.Integer(),
});
export type Env = Static<typeof Env>;
export const NewEnv = Type.Object({
  org_id: Id,
  slug: Type.String({ maxLength: 64 }),
  display_name: Name,
  auth_domain: Type.Optional(Domain),
});
export const EnvChange = Type.Object({
  slug: Type.Optional(Type.String()),
  display_name: Type.Optional(Name),
  auth_domain: Type.Optional(nullable(Domain)),
  status: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('suspended')])),
});
/** Payload of created and updated events: the whole tenant, env members null for an organization's own. */
export const TenantSnapshot = Type.Object({
  env_id: nullable(Id),
  env_slug: nullable(Type.String()),
  env_display_name: nullable(Type.String()),
  org_id: Id,
  org_slug: Type.String(),
  org_domain: Type.String(),
  org_display_name: Type.String(),
  auth_domain: nullable(Type.String()),
  status: Status,
});
export type TenantSnapshot = Static<typeof TenantSnapshot>;
