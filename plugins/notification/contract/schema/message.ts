import { Id, type Static, Type } from '@platform/sdk/contract';
import { Category, Priority, ResourceRefs } from './send.ts';

const nullable = Type.Union([Type.String(), Type.Null()]);
export const DeliveryState = Type.Union([
  Type.Literal('pending'),
  Type.Literal('delivered'),
  Type.Literal('suppressed'),
  Type.Literal('no_gateway'),
  Type.Literal('dead_lettered'),
]);
export type DeliveryState = Static<typeof DeliveryState>;

/** G-POST-02. */
export const Message = Type.Object({
  notification_id: Id,
  env_id: Id,
  /** Who sent it: `sub` of the verified token. */
  stream_family: Type.String(),
  category: Category,
  priority: Priority,
  title: Type.String(),
  subject: Type.String(),
  user_id: Type.String(),
  template_key: nullable,
  resource_refs: ResourceRefs,
  created_at: Type.String(),
  delivered_at: nullable,
  read_at: nullable,
  correlation_id: Type.String(),
});
export type Message = Static<typeof Message>;

/** One try of a delivery, in the words of the server that refused it. */
export const Attempt = Type.Object({ at: Type.String(), reason: Type.String(), gateway_id: nullable });
export type Attempt = Static<typeof Attempt>;

/** G-POST-03. */
export const Delivery = Type.Object({
  delivery_id: Id,
  notification_id: Id,
  channel: Type.String(),
  gateway_id: nullable,
  state: DeliveryState,
  attempts: Type.Integer(),
  retries_used: Type.Integer(),
  next_attempt_at: nullable,
  last_error: nullable,
  delivered_at: nullable,
});
export type Delivery = Static<typeof Delivery>;

export const MessageWithDeliveries = Type.Object({ ...Message.properties, deliveries: Type.Array(Delivery) });

export const MessageContent = Type.Object({
  notification_id: Id,
  subject: Type.String(),
  body: Type.String(),
  content_type: Type.Union([Type.Literal('text/plain'), Type.Literal('text/html')]),
  locale: Type.String(),
  rendered_from: Type.Union([Type.Literal('template'), Type.Literal('literal')]),
});
export type MessageContent = Static<typeof MessageContent>;

/** Why a message went where it went, channel by channel. */
export const Explanation = Type.Object({
  ...Message.properties,
  /** The template that was looked for, and where its words came from. */
  rendering: Type.Object({ template_key: nullable, locale: nullable, rendered_from: Type.String(), why: Type.String() }),
  channels: Type.Array(
    Type.Object({
      channel: Type.String(),
      state: Type.String(),
      why: Type.String(),
      gateway: nullable,
      attempts: Type.Array(Attempt),
      next_attempt_at: nullable,
      delivered_at: nullable,
    }),
  ),
});
export type Explanation = Static<typeof Explanation>;

/** A message as administrators see it in their list. */
export const LoggedMessage = Type.Object({
  ...Message.properties,
  /** States of its channels, such as `view: delivered, email: pending`. */
  deliveries: Type.String(),
  state: Type.String(),
});
export type LoggedMessage = Static<typeof LoggedMessage>;
