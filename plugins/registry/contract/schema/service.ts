import { nullable, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

export const Enablement = Type.Object({
  service: Type.String(),
  enabled: Type.Boolean(),
  /** Cannot be turned off: the platform itself needs it. */
  essential: Type.Boolean(),
  config: Type.Object({}, { additionalProperties: true }),
  explicit: Type.Boolean(),
  updated_at: nullable(Stamp),
});
export const EnablementChange = Type.Object({
  services: Type.Array(
    Type.Object({
      service: Type.String({ maxLength: 64 }),
      enabled: Type.Boolean(),
      config: Type.Optional(Type.Object({}, { additionalProperties: true })),
    }),
    {
      minItems: 1,
      maxItems: 200,
    },
  ),
});
const Nav = Type.Object({
  page: Type.String(),
  label: Type.String(),
  order: Type.Optional(Type.Number()),
  scope: Type.Optional(Type.String()),
  icon: Type.Optional(Type.String()),
  group: Type.Optional(Type.String({ maxLength: 60 })),
});
const ScopeEntry = Type.Object({
  scope: Type.String(),
  service: Type.String(),
  title: Type.String(),
  admin: Type.Boolean(),
  machine_only: Type.Optional(Type.Boolean()),
  grants: Type.Optional(Type.Union([Type.Literal('read'), Type.Literal('write'), Type.Literal('admin')])),
});
const path = Type.String({ pattern: '^/[A-Za-z0-9/_{}.-]{1,200}$' });
const member = Type.String({ pattern: '^[A-Za-z0-9_.]{1,100}$' });
const Inbox = Type.Object({
  list: path,
  unread: path,
  read: path,
  read_all: path,
  row: Type.Object({ id: member, title: member, at: member, read_at: member, links: Type.Optional(member) }),
  live_types: Type.Array(Type.String(), { maxItems: 20 }),
  settings: Type.Optional(Type.String()),
});
const ServiceEntry = Type.Object({
  service: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
  label: Type.String(),
  base_path: Type.String(),
  /** Of the platform's own services: no environment can turn it off. */
  essential: Type.Optional(Type.Boolean()),
  /** It counts and deletes what it holds of environments when asked. */
  purges_environments: Type.Optional(Type.Boolean()),
  /** Where a person reads what the service has for them. */
  inbox: Type.Optional(Inbox),
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
