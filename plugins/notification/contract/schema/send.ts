import { Id, Instant, type Static, Type, CorrelationId } from '@platform/sdk/contract';

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
export const CATEGORIES = ['transaction', 'security', 'marketing', 'system'] as const;
export type Category = (typeof CATEGORIES)[number];
export const Category = Type.Union([
  Type.Literal('transaction'),
  Type.Literal('security'),
  Type.Literal('marketing'),
  Type.Literal('system'),
]);
export const CHANNELS = ['email', 'sms', 'push', 'web_push', 'mail'] as const;
/** Channels that lead out of the platform. */
export type Channel = (typeof CHANNELS)[number];
export const Channel = Type.Union([
  Type.Literal('email'),
  Type.Literal('sms'),
  Type.Literal('push'),
  Type.Literal('web_push'),
  Type.Literal('mail'),
]);
export const Priority = Type.Union([Type.Literal('low'), Type.Literal('normal'), Type.Literal('high')]);
export const Scalar = Type.Union([Type.String({ maxLength: 10_000 }), Type.Number(), Type.Boolean()]);
export const Vars = Type.Record(Type.String({ maxLength: 64 }), Scalar);
export const ResourceRefs = Type.Array(Type.Object({ type: text(100), id: text(200), url: Type.Optional(text(2_000)) }), { maxItems: 50 });
export const Locale = Type.String({ pattern: '^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$', maxLength: 35 });
export const TemplateKey = Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,199}$', title: 'Key' });

/** G-POST-01. A recipient without an account is `email:{address}`; `template`, or `subject` and `body`, must be there. */
export const Send = Type.Object({
  env_id: Id,
  /**
   * One of `transaction`, `security`, `marketing`, `system`. Not an enumeration here: another is 500 `category_unsupported`, never a 400
   * (C29).
   */
  category: text(64),
  recipient: Type.Object({
    user_id: text(330),
    email: Type.Optional(text(320)),
    phone: Type.Optional(text(32)),
    address: Type.Optional(text(1_000)),
  }),
  priority: Type.Optional(Priority),
  template: Type.Optional(Type.Object({ key: TemplateKey, locale: Type.Optional(Locale), vars: Type.Optional(Vars) })),
  subject: Type.Optional(text(500)),
  body: Type.Optional(text(100_000)),
  /** External channels; the inbox alone when absent. */
  channels: Type.Optional(Type.Array(Channel, { maxItems: 5, uniqueItems: true })),
  resource_refs: Type.Optional(ResourceRefs),
  idempotency_key: Type.Optional(text(200)),
  correlation_id: Type.Optional(CorrelationId),
  /**
   * What it says is for its channels alone, such as a link that works once: the inbox shows its subject, and the words are erased when they
   * were delivered.
   */
  confidential: Type.Optional(Type.Boolean()),
  /** It is of no use after this time: channels that have not delivered it by then do not. */
  expires_at: Type.Optional(Instant),
  /** Ignored: who sends is read from the verified token. */
  stream_family: Type.Optional(Type.String()),
});
export type Send = Static<typeof Send>;
