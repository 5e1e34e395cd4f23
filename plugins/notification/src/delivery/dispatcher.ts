import type { TaskRun } from '@platform/sdk';
import type { Attempt } from '../../contract/schema/message.ts';
import type { Channel } from '../../contract/schema/send.ts';
import type { Adapters } from '../adapters/adapters.ts';
import { type Device, DispatchFailure, type Outgoing } from '../adapters/adapter.ts';
import { byPlatform } from '../adapters/stub.ts';
import type { ChosenGateways } from '../gateways/chosen-gateways.ts';
import type { GatewayRow } from '../gateways/gateway-store.ts';
import { type Content, erased, openContent, sealContent } from '../messages/content.ts';
import { columns, type MessageRow } from '../messages/message-row.ts';
import type { Devices } from '../people/devices.ts';
import type { Suppressions } from '../people/suppressions.ts';
import type { Tenants } from '../people/tenants.ts';
import type { Unsubscribe } from '../people/unsubscribe.ts';
import type { MessageWords } from '../templates/message-words.ts';
import { type Ctx, nowOf, type PostTx } from '../context.ts';
import { Breaker } from './breaker.ts';
import type { Mailbox } from './mailbox.ts';
import { mailOf } from './mail-of.ts';

/** Seconds before each retry; those past the ceiling count where the ceiling is raised (C1). */
export const CURVE_S: readonly number[] = [1, 5, 30, 120, 600];

export interface DeliveryRow extends MessageRow {
  readonly delivery_id: string;
  readonly channel: Channel;
  readonly attempts: number;
  readonly retries_used: number;
  readonly history: readonly Attempt[];
}
/** How a try ended. */
type Outcome =
  | {
      readonly state: 'delivered' | 'suppressed' | 'no_gateway';
      readonly why: string;
      readonly gateway?: GatewayRow;
      readonly kept?: Outgoing;
      readonly to?: string;
    }
  | {
      readonly state: 'failed';
      readonly reason: string;
      readonly permanent: boolean;
      readonly gateway: GatewayRow | undefined;
      readonly to?: string;
    };

interface Parts {
  readonly words: MessageWords;
  readonly tenants: Tenants;
  readonly adapters: Adapters;
  readonly chosen: ChosenGateways;
  readonly devices: Devices;
  readonly mailbox: Mailbox;
  readonly suppressions: Suppressions;
  readonly unsubscribe: Unsubscribe;
}

/** Carries one delivery out of the platform: one try a task, its end written with the task's in one transaction. */
export class Dispatcher {
  readonly #ctx: Ctx;
  readonly #parts: Parts;
  readonly #breaker: Breaker;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#breaker = new Breaker(() => ctx.clock.now().getTime());
  }

  /** The handler of every channel's task. */
  async run({ delivery_id }: { readonly delivery_id: string }, run: TaskRun): Promise<void> {
    const { sql } = this.#ctx.db;
    const [row] = await sql<DeliveryRow[]>`
      select ${columns(sql)}, d.delivery_id, d.channel, d.attempts, d.retries_used, d.history from deliveries d join messages m
        using (notification_id)
      where d.delivery_id = ${delivery_id} and d.state = 'pending'`;
    if (!row) return;
    const content = openContent(this.#ctx.keys.content, row.notification_id, row.content);
    const outcome = await this.#attempt(row, content, run.signal);
    await this.#ctx.db.tx(async tx => {
      // One goes out behind the other: neither waits for the other's answer, and both are there or none.
      const ended = outcome.state === 'failed' ? this.#failed(tx, row, outcome) : this.#ended(tx, row, outcome);
      const [done] = await Promise.all([ended, run.finish(tx)]);
      if (done && row.confidential) await this.#erase(tx, row, content);
    });
  }

  async #attempt(row: DeliveryRow, content: Content, signal: AbortSignal): Promise<Outcome> {
    const { channel, env_id } = row;
    if (row.expires_at !== null && Date.parse(row.expires_at) <= this.#ctx.clock.now().getTime())
      return { state: 'suppressed', why: `expired: it was of no use after ${row.expires_at}` };
    const to = addressFor(channel, content, row.user_id);
    if (!to) return { state: 'failed', reason: `the message names no address for ${channel}`, permanent: true, gateway: undefined };
    if (channel === 'email') {
      const stopped = await this.#parts.suppressions.of(env_id, channel, to);
      if (stopped !== undefined) return { state: 'suppressed', why: `suppressed address: ${stopped}` };
    }
    const gateway = await this.#parts.chosen.of(env_id, channel);
    if (!gateway && channel === 'email' && this.#parts.mailbox.open)
      return {
        state: 'delivered',
        why: 'kept in the mailbox: this is development, and no gateway is set up',
        kept: await this.outgoing(row, content, to),
      };
    if (!gateway)
      return { state: 'no_gateway', why: `no gateway for ${channel} is enabled in the environment, its organization or the platform` };
    return this.#through(gateway, { row, content, to, signal });
  }

  async #through(
    gateway: GatewayRow,
    { row, content, to, signal }: { row: DeliveryRow; content: Content; to: string; signal: AbortSignal },
  ): Promise<Outcome> {
    const { gateway_id } = gateway;
    let devices: readonly Device[] | undefined;
    try {
      devices = await this.#parts.devices.of(row.channel, row, signal);
    } catch (error) {
      if (!(error instanceof DispatchFailure)) throw error;
      return { state: 'failed', reason: error.message, permanent: false, gateway, to };
    }
    if (devices?.length === 0)
      return { state: 'suppressed', why: `no device: the person has none for ${row.channel} in a session that lives`, gateway };
    const outgoing = { ...(await this.outgoing(row, content, to)), ...(devices ? { devices } : {}) };
    if (!this.#breaker.admits(gateway_id))
      return {
        state: 'failed',
        reason: 'the gateway did not answer others just now; this one was not tried',
        permanent: false,
        gateway,
        to,
      };
    try {
      await this.#parts.adapters.dispatch(outgoing, gateway, signal);
      this.#breaker.answered(gateway_id);
      return {
        state: 'delivered',
        why: `taken by the gateway ${gateway.name}${devices ? ` for devices: ${byPlatform(devices)}` : ''}`,
        gateway,
        to,
      };
    } catch (error) {
      const known = error instanceof DispatchFailure;
      if (known && error.away) this.#breaker.silent(gateway_id);
      else this.#breaker.answered(gateway_id);
      if (!known) this.#ctx.log.error({ err: error, gateway_id }, 'an adapter failed in a way nobody foresaw');
      return { state: 'failed', reason: known ? error.message : 'the adapter failed', permanent: known && error.permanent, gateway, to };
    }
  }

  /** The message as it goes out now: templates and branding are those of this moment. */
  async outgoing(row: DeliveryRow, content: Content, to: string): Promise<Outgoing> {
    const look = await this.#parts.tenants.look(row.env_id);
    const written = await this.#parts.words.render(row, content, look);
    const { notification_id: notificationId, env_id: envId, delivery_id: deliveryId, correlation_id: correlationId } = row;
    return mailOf({
      ...{ deliveryId, notificationId, envId, correlationId, to, written, look },
      domain: this.#ctx.platform.domain,
      tries: row.attempts,
      unsubscribe: row.category === 'marketing' && row.channel === 'email' ? this.#parts.unsubscribe.linkFor(notificationId) : undefined,
    });
  }

  async #ended(tx: PostTx, row: DeliveryRow, { state, why, gateway, kept, to }: Exclude<Outcome, { state: 'failed' }>): Promise<boolean> {
    const delivered = state === 'delivered' ? nowOf(this.#ctx) : null;
    await tx.sql`update deliveries set state = ${state}, why = ${why}, gateway_id = ${gateway?.gateway_id ?? null},
      sent_to = ${to ?? null}, attempts = attempts + ${state === 'delivered' ? 1 : 0},
      next_attempt_at = null, delivered_at = ${delivered} where delivery_id = ${row.delivery_id}`;
    if (kept) await this.#parts.mailbox.keep(tx, kept);
    return true;
  }

  /** Pending again after the curve's pause, or a dead letter with the words of every try (NTF-043, NTF-044). @returns whether it is over */
  async #failed(tx: PostTx, row: DeliveryRow, { reason, permanent, gateway, to }: Extract<Outcome, { state: 'failed' }>): Promise<boolean> {
    const { sql } = tx;
    const now = this.#ctx.clock.now();
    const tried: Attempt = { at: now.toISOString(), reason, gateway_id: gateway?.gateway_id ?? null };
    const history = [...row.history, tried].slice(-20);
    const attempts = row.attempts + 1;
    const gateway_id = gateway?.gateway_id ?? null;
    if (permanent && row.channel === 'email' && to !== undefined)
      await this.#parts.suppressions.keep(sql, {
        env_id: row.env_id,
        channel: 'email',
        address: to,
        reason,
        notification_id: row.notification_id,
      });
    if (!permanent && row.retries_used < this.#ctx.config.maxRetries) {
      const next = new Date(now.getTime() + (CURVE_S[Math.min(row.retries_used, CURVE_S.length - 1)] as number) * 1_000);
      await sql`update deliveries set attempts = ${attempts}, retries_used = retries_used + 1, next_attempt_at = ${next.toISOString()},
        last_error = ${reason}, why = ${`tried again: ${reason}`},
        gateway_id = ${gateway_id}, history = ${sql.json(history)} where delivery_id = ${row.delivery_id}`;
      await tx.enqueue(row.channel, { delivery_id: row.delivery_id }, { key: row.delivery_id, envId: row.env_id, at: next });
      return false;
    }
    const id = this.#ctx.platform.newId();
    await sql`update deliveries set state = 'dead_lettered', attempts = ${attempts}, next_attempt_at = null, last_error = ${reason},
      why = ${`given up: ${reason}`}, gateway_id = ${gateway_id},
      history = ${sql.json(history)} where delivery_id = ${row.delivery_id}`;
    await sql`insert into dead_letters (dead_letter_id, delivery_id, notification_id, env_id, channel, error, attempts, history, failed_at)
      values (${id}, ${row.delivery_id}, ${row.notification_id}, ${row.env_id}, ${row.channel}, ${reason}, ${attempts},
        ${sql.json(history)}, ${now.toISOString()})`;
    await tx.emit('platform:post:deadletter:added', row.env_id, {
      dead_letter_id: id,
      notification_id: row.notification_id,
      channel: row.channel,
      error: reason,
    });
    this.#ctx.log.warn(
      // Not the reason: a server's words name the address, and are with the dead letter.
      { delivery_id: row.delivery_id, channel: row.channel, attempts, correlation_id: row.correlation_id, code: 'dead_letter' },
      'a message could not be delivered; it lies with the dead letters',
    );
    return false;
  }

  /** What a confidential message said is erased when no channel needs it any more. */
  async #erase(tx: PostTx, { notification_id }: DeliveryRow, content: Content): Promise<void> {
    const sealed = sealContent(this.#ctx.keys.content, notification_id, erased(content));
    await tx.sql`update messages set content = ${tx.sql.json(sealed)} where notification_id = ${notification_id}
      and not exists (select 1 from deliveries where notification_id = ${notification_id} and state in ('pending', 'dead_lettered'))`;
  }
}

/** One address of a channel; a person's devices are known to the provider by the person's id. */
function addressFor(channel: Channel, { recipient: { email, phone, address } }: Content, userId: string): string | undefined {
  if (channel === 'email') return email;
  if (channel === 'sms') return phone;
  if (channel === 'mail') return address;
  return userId;
}
