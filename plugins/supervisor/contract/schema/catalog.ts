import { type Static, type TSchema, Type } from '@platform/sdk/contract';

const ServiceType = Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$', description: 'Wire id of a service' });
export { ServiceType };

/** A line of the catalog, without what only this machine knows (G-CAP-02, G-CAP-06). */
export const CatalogEntry = Type.Object(
  {
    service_type: ServiceType,
    start_priority: Type.Integer({ minimum: 1, maximum: 1_000, description: 'Tier: everything of a lower one is up first' }),
    placement: Type.Array(Type.String({ maxLength: 80 }), { maxItems: 32, description: 'pin:{ip}, pin:edge, anti:{service}' }),
    singleton: Type.Boolean({ description: 'At most one active instance in the fleet' }),
    min_instances: Type.Integer({ minimum: 0, maximum: 64 }),
    health: Type.Object({ path: Type.Literal('/v1/health'), timeout_ms: Type.Literal(2_000) }),
    provision: Type.Object({ cpu_pct: Type.Number({ minimum: 0, maximum: 101 }), mem_pct: Type.Number({ minimum: 0, maximum: 101 }) }),
  },
  { additionalProperties: false },
);
export type CatalogEntry = Static<typeof CatalogEntry>;

/** A line of a catalog file: it may bring code of this machine, and settings that its process inherits. */
export const CatalogFileEntry: TSchema = Type.Object(
  {
    ...CatalogEntry.properties,
    entry: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description: 'Folder of a plugin on this machine' })),
    env_allow: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,99}$' }), { maxItems: 100 })),
  },
  { additionalProperties: false },
);
export type CatalogFileEntry = CatalogEntry & { readonly entry?: string; readonly env_allow?: readonly string[] };

/** The same as it is shown: with its name. */
export const CatalogRow = Type.Object({
  ...CatalogEntry.properties,
  start_priority: Type.Integer(),
  title: Type.String(),
  builtin: Type.Boolean(),
});
