import { get, Id, Page, PageQuery, post, raw, SortQuery, Type } from '@platform/sdk/contract';
import { DeliveryState, Explanation, LoggedMessage, Message, MessageContent, MessageWithDeliveries } from '../schema/message.ts';
import { Category, Channel, Send } from '../schema/send.ts';

const ofNotification = { notification_id: Id };

const reader = { any: ['post:read', 'post:admin'] } as const;
const own = { env: 'own', problems: ['message_not_found'] } as const;
const whose = {
  user_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 330, description: 'Somebody else, for administrators, with target_env_id' }),
  ),
};
const Unread = Type.Object({ unread_count: Type.Integer() });

/** Handing over messages, and the inbox of the caller (G-POST-01, G-POST-02). */
export const messageRoutes = {
  send: post('/v1/send', {
    summary: 'Hand over a message for delivery',
    gate: 'post:write',
    env: 'any',
    body: Send,
    status: 202,
    idempotency: 'own',
    returns: Type.Object({ notification_id: Id, status: Type.Literal('queued') }),
    problems: ['category_unsupported', 'm2m_required', 'content_required', 'recipient_invalid', 'rate_limited'],
  }),
  listMessages: get('/v1/messages', {
    summary: 'Messages of the caller, newest first',
    gate: reader,
    env: 'own',
    query: { unread: Type.Optional(Type.Boolean()), category: Type.Optional(Category), ...whose, ...PageQuery },
    returns: Page(Message),
    problems: ['admin_required'],
  }),
  unreadCount: get('/v1/messages/unread-count', {
    summary: 'How many messages the caller has not read',
    gate: reader,
    env: 'own',
    returns: Unread,
  }),
  readAll: post('/v1/messages/read-all', {
    summary: 'Mark every message read',
    gate: 'post:write',
    env: 'own',
    returns: Type.Object({ updated: Type.Integer(), unread_count: Type.Integer() }),
    emits: ['platform:post:notification:read'],
  }),
  getMessage: get('/v1/messages/{notification_id}', {
    params: ofNotification,
    summary: 'One message and its deliveries',
    gate: reader,
    returns: MessageWithDeliveries,
    ...own,
  }),
  messageContent: get('/v1/messages/{notification_id}/content', {
    params: ofNotification,
    summary: 'What a message says',
    gate: reader,
    returns: MessageContent,
    ...own,
  }),
  readMessage: post('/v1/messages/{notification_id}/read', {
    params: ofNotification,
    summary: 'Mark read',
    gate: 'post:write',
    returns: Type.Object({ notification_id: Id, read_at: Type.String(), unread_count: Type.Integer() }),
    emits: ['platform:post:notification:read'],
    ...own,
  }),
  searchMessages: get('/v1/message-log', {
    summary: 'Messages of an environment, newest first',
    gate: 'post:admin',
    env: 'target',
    query: {
      user_id: Type.Optional(Type.String({ title: 'Recipient', maxLength: 330 })),
      category: Type.Optional(Category),
      channel: Type.Optional(Channel),
      state: Type.Optional(DeliveryState),
      correlation_id: Type.Optional(Type.String({ title: 'Correlation', maxLength: 128 })),
      ...SortQuery('created_at'),
      ...PageQuery,
    },
    returns: Page(LoggedMessage),
  }),
  explainMessage: get('/v1/message-log/{notification_id}', {
    params: ofNotification,
    summary: 'Why each channel did or did not deliver',
    gate: 'post:admin',
    env: 'target',
    returns: Explanation,
    problems: ['message_not_found'],
  }),
  messageDeliveries: get('/v1/message-log/{notification_id}/deliveries', {
    params: ofNotification,
    summary: 'What each channel did with a message',
    gate: 'post:admin',
    env: 'target',
    returns: Type.Object({ items: Explanation.properties.channels }),
    problems: ['message_not_found'],
    hidden: true,
  }),
  /** GET shows a button, POST takes effect: from the page, or by one click in the mail program (RFC 8058, H-08). */
  unsubscribe: raw('/v1/unsubscribe/{token}', {
    summary: 'Stop marketing mail',
    idempotency: { none: 'It leads to the state that is asked for, however often it comes (RFC 8058)' },
    gate: { public: 'Everybody who has the mail has its link; it does nothing but mute one category' },
    hidden: true,
  }),
} as const;
