import { Id, Instant, Type, type Static } from '@platform/sdk/contract';
import { StreamEntry } from './event.ts';

const NAME = '^[a-zA-Z0-9._-]{1,64}$';
export const GroupName = Type.String({ pattern: NAME });

export const ConsumeRequest = Type.Object({
  stream_family: Type.String(),
  consumer_group: GroupName,
  env_id: Type.Optional(Type.Union([Id, Type.Literal('*')])),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  block_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000 })),
  start: Type.Optional(Type.Union([Type.Literal('earliest'), Type.Literal('latest')])),
  consumer: Type.Optional(GroupName),
  types: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 270 }), {
      minItems: 1,
      maxItems: 100,
      description:
        'Only events of these types; what else the group comes to is acknowledged for it. Every consumer of a group asks for the same',
    }),
  ),
  pending: Type.Optional(Type.Boolean({ description: 'What this consumer has read and not settled, in order, in place of new entries' })),
});
/** Entries that retention cut before the group had read them: those after `after`, up to and with `through` (H-22). */
export const Gap = Type.Object({
  stream: Type.String(),
  env_id: Type.String(),
  stream_family: Type.String(),
  group: Type.String(),
  after: Type.String(),
  through: Type.String(),
});
export type Gap = Static<typeof Gap>;
export const Consumed = Type.Object({ entries: Type.Array(StreamEntry), gaps: Type.Optional(Type.Array(Gap)) });
export type Consumed = Static<typeof Consumed>;
export const CloseRequest = Type.Object({ stream_family: Type.String(), consumer_group: GroupName });

const settled = {
  env_id: Type.Optional(Id),
  stream_family: Type.String(),
  consumer_group: GroupName,
  message_ids: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 1_000 })),
  message_id: Type.Optional(Type.String({ maxLength: 64 })),
  consumer: Type.Optional(
    Type.String({
      pattern: NAME,
      description: 'Who holds the entries, as it was named when they were read; an entry that another consumer has taken since is lost',
    }),
  ),
};
/** Entries that were not the caller's any more, or never: taken over, settled before, or unknown (H-21). */
const lost = Type.Array(Type.String());
export const AckRequest = Type.Object(settled);
export const Acked = Type.Object({ acked: Type.Integer(), lost });
export type Acked = Static<typeof Acked>;
export const NackRequest = Type.Object({
  ...settled,
  retry_after_secs: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  reason: Type.Optional(Type.String({ maxLength: 500 })),
  earlier: Type.Optional(
    Type.Array(Type.Object({ at: Instant, reason: Type.String({ maxLength: 500 }) }), {
      maxItems: 16,
      description: 'Tries of the consumer before this one',
    }),
  ),
  dead_letter: Type.Optional(Type.Boolean({ description: 'Straight to the dead letters: another try cannot help' })),
});
export const Nacked = Type.Object({ queued: Type.Integer(), lost });
export type Nacked = Static<typeof Nacked>;
export const ExtendRequest = Type.Object(settled);
export const Extended = Type.Object({ extended: Type.Integer(), lease_secs: Type.Integer(), lost });
export type Extended = Static<typeof Extended>;
