import { reply, type RequestOf, type Sql } from '@platform/sdk';
import type { Delivery } from '../../contract/schema/message.ts';
import { type Contract, type Ctx, nowOf, type PostTx } from '../context.ts';
import { openContent } from './content.ts';
import { columns, messageOf, type MessageRow } from './message-row.ts';

type Asked = Pick<RequestOf<Contract, 'getMessage'>, 'caller' | 'env' | 'targetEnvId'>;
interface Owner {
  readonly env: string;
  readonly user: string;
}
const READ_AT_ONCE = 10_000;

/** The inbox of the caller. */
export class PersonalInbox {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async list(request: RequestOf<Contract, 'listMessages'>) {
    const { query } = request;
    const { env, user } = query.user_id === undefined ? await this.#own(request) : await this.#others(request, query.user_id);
    const { sql } = this.#ctx.db;
    const [unread, category] = [query.unread ?? null, query.category ?? null];
    const { items, next_cursor } = await this.#ctx.page(
      query,
      { list: `inbox ${env} ${user} ${unread} ${category}`, order: { created_at: 'time', notification_id: 'id' } },
      ({ where, order, limit }) => sql<MessageRow[]>`
        select ${columns(sql)} from messages m where m.env_id = ${env} and m.user_id = ${user} and m.shown_at is not null
        and (${unread}::boolean is null or (m.read_at is null) = ${unread}) and (${category}::text is null or m.category = ${category})
          and ${where} order by ${order} limit ${limit}`,
    );
    return { items: items.map(row => messageOf(this.#ctx.keys.content, row)), next_cursor };
  }

  async get(request: RequestOf<Contract, 'getMessage'>) {
    const row = await this.#find(request);
    return { ...messageOf(this.#ctx.keys.content, row), deliveries: await deliveriesOf(this.#ctx.db.sql, row.notification_id) };
  }

  async content(request: RequestOf<Contract, 'messageContent'>) {
    const row = await this.#find(request);
    const { shown } = openContent(this.#ctx.keys.content, row.notification_id, row.content);
    if (!shown) throw this.#ctx.problem('message_not_found');
    return { notification_id: row.notification_id, ...shown };
  }

  /** Idempotent: the first call marks it, counts and tells; a repeat gets the same time back (NTF-048). */
  async read(request: RequestOf<Contract, 'readMessage'>) {
    const { env, user } = await this.#own(request);
    const { notification_id } = await this.#find(request, { env, user });
    return this.#ctx.db.tx(async tx => {
      const now = nowOf(this.#ctx);
      const [marked] = await tx.sql<
        { read_at: string }[]
      >`update messages set read_at = ${now} where notification_id = ${notification_id} and read_at is null returning read_at`;
      const unread_count = await unread(tx.sql, { env, user });
      if (marked) await this.#tell(tx, { env, user }, [notification_id], now, unread_count);
      const [known] = marked
        ? [marked]
        : await tx.sql<{ read_at: string }[]>`select read_at from messages where notification_id = ${notification_id}`;
      return { notification_id, read_at: known?.read_at ?? now, unread_count };
    });
  }

  async readAll(request: RequestOf<Contract, 'readAll'>) {
    const { env, user } = await this.#own(request);
    return this.#ctx.db.tx(async tx => {
      const now = nowOf(this.#ctx);
      const rows = await tx.sql<{ notification_id: string }[]>`update messages set read_at = ${now} where notification_id in (
        select notification_id from messages where env_id = ${env} and user_id = ${user} and read_at is null and shown_at is not null
          order by created_at limit ${READ_AT_ONCE} for update) returning notification_id`;
      const unread_count = rows.length < READ_AT_ONCE ? 0 : await unread(tx.sql, { env, user });
      await this.#tell(
        tx,
        { env, user },
        rows.map(({ notification_id }) => notification_id),
        now,
        unread_count,
      );
      return { updated: rows.length, unread_count };
    });
  }

  /** A badge must never break a page: 0, and it says so (NTF-062). */
  async count(request: RequestOf<Contract, 'unreadCount'>) {
    try {
      return { unread_count: await unread(this.#ctx.db.sql, await this.#own(request)) };
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'unread messages could not be counted');
      return reply({ unread_count: 0 }, { headers: { degraded: 'true' } });
    }
  }

  #tell(tx: PostTx, { env, user }: Owner, ids: readonly string[], read_at: string, unread_count: number): Promise<void> {
    return tx.emitAll(
      'platform:post:notification:read',
      ids.map(notification_id => ({ envId: env, payload: { user_id: user, notification_id, read_at, unread_count } })),
    );
  }

  /**
   * The caller's own key. What was sent to a proven address before there was an account is taken over (G-POST-01): an address that nobody
   * has proven opens nothing.
   */
  async #own({ caller, env }: Pick<Asked, 'caller' | 'env'>): Promise<Owner> {
    const user = caller.userId ?? caller.subject;
    if (caller.userId !== undefined && caller.email !== undefined && caller.emailVerified)
      await this.#ctx.db
        .sql`update messages set user_id = ${user} where env_id = ${env} and user_id = ${`email:${caller.email.toLowerCase()}`}`;
    return { env, user };
  }

  /** Somebody else's inbox: for administrators of the environment that they ask about, and are in. */
  async #others({ caller, env, targetEnvId }: Asked, user: string): Promise<Owner> {
    const inside = targetEnvId !== undefined && (caller.envId === targetEnvId || caller.platformAdmin);
    if (!inside || !(await this.#ctx.policy.allows(caller, 'post:admin')))
      throw this.#ctx.problem('admin_required', {
        detail: 'Messages of others are for administrators: name target_env_id, and hold post:admin there.',
      });
    return { env, user };
  }

  async #find(request: Asked & { readonly params: { readonly notification_id: string } }, owner?: Owner): Promise<MessageRow> {
    const { env, user } = owner ?? (await this.#own(request));
    const { sql } = this.#ctx.db;
    const [row] = await sql<
      MessageRow[]
    >`select ${columns(sql)} from messages m where m.notification_id = ${request.params.notification_id} and m.env_id = ${env}
      and m.user_id = ${user} and m.shown_at is not null`;
    if (!row) throw this.#ctx.problem('message_not_found', { detail: 'You have no such message in this environment.' });
    return row;
  }
}

async function unread(sql: Sql, { env, user }: Owner): Promise<number> {
  const [row] = await sql<
    { unread: number }[]
  >`select count(*)::int as unread from messages where env_id = ${env} and user_id = ${user} and read_at is null and shown_at is not null`;
  return row?.unread ?? 0;
}

export async function deliveriesOf(sql: Sql, notificationId: string): Promise<Delivery[]> {
  return [
    ...(await sql<
      Delivery[]
    >`select delivery_id, notification_id, channel, gateway_id, state, attempts, retries_used, next_attempt_at, last_error, delivered_at
      from deliveries
      where notification_id = ${notificationId} order by channel <> 'view', channel`),
  ];
}
