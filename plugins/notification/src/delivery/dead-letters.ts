import { type RequestOf, sorted } from '@platform/sdk';
import type { DeadLetter } from '../../contract/schema/upkeep.ts';
import type { Channel } from '../../contract/schema/send.ts';
import { ANNOUNCED } from '../messages/intake.ts';
import { type Contract, type Ctx, nowOf, type PostTx } from '../context.ts';

const AT_ONCE = 200;

/** Deliveries that were given up (G-POST-05). */
export class DeadLetters {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  list({ query, env }: RequestOf<Contract, 'listDeadLetters'>) {
    const { sql } = this.#ctx.db;
    const channel = query.channel ?? null;
    return this.#ctx.page(
      query,
      sorted({ list: `dead letters ${env} ${channel ?? ''}`, order: { failed_at: 'time', dead_letter_id: 'id' } }, query, {
        failed_at: ['failed_at', 'time'],
      }),
      ({ where, order, limit }) => sql<DeadLetter[]>`
        select dead_letter_id, notification_id, delivery_id, channel, error, attempts, failed_at, history from dead_letters
        where env_id = ${env} and (${channel}::text is null or channel = ${channel}) and ${where} order by ${order} limit ${limit}`,
    );
  }

  async replay({ params, env, caller }: RequestOf<Contract, 'replayDeadLetter'>) {
    return this.#ctx.db.tx(async tx => {
      const [replayed] = await this.#again(tx, env, { id: params.dead_letter_id, channel: null });
      if (!replayed)
        throw this.#ctx.problem('dead_letter_not_found', { detail: 'It was replayed already, or is older than dead letters are kept.' });
      await tx.audit({
        action: 'post.deadletter.replayed',
        envId: env,
        caller,
        resource: { type: 'notification', id: replayed.notification_id },
      });
      return { notification_id: replayed.notification_id, delivery_id: replayed.delivery_id, status: 'pending' as const };
    });
  }

  async replayMatching({ body, env, caller }: RequestOf<Contract, 'replayMatching'>) {
    return this.#ctx.db.tx(async tx => {
      const replayed = await this.#again(tx, env, { id: null, channel: body.channel ?? null });
      if (replayed.length > 0)
        await tx.audit({
          action: 'post.deadletter.replayed',
          envId: env,
          caller,
          details: { count: replayed.length, channel: body.channel ?? 'all' },
        });
      return { replayed: replayed.length, more: replayed.length === AT_ONCE };
    });
  }

  /** Takes records away, gives their inbox rows back to the relay, and makes the deliveries pending from the start (NTF-045). */
  async #again(tx: PostTx, env: string, { id, channel }: { id: string | null; channel: string | null }) {
    const { sql } = tx;
    const gone = await sql<{ dead_letter_id: string; delivery_id: string; notification_id: string; channel: Channel }[]>`
      delete from dead_letters where dead_letter_id in (select dead_letter_id from dead_letters
        where env_id = ${env} and (${id}::uuid is null or dead_letter_id = ${id}::uuid)
          and (${channel}::text is null or channel = ${channel}) order by failed_at limit ${AT_ONCE} for update skip locked)
      returning dead_letter_id, delivery_id, notification_id, channel`;
    if (gone.length === 0) return [];
    await sql`update deliveries set state = 'pending', retries_used = 0, next_attempt_at = ${nowOf(this.#ctx)}, why = 'replayed'
      where delivery_id = any(${gone.map(({ delivery_id }) => delivery_id)}::uuid[])`;
    await sql`update messages set delivered_at = null
      where notification_id = any(${gone.map(({ notification_id }) => notification_id)}::uuid[])`;
    await sql`select pg_notify(${ANNOUNCED}, '')`;
    for (const each of gone) await tx.enqueue(each.channel, { delivery_id: each.delivery_id }, { key: each.delivery_id, envId: env });
    await tx.emitAll(
      'platform:post:deadletter:replayed',
      gone.map(({ dead_letter_id, notification_id, channel: by }) => ({
        envId: env,
        payload: { dead_letter_id, notification_id, channel: by },
      })),
    );
    return gone;
  }
}
