import type { Sealed, SealedBox } from '@platform/sdk';
import type { MessageContent } from '../../contract/schema/message.ts';
import type { Send } from '../../contract/schema/send.ts';

/** What a message says and where it goes: as it was handed over, and as it was rendered for the inbox. */
export interface Content {
  readonly recipient: Omit<Send['recipient'], 'user_id'>;
  readonly template?: Send['template'];
  readonly subject?: string;
  readonly body?: string;
  readonly shown?: Omit<MessageContent, 'notification_id'>;
}

export const contentPurpose = (notificationId: string): string => `post:content:${notificationId}`;

export const sealContent = (box: SealedBox, notificationId: string, content: Content): Sealed =>
  box.seal(contentPurpose(notificationId), JSON.stringify(content));

/** Throws when it was sealed under a key that nobody has any more. */
export function openContent(box: SealedBox, notificationId: string, sealed: Sealed): Content {
  const text = box.open(contentPurpose(notificationId), sealed);
  if (text === undefined) throw new Error('sealed under another key');
  return JSON.parse(text) as Content;
}

/** What stays of a confidential message when everybody who should have it has it: that it was, and what it was about. */
export const erased = ({ shown, recipient }: Content): Content => ({ recipient, ...(shown ? { shown } : {}) });
