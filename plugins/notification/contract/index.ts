import { defineContract, Id, subscribe, task, Type } from '@platform/sdk/contract';
import { events } from './events.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { gatewayRoutes } from './routes/gateway-routes.ts';
import { messageRoutes } from './routes/message-routes.ts';
import { templateRoutes } from './routes/template-routes.ts';
import { upkeepRoutes } from './routes/upkeep-routes.ts';

export { Send } from './schema/send.ts';

/**
 * Retries are the delivery's own (NTF-043); the tries of the task are for processes that die. Each channel has room of its own, so that
 * none waits for another's provider.
 */
const delivery = (channel: string) =>
  task(Type.Object({ delivery_id: Id }), {
    summary: `Deliver by ${channel}`,
    lane: 'env',
    attempts: 50,
    backoff: [1, 5, 30],
    timeout: '30s',
    abreast: 8,
    slots: 24,
  });

/** Notification: messages to people, in their inbox first and beyond it (doc2; G-POST). */
export const notification = defineContract({
  id: 'post',
  title: 'Notification',
  family: 'notification',
  placement: { tier: 30, outbox_poll_s: 5 },
  uses: { sys: ['sys:read'], bff: ['bff:devices:read'] },
  config: Type.Object({
    maxRetries: Type.Integer({
      env: 'PLATFORM_POST_MAX_RETRIES',
      default: 3,
      minimum: 0,
      maximum: 5,
      description: 'Times that a failed delivery is tried again, after 1 s, 5 s, 30 s, 2 min and 10 min',
    }),
  }),
  keys: {
    content: {
      use: 'seal',
      documented: 'PLATFORM_POST_KEY_ENCRYPTION_REF',
      description: 'Secret reference of the 32 bytes (base64) that seal what messages say',
      file: 'post.key',
    },
  },
  actions: {
    'post:read': { title: 'Read your own messages', grants: 'read' },
    'post:write': { title: 'Send messages, and mark your own read', grants: 'read' },
    'post:admin': { title: 'Administer messages, gateways and templates', grants: 'admin' },
    'post:bounces:write': { title: 'Report mail that came back', principals: ['machine'], bound: true },
    'post:mailbox:read': { title: 'Read the mailbox of development' },
  },
  problems,
  events,
  waivers: { 'platform:notification:received': 'C4: the name is fixed by doc2' },
  routes: { ...messageRoutes, ...gatewayRoutes, ...templateRoutes, ...upkeepRoutes },
  firstSteps: { text: 'Mail is kept, not sent, until a gateway is set up. Read it here', page: 'mailbox' },
  inbox: {
    list: 'listMessages',
    unread: 'unreadCount',
    read: 'readMessage',
    readAll: 'readAll',
    row: { id: 'notification_id', title: 'title', at: 'created_at', readAt: 'read_at', links: 'resource_refs' },
    live: ['platform:notification:received', 'platform:post:notification:read'],
    settings: 'preferences',
  },
  consumes: {
    accountGone: subscribe('platform:auth:user:deleted', { family: 'identity' }),
  },
  onEnvironmentDeleted: {
    purge: {
      messages: 'messages',
      gateways: 'gateways',
      templates: 'templates',
      preferences: 'preferences',
      suppressions: 'suppressed addresses',
      mailbox: 'kept mails',
    },
  },
  tasks: {
    email: delivery('e-mail'),
    sms: delivery('SMS'),
    push: delivery('push'),
    web_push: delivery('web push'),
    mail: delivery('letter'),
  },
  jobs: {
    relay: { summary: 'Put what was handed over into the inboxes', every: '5s', runs: 'process' },
    resume: { summary: 'Queue deliveries anew whose task was lost', every: '1m', runs: 'fleet' },
    sealAnew: { summary: 'Seal under the key of now what lies sealed under one that came before', every: '5m', runs: 'fleet' },
    forget: { summary: 'Delete messages past their retention', every: '1h', runs: 'fleet' },
  },
  pages,
});
