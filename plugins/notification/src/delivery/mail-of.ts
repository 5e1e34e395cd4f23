import type { Outgoing } from '../adapters/adapter.ts';
import { htmlMail, type Look, textOf } from '../templates/mail-layout.ts';

export interface Written {
  readonly subject: string;
  readonly body: string;
  readonly content_type: 'text/plain' | 'text/html';
  readonly locale: string;
}
export interface MailParts {
  readonly deliveryId: string;
  readonly notificationId: string;
  readonly envId: string;
  readonly to: string;
  readonly domain: string;
  readonly correlationId: string;
  readonly tries: number;
  readonly written: Written;
  readonly look: Look;
  /** Where this kind of mail is ended; marketing alone has it (RFC 8058). */
  readonly unsubscribe?: string | undefined;
}

const STOP: Readonly<Record<string, string>> = { en: 'Stop marketing mail', de: 'Keine Werbung mehr erhalten', ar: 'إيقاف رسائل التسويق' };

/** A message as it goes out: text and HTML beside each other, and headers that say what it is. */
export function mailOf({
  deliveryId,
  notificationId,
  envId,
  to,
  domain,
  correlationId,
  tries,
  written,
  look,
  unsubscribe,
}: MailParts): Outgoing {
  const { subject, body, content_type: type, locale } = written;
  const footer = unsubscribe ? { text: STOP[locale.slice(0, 2).toLowerCase()] ?? (STOP['en'] as string), link: unsubscribe } : undefined;
  const text = type === 'text/html' ? textOf(body) : body;
  return {
    deliveryId,
    notificationId,
    envId,
    to,
    subject,
    text: footer ? `${text.trimEnd()}\n\n${footer.text}: ${footer.link}\n` : text,
    html: htmlMail({ subject, body, type, locale, look, ...(footer ? { footer } : {}) }),
    headers: {
      'X-Platform-Correlation-Id': correlationId,
      'Auto-Submitted': 'auto-generated',
      ...(unsubscribe ? { 'List-Unsubscribe': `<${unsubscribe}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' } : {}),
    },
    messageId: messageIdOf(deliveryId, domain),
    tries,
  };
}

export const messageIdOf = (deliveryId: string, domain: string): string => `<${deliveryId}@post.${domain}>`;
/** The delivery that a Message-ID names. */
export const deliveryIn = (messageId: string): string | undefined =>
  /^<?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@/.exec(messageId.trim())?.[1];
