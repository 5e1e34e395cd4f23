import { Id, type Static, Type } from '@platform/sdk/contract';
import { Attempt } from './message.ts';
import { Channel } from './send.ts';

/** G-POST-05. */
export const DeadLetter = Type.Object({
  dead_letter_id: Id,
  notification_id: Id,
  delivery_id: Id,
  channel: Type.String(),
  error: Type.String(),
  attempts: Type.Integer(),
  failed_at: Type.String(),
  history: Type.Array(Attempt),
});
export type DeadLetter = Static<typeof DeadLetter>;
export const Replayed = Type.Object({ notification_id: Id, delivery_id: Id, status: Type.Literal('pending') });
export const ReplayMatching = Type.Object({ channel: Type.Optional(Channel) });
export const ReplayReport = Type.Object({ replayed: Type.Integer(), more: Type.Boolean() });

/** An address that mail is not sent to any more, and the words that said why. */
export const Suppression = Type.Object({
  suppression_id: Id,
  channel: Type.String(),
  address: Type.String(),
  reason: Type.String(),
  notification_id: Type.Union([Id, Type.Null()]),
  created_at: Type.String(),
});
export type Suppression = Static<typeof Suppression>;
export const NewSuppression = Type.Object({
  address: Type.String({ minLength: 3, maxLength: 320 }),
  reason: Type.Optional(Type.String({ maxLength: 500 })),
});
export const Bounce = Type.Object({
  message_id: Type.String({ maxLength: 400, description: 'Message-ID of the mail' }),
  kind: Type.Union([Type.Literal('permanent'), Type.Literal('transient')]),
  reason: Type.Optional(Type.String({ maxLength: 1_000 })),
});

/** A mail that was kept in development instead of sent. */
export const KeptMail = Type.Object({
  mail_id: Id,
  env_id: Id,
  notification_id: Id,
  from: Type.String(),
  to: Type.String(),
  subject: Type.String(),
  text: Type.String(),
  html: Type.String(),
  headers: Type.Record(Type.String(), Type.String()),
  links: Type.Array(Type.String()),
  created_at: Type.String(),
});
export type KeptMail = Static<typeof KeptMail>;
