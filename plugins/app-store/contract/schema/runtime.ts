import { Id, nullable, type Static, Type } from '@platform/sdk/contract';

/** What an application's frontend is told (G-APP-04): nothing that is not public. */
export const RuntimeContext = Type.Object({
  app_instance_id: Id,
  app_slug: Type.String(),
  version: nullable(Type.String()),
  env_id: Id,
  org_id: Id,
  hostname: Type.String(),
  gateway_url: Type.String(),
  feature_flags: Type.Record(Type.String(), Type.Boolean()),
  auth: Type.Object({ auth_mode: Type.String(), allow_signup: Type.Boolean() }),
  branding: Type.Object({}, { additionalProperties: true }),
});
export type RuntimeContext = Static<typeof RuntimeContext>;

export const Figures = Type.Object({
  listings: Type.Integer(),
  published: Type.Integer(),
  instances: Type.Integer(),
  waiting: Type.Integer(),
  items: Type.Array(Type.Object({ app: Type.String(), installs: Type.Integer() })),
});
export type Figures = Static<typeof Figures>;
