import { event, Id, Type } from '@platform/sdk/contract';
import { Category, ResourceRefs } from './schema/send.ts';

/** What the service says, in the family `notification`; the first name is fixed by a document (C4). */
export const events = {
  'platform:notification:received': event(
    'A message lies in the inbox',
    Type.Object({
      user_id: Type.String(),
      notification_id: Id,
      title: Type.String(),
      body: Type.String(),
      category: Category,
      resource_refs: ResourceRefs,
      unread_count: Type.Integer(),
    }),
  ),
  'platform:post:notification:read': event(
    'A message was read',
    Type.Object({ user_id: Type.String(), notification_id: Id, read_at: Type.String(), unread_count: Type.Integer() }),
  ),
  'platform:post:deadletter:added': event(
    'A message could not be delivered',
    Type.Object({ dead_letter_id: Id, notification_id: Id, channel: Type.String(), error: Type.String() }),
  ),
  'platform:post:deadletter:replayed': event(
    'A message is delivered anew',
    Type.Object({ dead_letter_id: Id, notification_id: Id, channel: Type.String() }),
  ),
  'platform:post:mail:kept': event('A mail was kept in the mailbox of development', Type.Object({ mail_id: Id })),
} as const;
