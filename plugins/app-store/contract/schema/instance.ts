import { Id, nullable, type Static, Type } from '@platform/sdk/contract';
import { DomainBinding } from './domain.ts';
import { Fqdn } from './field.ts';

export const InstanceStatus = Type.Union(
  [
    Type.Literal('onboarding'),
    Type.Literal('provisioning'),
    Type.Literal('active'),
    Type.Literal('suspended'),
    Type.Literal('rejected'),
    Type.Literal('failed'),
    Type.Literal('uninstalling'),
    Type.Literal('uninstalled'),
  ],
  { title: 'Status' },
);
export type InstanceStatus = Static<typeof InstanceStatus>;

/** G-APP-03. */
export const Instance = Type.Object({
  instance_id: Id,
  listing_id: Id,
  app_slug: Type.String(),
  channel: Type.String(),
  version: Type.String(),
  org_id: Id,
  env_id: Id,
  name: Type.String(),
  slug: Type.String(),
  domain: Type.String(),
  gateway_domain: Type.String(),
  app_instance_id: nullable(Id),
  oauth_client: nullable(Type.Object({ client_id: Type.String(), client_id_issued_at: Type.Integer() })),
  roles: Type.Array(Type.String()),
  groups: Type.Array(Type.String()),
  statistics_property_id: nullable(Id),
  workflow_run_id: nullable(Type.String()),
  status: InstanceStatus,
  last_error: nullable(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
});
export type Instance = Static<typeof Instance>;

const Naming = {
  name: Type.String({ title: 'Name', minLength: 1, maxLength: 120 }),
  slug: Type.String({ title: 'Slug', maxLength: 64, description: 'The first part of its host name' }),
};
const release = {
  listing_id: Type.Optional(Id),
  app_slug: Type.Optional(Type.String({ title: 'Application', maxLength: 64 })),
  channel: Type.Optional(Type.String({ title: 'Channel', maxLength: 64 })),
  version: Type.Optional(Type.String({ title: 'Version', maxLength: 64 })),
};
const wish = {
  custom_domain: Type.Optional(Fqdn),
  auth_url: Type.String({ title: 'Where people sign in', minLength: 8, maxLength: 300 }),
  public_signup: Type.Boolean({ title: 'Anybody may open an account', default: false }),
};
export const Setup = Type.Object({ ...release, instance: Type.Object(Naming), ...wish });
export type Setup = Static<typeof Setup>;

/** The same in one level, as a form of the console asks for it. */
export const Install = Type.Object({
  listing_id: Type.String({ title: 'Application', optionsFrom: 'installableListings', maxLength: 64 }),
  ...Naming,
  auth_url: Type.String({ title: 'Where people sign in', optionsFrom: 'authUrls', minLength: 8, maxLength: 300 }),
  public_signup: wish.public_signup,
  custom_domain: Type.Optional(
    Type.String({ title: 'Domain of your own', maxLength: 190, description: 'The default host is used when left out' }),
  ),
});
export const OauthClient = Type.Object({
  client_id: Type.String(),
  client_secret: Type.Optional(Type.String()),
  client_id_issued_at: Type.Integer(),
});
/** The only answer in which the client's secret stands (APP-041); while an install waits for its onboarding there is no client yet. */
export const Installed = Type.Object({
  instance: Instance,
  status: Type.Optional(InstanceStatus),
  oauth_client: nullable(OauthClient),
  sdk_snippet: nullable(Type.String()),
  domain_binding: nullable(DomainBinding),
});
export type Installed = Static<typeof Installed>;
/** The same as a page shows it: what has to be copied comes first. */
export const ShownInstall = Type.Object({
  client_secret: Type.Optional(Type.String()),
  client_id: nullable(Type.String()),
  host: Type.String(),
  status: InstanceStatus,
  sdk_snippet: nullable(Type.String()),
});
export type ShownInstall = Static<typeof ShownInstall>;
