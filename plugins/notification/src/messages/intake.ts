import { type Limit, type RequestOf, reply } from '@platform/sdk';
import { CATEGORIES, type Send } from '../../contract/schema/send.ts';
import { type Contract, type Ctx, nowOf } from '../context.ts';
import { isOneAddress } from '../people/mail-address.ts';
import { sealContent } from './content.ts';

/** Rows that wait to be put into inboxes are announced here. */
export const ANNOUNCED = 'post_messages';

/** Takes messages in: committed before anything is delivered (NTF-008). */
export class Intake {
  readonly #ctx: Ctx;
  /** 200 a second and 400 at once of one producer, over all processes (G-K-19). */
  readonly #rate: Limit;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#rate = ctx.limit({ name: 'send', perSecond: 200, burst: 400 });
  }

  async send({ body, caller, headers, correlationId }: RequestOf<Contract, 'send'>) {
    const { problem } = this.#ctx;
    if (caller.kind !== 'machine')
      throw problem('m2m_required', { detail: 'People do not send messages; a service does it for them with its own credentials.' });
    const { allowed, headers: told } = await this.#rate.take(caller.clientId);
    if (!allowed)
      throw problem('rate_limited', { detail: '200 messages a second, 400 at once. Try again in a moment.', headers: { ...told } });
    this.#check(body);
    const notification_id = await this.#keep(
      body,
      caller.subject,
      body.idempotency_key ?? headers['idempotency-key'],
      body.correlation_id ?? correlationId,
    );
    return reply({ notification_id, status: 'queued' as const }, { status: 202 });
  }

  #check({ category, recipient, template, subject, body }: Send): void {
    const { problem } = this.#ctx;
    if (!(CATEGORIES as readonly string[]).includes(category))
      throw problem('category_unsupported', { detail: `Use one of ${CATEGORIES.join(', ')}.` });
    if (!template && (subject === undefined || body === undefined))
      throw problem('content_required', { detail: 'Name a template, or give subject and body.' });
    const named = recipient.user_id.startsWith('email:') ? recipient.user_id.slice('email:'.length) : undefined;
    for (const address of [recipient.email, named]) {
      if (address !== undefined && !isOneAddress(address))
        throw problem('recipient_invalid', { detail: 'An e-mail address is exactly one address, without a name.' });
    }
  }

  async #keep(message: Send, producer: string, key: string | undefined, correlationId: string): Promise<string> {
    const { db, keys, platform } = this.#ctx;
    const { recipient, template, subject, body } = message;
    const { user_id, ...reached } = recipient;
    const named = user_id.startsWith('email:') ? { email: user_id.slice('email:'.length) } : {};
    const id = platform.newId();
    const content = sealContent(keys.content, id, {
      recipient: { ...named, ...reached },
      ...(template ? { template } : {}),
      ...(subject === undefined ? {} : { subject }),
      ...(body === undefined ? {} : { body }),
    });
    const rows = await db.sql<{ notification_id: string }[]>`
      with kept as (
        insert into messages (notification_id, env_id, user_id, stream_family, idempotency_key, category, priority, content, template_key,
          channels, resource_refs, correlation_id, confidential, expires_at, created_at)
        values (${id}, ${message.env_id}, ${recipientKey(user_id)}, ${producer}, ${key ?? null}, ${message.category},
          ${message.priority ?? 'normal'}, ${db.sql.json(content)}, ${template?.key ?? null},
          ${[...(message.channels ?? [])]}::text[], ${db.sql.json(message.resource_refs ?? [])}, ${correlationId},
            ${message.confidential ?? false}, ${message.expires_at ?? null}, ${nowOf(this.#ctx)})
        on conflict (stream_family, idempotency_key) where idempotency_key is not null do nothing returning notification_id),
      told as (select pg_notify(${ANNOUNCED}, '') from kept)
      select kept.notification_id from kept, told`;
    const [made] = rows;
    if (made) return made.notification_id;
    // The same producer sent it under this key before: it is the same message.
    const [known] = await db.sql<
      { notification_id: string }[]
    >`select notification_id from messages where stream_family = ${producer} and idempotency_key = ${key ?? ''}`;
    if (!known) throw new Error('a message was neither kept nor known');
    return known.notification_id;
  }
}

/** Mail addresses count without regard to case: somebody who was invited is found under the address of the account. */
export const recipientKey = (userId: string): string => (userId.startsWith('email:') ? userId.toLowerCase() : userId);
