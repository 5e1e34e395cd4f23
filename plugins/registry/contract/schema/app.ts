import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { Name, Stamp } from './field.ts';

const AppId = Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,99}$' });
const ClientId = Type.String({ minLength: 1, maxLength: 200 });
const FeatureFlags = Type.Record(Type.String(), Type.Boolean());
const Whitelist = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 500 });
const AuthMode = Type.Union([Type.Literal('self_service'), Type.Literal('group'), Type.Literal('open')]);
const AuthGroup = Type.String({ pattern: '^[a-z0-9:_.-]{1,200}$' });
/** At least two labels and no address; short enough for the name of its challenge. */
export const Fqdn = Type.String({ maxLength: 230, pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$' });

/** G-SYS-08. */
export const CustomDomain = Type.Object({
  fqdn: Type.String(),
  status: Type.Union([Type.Literal('pending'), Type.Literal('verified'), Type.Literal('failed')]),
  txt_name: Type.String(),
  txt_value: Type.String(),
  cname_target: Type.String(),
  verified_at: nullable(Stamp),
  last_error: nullable(Type.String()),
});
export type CustomDomain = Static<typeof CustomDomain>;
export const AppInstance = Type.Object({
  app_instance_id: Id,
  env_id: Id,
  org_id: Id,
  app_id: Type.String(),
  slug: Type.String(),
  name: Type.String(),
  hostname: Type.String(),
  gateway_hostname: Type.String(),
  oauth_client_id: nullable(Type.String()),
  feature_flags: FeatureFlags,
  scope_whitelist: Type.Array(Type.String()),
  service_whitelist: Type.Array(Type.String()),
  auth_mode: AuthMode,
  auth_group: nullable(Type.String()),
  allow_signup: Type.Boolean(),
  custom_domain: nullable(CustomDomain),
  status: Type.Union([Type.Literal('active'), Type.Literal('archived')]),
  version: Type.Integer(),
});
export type AppInstance = Static<typeof AppInstance>;

const settings = {
  oauth_client_id: Type.Optional(nullable(ClientId)),
  feature_flags: Type.Optional(FeatureFlags),
  scope_whitelist: Type.Optional(Whitelist),
  service_whitelist: Type.Optional(Whitelist),
  auth_mode: Type.Optional(AuthMode),
  auth_group: Type.Optional(nullable(AuthGroup)),
  allow_signup: Type.Optional(Type.Boolean()),
};
export const NewAppInstance = Type.Object({ app_id: AppId, slug: Type.String({ maxLength: 64 }), name: Name, ...settings });
export type NewAppInstance = Static<typeof NewAppInstance>;
export const AppInstanceChange = Type.Object({
  app_id: Type.Optional(Type.String()),
  slug: Type.Optional(Type.String()),
  name: Type.Optional(Name),
  ...settings,
});
export type AppInstanceChange = Static<typeof AppInstanceChange>;

export const Binding = Type.Object({
  binding_id: Id,
  env_id: Id,
  app_id: Type.String(),
  app_instance_id: nullable(Id),
  slug: Type.String(),
  created_at: Stamp,
});
export type Binding = Static<typeof Binding>;
export const NewBinding = Type.Object({
  app_id: AppId,
  slug: Type.String({ maxLength: 64 }),
  app_instance_id: Type.Optional(nullable(Id)),
});
