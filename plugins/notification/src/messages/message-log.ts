import { type RequestOf, sorted } from '@platform/sdk';
import type { Attempt, Explanation, LoggedMessage } from '../../contract/schema/message.ts';
import type { MessageWords } from '../templates/message-words.ts';
import type { Contract, Ctx } from '../context.ts';
import { openContent } from './content.ts';
import { columns, messageOf, type MessageRow } from './message-row.ts';

interface Explained {
  readonly channel: string;
  readonly state: string;
  readonly why: string;
  readonly gateway: string | null;
  readonly history: readonly Attempt[];
  readonly next_attempt_at: string | null;
  readonly delivered_at: string | null;
}
/** The state that says most of a message: the worst of its channels. */
const WORST = ['dead_lettered', 'pending', 'no_gateway', 'suppressed', 'delivered'];

/** What administrators see of messages: the list, and why each channel did or did not deliver. */
export class MessageLog {
  readonly #ctx: Ctx;
  readonly #words: MessageWords;

  constructor(ctx: Ctx, words: MessageWords) {
    this.#ctx = ctx;
    this.#words = words;
  }

  async search({ query, env }: RequestOf<Contract, 'searchMessages'>) {
    const { sql } = this.#ctx.db;
    const { user_id: user = null, category = null, channel = null, state = null, correlation_id: correlation = null } = query;
    const { items, next_cursor } = await this.#ctx.page(
      query,
      sorted(
        {
          list: JSON.stringify(['log', env, user, category, channel, state, correlation]),
          order: { created_at: 'time', notification_id: 'id' },
        },
        query,
        { created_at: ['created_at', 'time'] },
      ),
      ({ where, order, limit }) => sql<(MessageRow & { states: { channel: string; state: string }[] | null })[]>`
        select ${columns(sql)}, (select jsonb_agg(jsonb_build_object('channel', d.channel, 'state', d.state)
          order by d.channel <> 'view', d.channel) from deliveries d where d.notification_id = m.notification_id) as states
        from messages m where m.env_id = ${env} and (${user}::text is null or m.user_id = ${user})
          and (${category}::text is null or m.category = ${category})
        and (${correlation}::text is null or m.correlation_id = ${correlation})
        and ((${channel}::text is null and ${state}::text is null)
          or exists (select 1 from deliveries d where d.notification_id = m.notification_id
          and (${channel}::text is null or d.channel = ${channel}) and (${state}::text is null or d.state = ${state}))) and ${where}
            order by ${order} limit ${limit}`,
    );
    return { items: items.map(({ states, ...row }) => this.#logged(row, states ?? [])), next_cursor };
  }

  async explain({ params, env }: Pick<RequestOf<Contract, 'explainMessage'>, 'params' | 'env'>): Promise<Explanation> {
    const { sql } = this.#ctx.db;
    const [row] = await sql<
      MessageRow[]
    >`select ${columns(sql)} from messages m where m.notification_id = ${params.notification_id} and m.env_id = ${env}`;
    if (!row) throw this.#ctx.problem('message_not_found', { detail: 'There is no such message in this environment.' });
    const deliveries = await sql<Explained[]>`
      select d.channel, d.state, d.why, g.name as gateway, d.history, d.next_attempt_at, d.delivered_at from deliveries d left
        join gateways g using (gateway_id)
      where d.notification_id = ${row.notification_id} order by d.channel <> 'view', d.channel`;
    const channels = deliveries.map(({ history, ...each }) => ({ ...each, attempts: [...history] }));
    return { ...messageOf(this.#ctx.keys.content, row), rendering: await this.#rendering(row), channels };
  }

  async deliveries(request: RequestOf<Contract, 'messageDeliveries'>) {
    return { items: (await this.explain(request)).channels };
  }

  async #rendering(row: MessageRow): Promise<Explanation['rendering']> {
    try {
      const { shown, template } = openContent(this.#ctx.keys.content, row.notification_id, row.content);
      const found =
        row.template_key === null ? undefined : await this.#words.find(row.env_id, row.template_key, template?.locale ?? shown?.locale);
      const now = found
        ? `today it would be ${found.why}`
        : row.template_key === null
          ? 'no template was named'
          : `today there is no template ${row.template_key} for this language`;
      return {
        template_key: row.template_key,
        locale: shown?.locale ?? null,
        rendered_from: shown?.rendered_from ?? 'not rendered yet',
        why: now,
      };
    } catch (error) {
      return { template_key: row.template_key, locale: null, rendered_from: 'unreadable', why: (error as Error).message };
    }
  }

  #logged(row: MessageRow, states: readonly { channel: string; state: string }[]): LoggedMessage {
    const worst = WORST.find(each => states.some(({ state }) => state === each)) ?? 'pending';
    return {
      ...messageOf(this.#ctx.keys.content, row),
      state: worst,
      deliveries: states.map(({ channel, state }) => `${channel}: ${state}`).join(', '),
    };
  }
}
