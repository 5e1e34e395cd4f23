import { reply, type RequestOf, type Sql } from '@platform/sdk';
import type { Suppression } from '../../contract/schema/upkeep.ts';
import { type Contract, type Ctx, nowOf } from '../context.ts';
import { deliveryIn } from '../delivery/mail-of.ts';
import { isOneAddress } from './mail-address.ts';

interface Refused {
  readonly env_id: string;
  readonly channel: string;
  readonly address: string;
  readonly reason: string;
  readonly notification_id: string | null;
}

/** Addresses that mail is not sent to: it came back for good, or somebody stopped it. */
export class Suppressions {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  list({ query, env }: RequestOf<Contract, 'listSuppressions'>) {
    const { sql } = this.#ctx.db;
    const address = query.address?.trim().toLowerCase() ?? null;
    return this.#ctx.page(
      query,
      { list: `suppressions ${env} ${address ?? ''}`, order: { created_at: 'time', suppression_id: 'id' } },
      ({ where, order, limit }) => sql<Suppression[]>`
        select suppression_id, channel, address, reason, notification_id, created_at from suppressions
        where env_id = ${env} and (${address}::text is null or position(${address} in address) > 0) and ${where} order by ${order}
          limit ${limit}`,
    );
  }

  async add({ body, env, caller }: RequestOf<Contract, 'addSuppression'>) {
    const address = body.address.trim();
    if (!isOneAddress(address)) throw this.#ctx.problem('recipient_invalid', { detail: 'Write one e-mail address, without a name.' });
    const made = await this.#ctx.db.tx(async tx => {
      await this.keep(tx.sql, {
        env_id: env,
        channel: 'email',
        address,
        reason: body.reason ?? 'stopped by an administrator',
        notification_id: null,
      });
      await tx.audit({ action: 'post.suppression.added', envId: env, caller });
      const [row] = await tx.sql<
        Suppression[]
      >`select suppression_id, channel, address, reason, notification_id, created_at from suppressions where env_id = ${env}
        and channel = 'email' and address = ${address.toLowerCase()}`;
      return row as Suppression;
    });
    return reply(made, { status: 200 });
  }

  /** The undo: mail goes there again. */
  async remove({ params, env, caller }: RequestOf<Contract, 'deleteSuppression'>): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<
        object[]
      >`delete from suppressions where suppression_id = ${params.suppression_id} and env_id = ${env} returning 1`;
      if (gone.length === 0) throw this.#ctx.problem('suppression_not_found', { detail: 'Mail goes there already.' });
      await tx.audit({
        action: 'post.suppression.removed',
        envId: env,
        caller,
        resource: { type: 'suppression', id: params.suppression_id },
      });
    });
  }

  async keep(sql: Sql, { env_id, channel, address, reason, notification_id }: Refused): Promise<void> {
    await sql`insert into suppressions (suppression_id, env_id, channel, address, reason, notification_id, created_at)
      values (${this.#ctx.platform.newId()}, ${env_id}, ${channel}, ${address.toLowerCase()}, ${reason.slice(0, 500)}, ${notification_id},
        ${nowOf(this.#ctx)}) on conflict (env_id, channel, address) do nothing`;
  }

  /** Why nothing is sent to an address; `undefined` when it is. */
  async of(envId: string, channel: string, address: string): Promise<string | undefined> {
    const [row] = await this.#ctx.db.sql<
      { reason: string }[]
    >`select reason from suppressions where env_id = ${envId} and channel = ${channel} and address = ${address.toLowerCase()}`;
    return row?.reason;
  }

  /** A mail that was taken and came back later. */
  async bounced({ body }: RequestOf<Contract, 'reportBounce'>): Promise<{ suppressed: boolean }> {
    const { db, problem } = this.#ctx;
    const id = deliveryIn(body.message_id);
    const [row] = await db.sql<{ env_id: string; notification_id: string; recipient: string | null }[]>`
      select env_id, notification_id, sent_to as recipient from deliveries where delivery_id = ${id ?? null} and channel = 'email'`;
    if (!row) throw problem('message_not_found', { detail: 'No mail has this Message-ID, or it is longer ago than deliveries are kept.' });
    const reason = `came back: ${body.reason ?? body.kind}`;
    const suppressed = body.kind === 'permanent' && row.recipient !== null;
    const note = [{ at: nowOf(this.#ctx), reason, gateway_id: null }];
    await db.tx(async ({ sql }) => {
      await sql`update deliveries set last_error = ${reason}, history = history || ${sql.json(note)}::jsonb
        where delivery_id = ${id ?? null}`;
      if (suppressed)
        await this.keep(sql, {
          env_id: row.env_id,
          channel: 'email',
          address: row.recipient as string,
          reason,
          notification_id: row.notification_id,
        });
    });
    return { suppressed };
  }
}
