import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { AppInstance, CustomDomain } from './app.ts';
import { Status } from './field.ts';
import { Access } from './member.ts';
import { Org, Env } from './tenant.ts';

export const Bootstrap = Type.Object({
  user_id: Type.String(),
  platform_admin: Type.Boolean(),
  orgs: Type.Array(Type.Object({ ...Org.properties, access: Access, envs: Type.Array(Env) })),
  system: Type.Object({ org_id: Id, env_id: Id }),
  features: Type.Record(Type.String(), Type.Boolean()),
  feature_version: Type.String(),
});
export const Resolved = Type.Object({
  hostname: Type.String(),
  kind: Type.Union([Type.Literal('platform'), Type.Literal('tenant'), Type.Literal('custom')]),
  service: Type.String(),
  env_id: Id,
  env_slug: Type.String(),
  org_id: Id,
  app_id: nullable(Type.String()),
  app_instance_id: nullable(Type.String()),
  status: Status,
  ttl_s: Type.Integer(),
});
export type Resolved = Static<typeof Resolved>;
const { app_instance_id, env_id, scope_whitelist, service_whitelist, auth_mode, auth_group, allow_signup, oauth_client_id } =
  AppInstance.properties;
export const AppScopes = Type.Object({ app_instance_id, scope_whitelist, service_whitelist });
export const AppAuthMode = Type.Object({ app_instance_id, env_id, auth_env: Id, auth_mode, auth_group, allow_signup, oauth_client_id });
export const AppDomain = Type.Object({
  env_id,
  app_instance_id,
  fqdn: nullable(Type.String()),
  status: nullable(CustomDomain.properties.status),
});
