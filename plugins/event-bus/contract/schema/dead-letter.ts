import { Id, Instant, Type, type Static } from '@platform/sdk/contract';
import { StreamEntry } from './event.ts';

const Attempt = Type.Object({ at: Type.String(), reason: Type.String(), consumer: Type.Optional(Type.String()) });
export type Attempt = Static<typeof Attempt>;

export const DeadLetter = Type.Object({
  dlq_id: Id,
  env_id: Type.String(),
  stream_family: Type.String(),
  entry: StreamEntry,
  reason: Type.String(),
  /** Reason of every attempt, oldest first (H-25). */
  reasons: Type.Array(Type.String()),
  /** The same with the time and the consumer of each attempt. */
  history: Type.Array(Attempt),
  attempts: Type.Integer(),
  group: Type.String(),
  failed_at: Type.String(),
});
export type DeadLetter = Static<typeof DeadLetter>;
export const Replayed = Type.Object({ message_id: Type.String(), stream: Type.String(), event_type: Type.String() });
export type Replayed = Static<typeof Replayed>;
const filter = {
  stream_family: Type.Optional(Type.String({ title: 'Family', maxLength: 64 })),
  event_type: Type.Optional(Type.String({ title: 'Event', maxLength: 200 })),
  group: Type.Optional(Type.String({ title: 'Consumer group', maxLength: 160 })),
  reason: Type.Optional(Type.String({ title: 'Reason contains', maxLength: 200 })),
  failed_after: Type.Optional(Instant),
  failed_before: Type.Optional(Instant),
};
const more = {
  dry_run: Type.Optional(Type.Boolean({ title: 'Only show what would be replayed' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, title: 'At most' })),
};
export const DeadLetterFilter = Type.Object(filter);
export type DeadLetterFilter = Static<typeof DeadLetterFilter>;
/** One id, some ids, or everything a filter matches. */
export const ReplayRequest = Type.Object({
  env_id: Type.Optional(Id),
  dlq_id: Type.Optional(Id),
  dlq_ids: Type.Optional(Type.Array(Id, { maxItems: 100 })),
  filter: Type.Optional(DeadLetterFilter),
  ...more,
});
/** The same in one level, as a form fills it in. */
export const ReplayMatching = Type.Object({
  ...filter,
  ...more,
  dry_run: Type.Optional(Type.Boolean({ title: 'Only show what would be replayed', default: true })),
});
const ReplayedRow = Type.Union([Replayed, Type.Object({ dlq_id: Id, error: Type.String(), status: Type.Integer() })]);
/** What matched, oldest first; of a dry run nothing was replayed. `more`: the limit left some for the next call. */
export const ReplayReport = Type.Object({
  dry_run: Type.Boolean(),
  matched: Type.Integer(),
  replayed: Type.Integer(),
  more: Type.Boolean(),
  matches: Type.Array(
    Type.Object({
      dlq_id: Id,
      event_type: Type.String(),
      stream_family: Type.String(),
      group: Type.String(),
      reason: Type.String(),
      failed_at: Type.String(),
      error: Type.Optional(Type.String()),
    }),
  ),
});
export type ReplayReport = Static<typeof ReplayReport>;
export const ReplayResult = Type.Union([Replayed, Type.Object({ results: Type.Array(ReplayedRow) }), ReplayReport]);
