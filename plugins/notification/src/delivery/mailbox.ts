import type { RequestOf, Sealed } from '@platform/sdk';
import type { KeptMail } from '../../contract/schema/upkeep.ts';
import type { Outgoing } from '../adapters/adapter.ts';
import { linksIn } from '../templates/mail-layout.ts';
import { type Contract, type Ctx, nowOf, type PostTx } from '../context.ts';

type Kept = Pick<KeptMail, 'from' | 'to' | 'subject' | 'text' | 'html' | 'headers'>;
interface Row {
  readonly mail_id: string;
  readonly env_id: string;
  readonly notification_id: string;
  readonly mail: Sealed;
  readonly created_at: string;
}
export const mailPurpose = (mailId: string): string => `post:mailbox:${mailId}`;

/**
 * Mails of environments without a gateway, in development: an invited person finds the mail on the page *Mailbox* (F-50). Nothing falls
 * into it in production.
 */
export class Mailbox {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  get open(): boolean {
    return !this.#ctx.platform.production;
  }

  /** Keeps a mail in the transaction that ends its delivery. */
  async keep(tx: PostTx, { deliveryId, notificationId, envId, to, subject, text, html, headers, messageId }: Outgoing): Promise<void> {
    const from = `no-reply@${this.#ctx.platform.domain}`;
    const mail: Kept = {
      from,
      to,
      subject,
      text,
      html,
      headers: { From: from, To: to, Subject: subject, 'Message-ID': messageId, ...headers },
    };
    await tx.sql`insert into mailbox (mail_id, env_id, notification_id, recipient, mail, created_at)
      values (${deliveryId}, ${envId}, ${notificationId}, ${to.toLowerCase()},
        ${tx.sql.json(this.#ctx.keys.content.seal(mailPurpose(deliveryId), JSON.stringify(mail)))}, ${nowOf(this.#ctx)})
        on conflict (mail_id) do nothing`;
    await tx.emit('platform:post:mail:kept', envId, { mail_id: deliveryId });
  }

  list({ query }: RequestOf<Contract, 'listMailbox'>) {
    const { sql } = this.#ctx.db;
    const to = query.to?.trim().toLowerCase() ?? null;
    return this.#ctx
      .page(
        query,
        { list: `mailbox ${to ?? ''}`, order: { created_at: 'time', mail_id: 'id' } },
        ({ where, order, limit }) =>
          sql<Row[]>`select * from mailbox where (${to}::text is null or position(${to} in recipient) > 0) and ${where} order by ${order}
            limit ${limit}`,
      )
      .then(({ items, next_cursor }) => ({ items: items.map(row => this.#mailOf(row)), next_cursor }));
  }

  async get({ params }: RequestOf<Contract, 'getMail'>): Promise<KeptMail> {
    const [row] = await this.#ctx.db.sql<Row[]>`select * from mailbox where mail_id = ${params.mail_id}`;
    if (!row) throw this.#ctx.problem('mail_not_found');
    return this.#mailOf(row);
  }

  async remove({ params }: RequestOf<Contract, 'deleteMail'>): Promise<void> {
    const gone = await this.#ctx.db.sql<object[]>`delete from mailbox where mail_id = ${params.mail_id} returning 1`;
    if (gone.length === 0) throw this.#ctx.problem('mail_not_found');
  }

  #mailOf({ mail_id, env_id, notification_id, mail, created_at }: Row): KeptMail {
    const opened = this.#ctx.keys.content.open(mailPurpose(mail_id), mail);
    const kept =
      opened === undefined
        ? { from: '', to: '', subject: '(sealed under another key)', text: '', html: '', headers: {} }
        : (JSON.parse(opened) as Kept);
    return { mail_id, env_id, notification_id, ...kept, links: linksIn(kept.text), created_at };
  }
}
