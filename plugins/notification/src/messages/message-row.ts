import type { Sealed, SealedBox, Sql } from '@platform/sdk';
import type { Message } from '../../contract/schema/message.ts';
import { openContent } from './content.ts';

/** A message as its table has it. */
export interface MessageRow {
  readonly notification_id: string;
  readonly env_id: string;
  readonly user_id: string;
  readonly stream_family: string;
  readonly category: Message['category'];
  readonly priority: Message['priority'];
  readonly content: Sealed;
  readonly template_key: string | null;
  readonly channels: readonly string[];
  readonly resource_refs: Message['resource_refs'];
  readonly correlation_id: string;
  readonly confidential: boolean;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly shown_at: string | null;
  readonly read_at: string | null;
  readonly failed_passes: number;
}

export const columns = (
  sql: Sql,
): unknown => sql`m.notification_id, m.env_id, m.user_id, m.stream_family, m.category, m.priority, m.content, m.template_key, m.channels,
  m.resource_refs,
  m.correlation_id, m.confidential, m.expires_at, m.created_at, m.shown_at, m.read_at, m.failed_passes`;

/** A row as others see it (G-POST-02). What cannot be opened any more has no title, and is still listed. */
export function messageOf(box: SealedBox, row: MessageRow): Message {
  const {
    notification_id,
    env_id,
    stream_family,
    category,
    priority,
    user_id,
    template_key,
    resource_refs,
    created_at,
    shown_at,
    read_at,
    correlation_id,
  } = row;
  let subject = '';
  try {
    const { shown, subject: literal } = openContent(box, notification_id, row.content);
    subject = shown?.subject ?? literal ?? template_key ?? '';
  } catch {
    subject = template_key ?? '';
  }
  return {
    notification_id,
    env_id,
    stream_family,
    category,
    priority,
    title: subject,
    subject,
    user_id,
    template_key,
    resource_refs,
    created_at,
    delivered_at: shown_at,
    read_at,
    correlation_id,
  };
}
