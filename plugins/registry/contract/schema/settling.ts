import { Id, type Static, Type } from '@platform/sdk/contract';

/** An acceptance that has begun: it stands in the table of that name. */
export const BegunAcceptance = Type.Object({ acceptance_id: Id });
export type BegunAcceptance = Static<typeof BegunAcceptance>;

/** A removal that has begun, with as much of its caller as the trail needs. */
export const BegunRemoval = Type.Object({
  removal_id: Id,
  org_id: Id,
  user_id: Type.String(),
  caller: Type.Object({ kind: Type.String(), subject: Type.String(), userId: Type.Optional(Type.String()) }),
  correlation_id: Type.String(),
});
export type BegunRemoval = Static<typeof BegunRemoval>;
