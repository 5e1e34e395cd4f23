import { Id, type Static, Type } from '@platform/sdk/contract';

const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
export const Status = Type.Union([Type.Literal('active'), Type.Literal('suspended'), Type.Literal('archived')]);
const Stamp = Type.String();
const Name = Type.String({ minLength: 1, maxLength: 100 });
const Domain = Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$' });

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
export const NewEnv = Type.Object({ org_id: Id, slug: Type.String({ maxLength: 64 }), display_name: Name, auth_domain: Type.Optional(Domain) });
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

export const Enablement = Type.Object({
  service: Type.String(),
  enabled: Type.Boolean(),
  config: Type.Object({}, { additionalProperties: true }),
  explicit: Type.Boolean(),
  updated_at: nullable(Stamp),
});
export const EnablementChange = Type.Object({
  services: Type.Array(Type.Object({ service: Type.String({ maxLength: 64 }), enabled: Type.Boolean(), config: Type.Optional(Type.Object({}, { additionalProperties: true })) }), {
    minItems: 1,
    maxItems: 200,
  }),
});

const Access = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('viewer')]);
export const Bootstrap = Type.Object({
  user_id: Type.String(),
  platform_admin: Type.Boolean(),
  orgs: Type.Array(Type.Object({ ...Org.properties, access: Access, envs: Type.Array(Env) })),
  system: Type.Object({ org_id: Id, env_id: Id }),
  features: Type.Record(Type.String(), Type.Boolean()),
  feature_version: Type.String(),
});
export const Member = Type.Object({ user_id: Type.String(), email: Type.String(), display_name: nullable(Type.String()), groups: Type.Array(Type.String()), access: Access, joined_at: Stamp });

const Nav = Type.Object({ page: Type.String(), label: Type.String(), order: Type.Optional(Type.Number()), scope: Type.Optional(Type.String()), icon: Type.Optional(Type.String()) });
const ScopeEntry = Type.Object({
  scope: Type.String(),
  service: Type.String(),
  title: Type.String(),
  admin: Type.Boolean(),
  machine_only: Type.Optional(Type.Boolean()),
  grants: Type.Optional(Type.Union([Type.Literal('read'), Type.Literal('write'), Type.Literal('admin')])),
});
const ServiceEntry = Type.Object({
  service: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
  label: Type.String(),
  base_path: Type.String(),
  nav: Type.Array(Nav, { maxItems: 100 }),
  pages: Type.Array(Type.String(), { maxItems: 200 }),
  actions: Type.Array(Type.Object({}, { additionalProperties: true }), { maxItems: 500 }),
  stream_families: Type.Array(Type.String(), { maxItems: 50 }),
});
const ErrorCode = Type.Object({ service: Type.String(), code: Type.String(), status: Type.Integer(), title: Type.String() });
export const Registration = Type.Object({
  vertical: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
  version: Type.String({ maxLength: 2_000 }),
  services: Type.Array(ServiceEntry, { maxItems: 200 }),
  admin_scopes: Type.Array(Type.String(), { maxItems: 2_000 }),
  scopes: Type.Array(ScopeEntry, { maxItems: 5_000 }),
  error_codes: Type.Array(ErrorCode, { maxItems: 5_000 }),
  listings: Type.Array(Type.Object({}, { additionalProperties: true }), { maxItems: 1_000 }),
});
export type Registration = Static<typeof Registration>;
export const RegisteredService = Type.Object({
  ...ServiceEntry.properties,
  vertical: Type.String(),
  admin_scopes: Type.Array(Type.String()),
  error_codes: Type.Array(ErrorCode),
  listings: Type.Array(Type.Object({}, { additionalProperties: true })),
  health: Type.Union([Type.Literal('up'), Type.Literal('down')]),
});

/** G-SYS-13. */
export const Actor = Type.Object({ kind: Type.Union([Type.Literal('user'), Type.Literal('workload')]), id: Type.String(), act: Type.Optional(Type.String()) });
const Resource = Type.Object({ type: Type.String({ maxLength: 100 }), id: Type.String({ maxLength: 200 }) });
const Outcome = Type.Union([Type.Literal('success'), Type.Literal('denied'), Type.Literal('error')]);
export const Audit = Type.Object({
  audit_id: Id,
  ts: Stamp,
  service: Type.String(),
  env_id: Id,
  action: Type.String(),
  actor: Actor,
  resource: Type.Optional(Resource),
  outcome: Outcome,
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  correlation_id: Type.String(),
});
export type Audit = Static<typeof Audit>;
export const NewAudit = Type.Object({
  env_id: Id,
  action: Type.String({ minLength: 1, maxLength: 200 }),
  /** Accepted and ignored: the service is who the certificate says. */
  service: Type.Optional(Type.String()),
  actor: Type.Optional(Actor),
  resource: Type.Optional(Resource),
  outcome: Type.Optional(Outcome),
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  correlation_id: Type.Optional(Type.String({ maxLength: 128 })),
  occurred_at: Type.Optional(Type.String({ format: 'date-time' })),
});

const Colour = Type.Union([Type.String({ pattern: '^(#[0-9a-fA-F]{6})?$' }), Type.Null()]);
const text = (maxLength: number) => Type.Union([Type.String({ maxLength }), Type.Null()]);
/** G-SYS-09: empty or null means not set. */
export const BRANDING_FIELDS = ['primary_color', 'secondary_color', 'background_color', 'text_color', 'font_family', 'logo_url', 'theme_mode', 'custom_css'] as const;
export const Branding = Type.Object({
  primary_color: Type.Optional(Colour),
  secondary_color: Type.Optional(Colour),
  background_color: Type.Optional(Colour),
  text_color: Type.Optional(Colour),
  font_family: Type.Optional(text(200)),
  logo_url: Type.Optional(Type.Union([Type.String({ pattern: '^(https://.{1,500})?$' }), Type.Null()])),
  theme_mode: Type.Optional(Type.Union([Type.Literal('light'), Type.Literal('dark'), Type.Literal('system'), Type.Literal(''), Type.Null()])),
  custom_css: Type.Optional(text(20_000)),
});
export type Branding = Static<typeof Branding>;
export const MergedBranding = Type.Object({ ...Branding.properties, sources: Type.Record(Type.String(), Type.Union([Type.Literal('org'), Type.Literal('env'), Type.Literal('default')])) });

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

const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
export const PolicySet = Type.Object({
  policy_set_id: Id,
  env_id: Id,
  service: Type.String(),
  name: Type.String(),
  origin: Type.Union([Type.Literal('platform'), Type.Literal('tenant')]),
  mode: Type.Union([Type.Literal('shadow'), Type.Literal('enforced')]),
  version: Type.Integer(),
  policies: Type.String(),
  created_at: Stamp,
  updated_at: Stamp,
  updated_by: Type.String(),
});
export type PolicySet = Static<typeof PolicySet>;
export const Relation = Type.Object({ relation_id: Id, env_id: Id, service: Type.String(), subject: Type.String(), relation: Type.String(), object: Type.String() });
export const Attribute = Type.Object({ attribute_id: Id, env_id: Id, service: Type.String(), principal: Type.String(), key: Type.String(), value: Type.Union([Scalar, Type.Array(Scalar)]) });
export const PolicyChange = Type.Object({
  service: Type.String(),
  policy_set: Type.Union([PolicySet, Type.Null()]),
  deleted_id: Type.Optional(Type.String()),
  version: Type.Integer(),
  mode: Type.Union([Type.Literal('shadow'), Type.Literal('enforced')]),
  seeded: Type.Boolean(),
});
