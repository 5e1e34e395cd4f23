import { defineContract, Id, post, type Static, Type } from '@platform/sdk/contract';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
const Channel = Type.Union([Type.Literal('email'), Type.Literal('sms'), Type.Literal('push'), Type.Literal('web_push'), Type.Literal('mail')]);
/** G-POST-01. A recipient without an account is `email:{address}`; `template`, or `subject` and `body`, must be there. */
export const Send = Type.Object({
  env_id: Id,
  /** One of `transaction`, `security`, `marketing`, `system`. Not an enumeration here: another is 500 `category_unsupported`, never a 400 (C29). */
  category: text(64),
  recipient: Type.Object({ user_id: text(330), email: Type.Optional(text(320)), phone: Type.Optional(text(32)), address: Type.Optional(text(1_000)) }),
  priority: Type.Optional(Type.Union([Type.Literal('low'), Type.Literal('normal'), Type.Literal('high')])),
  template: Type.Optional(Type.Object({ key: text(200), locale: Type.Optional(text(35)), vars: Type.Optional(Type.Record(Type.String(), Scalar)) })),
  subject: Type.Optional(text(500)),
  body: Type.Optional(text(100_000)),
  channels: Type.Optional(Type.Array(Channel, { maxItems: 5 })),
  resource_refs: Type.Optional(Type.Array(Type.Object({ type: text(100), id: text(200), url: Type.Optional(text(2_000)) }), { maxItems: 50 })),
  idempotency_key: Type.Optional(text(200)),
  correlation_id: Type.Optional(text(128)),
});
export type Send = Static<typeof Send>;

/** Notification: what others hand it to deliver (G-POST-01). */
export const notification = defineContract({
  id: 'post',
  title: 'Notification',
  placement: { tier: 30, outbox_poll_s: 5 },
  actions: {
    'post:write': { title: 'Send notifications', principals: ['machine'] },
  },
  problems: {
    category_unsupported: { status: 500, title: 'No such category of messages', retry: 'never', log: 'error' },
  },
  events: {},
  routes: {
    send: post('/v1/send', {
      summary: 'Hand over a message for delivery',
      gate: 'post:write',
      body: Send,
      status: 202,
      returns: Type.Object({ notification_id: Id, status: Type.Literal('queued') }),
      problems: ['category_unsupported'],
    }),
  },
});
