import { Id, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

const Kind = Type.Union([Type.Literal('org'), Type.Literal('env')]);

/** A tenant whose change the identity service has still to follow; its name for people who read of it when the record is gone. */
export const FollowedTenant = Type.Object({ kind: Kind, id: Id, org_id: Id, name: Type.String() });
export type FollowedTenant = Static<typeof FollowedTenant>;

/** A create or a clean-up that has not come to its end, and why. */
export const Unfinished = Type.Object({
  id: Id,
  kind: Kind,
  org_id: Id,
  name: Type.String(),
  work: Type.Union([Type.Literal('create'), Type.Literal('clean_up')]),
  since: Stamp,
  attempts: Type.Integer(),
  next_try_at: Type.Union([Stamp, Type.Null()]),
  blocked_by: Type.String(),
});
export type Unfinished = Static<typeof Unfinished>;

const Blocker = Type.Object({ code: Type.String(), detail: Type.String() });

/** What a delete would take along; `hostnames` and `environments` name the first of many. */
export const DeletionPreview = Type.Object({
  kind: Kind,
  id: Id,
  slug: Type.String(),
  display_name: Type.String(),
  counts: Type.Record(Type.String(), Type.Integer()),
  /** What each other service would lose; without counts where it does not say. */
  services: Type.Array(
    Type.Object({ service: Type.String(), label: Type.String(), counts: Type.Optional(Type.Record(Type.String(), Type.Integer())) }),
  ),
  environments: Type.Array(Type.Object({ env_id: Id, slug: Type.String(), display_name: Type.String() })),
  hostnames: Type.Array(Type.String()),
  blocked_by: Type.Array(Blocker),
  kept: Type.Array(Type.String()),
});
export type DeletionPreview = Static<typeof DeletionPreview>;
